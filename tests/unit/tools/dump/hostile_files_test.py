#!/usr/bin/env python3
"""Every subcommand of fusejit-dump on damaged graphs, signatures and schedules: an exit code of docs/ops.md §14 and a sentence, never
a signal, never "our bug"."""

import os
import random
import subprocess
import unittest

from dump_program import GRAPH, PROGRAM, Case, run, text

CHEAP = [["list"], ["show"], ["why"], ["fusions"], ["source"], ["source", "--stage", "optimised"],
         ["source", "--standalone", "--target", "cuda:sm_90"], ["source", "--target", "cuda:sm_80"], ["graph"],
         ["graph", "--stage", "before", "--format", "dot"], ["html", "--no-asm"], ["show", "--rules", "none"],
         ["show", "--grad", "x"]]
# The damaged file is one of schedules, of this graph. Whatever they say is built, and what is built is run.
CONVOLUTION = """graph @g(%x: f32[2,8,6,6], %w: f32[16,8,3,3], %dy: f32[2,16,6,6]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,16,6,6]
  %1 = conv2d_weight_grad(%x, %dy) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[16,8,3,3]
  return %0, %1
}
"""
SCHEDULED = [["show", "GRAPH", "--schedule", "FILE"], ["source", "GRAPH", "--schedule", "FILE"],
             ["asm", "GRAPH", "--schedule", "FILE"], ["time", "GRAPH", "--steps", "1", "--schedule", "FILE"],
             ["diff", "GRAPH", "GRAPH", "--new-schedule", "FILE"],
             ["source", "GRAPH", "--target", "cuda:sm_90", "--schedule", "FILE"]]
# Those that compute: whatever parses is still small, since no digit is touched.
RUNNING = [["time", "--steps", "1"], ["timeline", "--steps", "1", "-o", "OUT"], ["repro", "--kernel", "0", "-o", "OUT"],
           ["extract", "--kernel", "0", "-o", "OUT.kir"], ["asm"]]
CASES = 10 if not os.environ.get("FUSEJIT_NIGHTLY") else 1000


class Hostile(Case):
    def setUp(self):
        super().setUp()
        os.environ["FUSEJIT_CACHE"] = "off"
        listed = run("--help").stdout.decode()
        self.known = {line.split()[0] for line in listed.split("Subcommands:")[1].splitlines() if line.strip()}

    def damaged(self, content, random, keep_digits):
        data = bytearray(content)
        for _ in range(random.choice([1, 1, 2, 5, 20])):
            at = random.randrange(len(data))
            if keep_digits and (chr(data[at]) in "0123456789[],"):
                continue
            kind = random.randrange(5)
            if kind == 0:
                data[at] ^= 1 << random.randrange(8)
            elif kind == 1:
                data[at:at + random.randrange(1, 8)] = b""
            elif kind == 2:
                data[at:at] = data[max(0, at - random.randrange(1, 30)):at]
            elif kind == 3 and not keep_digits:
                data[at:at] = random.choice([b"\x00", b"99999999999", b"-", b"<script>", b"%%", b"\xff", b"nan", b"1e400"])
            else:
                data[at:at] = random.choice([b"\n", b"}", b"{", b"%", b"=", b"\"", b"@", b"<b>"])
            if not data:
                data = bytearray(b" ")
        if random.random() < 0.1:
            data = data[:random.randrange(len(data))]
        if keep_digits and sum(c in b"0123456789" for c in data) > sum(c in b"0123456789" for c in content):
            data = bytearray(content[:len(content) // 2])  # digits came in by a flipped bit
        return bytes(data)

    def check(self, name, content, command):
        path = self.folder / name
        path.write_bytes(content)
        out = self.folder / f"out{random.getrandbits(60)}"
        arguments = [word.replace("OUT", str(out)) for word in command]
        if "FILE" not in arguments:
            arguments.insert(1, "FILE")
        places = {"FILE": path, "GRAPH": self.folder / "conv.fj"}
        arguments = [places.get(word, word) for word in arguments]
        answer = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, check=False, timeout=120)
        said = (command, content, answer.stderr)
        changed = command[0] == "diff" and answer.returncode == 3
        self.assertTrue(answer.returncode in (0, 1, 2, 4, 5, 6) or changed, said)
        if answer.returncode != 0 and not changed:
            self.assertIn(b"error: ", answer.stderr.split(b"\n")[0], said)
            self.assertEqual(answer.stdout, b"", said)
            self.assertFalse(out.exists(), said)
        return answer

    def go(self, name, content, commands, keep_digits):
        seeded = random.Random(name)
        outcomes = []
        for command in commands:
            if command[0] not in self.known:
                self.fail(f"there is no subcommand {command[0]}")
            for _ in range(CASES):
                outcomes.append(self.check(name, self.damaged(content, seeded, keep_digits), command).returncode)
        return outcomes

    def test_graphs(self):
        outcomes = self.go("g.fj", GRAPH.encode(), CHEAP, False)
        self.assertGreater(outcomes.count(2), len(outcomes) // 4)
        self.assertGreater(outcomes.count(0), 0, "some damage leaves a graph")
        self.go("small.fj", GRAPH.encode(), RUNNING, True)

    def test_signatures(self):
        record = self.folder / "made.fjs"
        subprocess.run([PROGRAM, "time", str(self.graph), "--steps", "1"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "FUSEJIT_RECORD": str(record)})
        outcomes = self.go("s.fjs", record.read_bytes(), CHEAP[:4] + RUNNING[:1], False)
        self.assertEqual(outcomes.count(2), len(outcomes), "each line has a check sum")

    def test_schedules(self):
        graph = self.write("conv.fj", CONVOLUTION)
        outcomes = []
        for target in ("host", "cuda:sm_90"):
            content = text("source", "--stage", "schedule", graph, "--target", target).encode()
            commands = [c for c in SCHEDULED if ("cuda:sm_90" in c) == (target != "host")]
            outcomes += self.go("s.txt", content, commands, False)
        self.assertNotIn(4, outcomes, "what is legal is built")
        self.assertGreater(outcomes.count(2), len(outcomes) // 4)
        self.assertLess(outcomes.count(2), len(outcomes), "some damage leaves a schedule")

    def test_nobodys_text_is_markup(self):
        """What a graph file calls its values stands escaped on every page and picture."""
        evil = self.write("evil.fj", GRAPH.replace("@g", "@g_onload").replace("%unused", "%script_alert"))
        for command in (["html", "--no-asm"], ["graph"], ["graph", "--stage", "before"]):
            page = text(*command, evil)
            self.assertIn("@g_onload", page)
        for name in ("<script>.fj", "a&b.fj", "q\"'.fj"):
            self.write(name, GRAPH)
            page = text("html", self.folder / name, "--no-asm")
            self.assertNotIn(name, page)


if __name__ == "__main__":
    unittest.main()
