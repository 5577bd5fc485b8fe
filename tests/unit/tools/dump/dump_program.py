"""fusejit-dump as the Python tests of its pictures, pages and differences run it. Its path is the first argument."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
GRAPH = """graph @g(%x: f32[64,32], %w: f32[32,16], %unused: f32[4]) {
  %0 = relu(%x) : f32[64,32]
  %1 = matmul(%0, %w) : f32[64,16]
  %2 = exp(%1) : f32[64,16]
  return %2, %x, %0
}
"""


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, check=False)


def text(*arguments):
    answer = run(*arguments)
    assert answer.returncode == 0, (arguments, answer.stderr.decode())
    return answer.stdout.decode()


class Case(unittest.TestCase):
    """A folder for each test, with a graph in it."""

    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.graph = self.write("g.fj", GRAPH)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content)
        return path

    def check_mistakes(self, subcommand, more=()):
        """What every subcommand that writes a file answers to what is wrong; nothing is written then."""
        cut = GRAPH[:len(GRAPH) // 2]
        deep = "graph @g(%x: f32[2]) {\n" + "".join(f"  %{i} = relu(%{'x' if i == 0 else i - 1}) : f32[2]\n"
                                                    for i in range(20)) + "  return %20\n}\n"
        out = self.folder / "out"
        cases = [(2, [self.write("cut.fj", cut)]), (2, [self.write("bytes.fj", "\x00\x7f<script>")]),
                 (2, [self.write("empty.fj", "")]), (2, [self.write("deep.fj", deep)]),
                 (5, [self.folder / "missing.fj"]), (5, [self.folder]), (1, [self.graph, "--target", "vax"]),
                 (1, [self.graph, "--nonsense"]), (1, []), (2, ["convnet@0"]), (2, [self.graph, "--grad", "y"]),
                 (5, [self.graph, "-o", self.folder / "none" / "x.svg"]), (5, [self.graph, "-o", self.folder]),
                 (1, [self.graph, "-o", ""]), *more]
        for code, arguments in cases:
            if "-o" not in arguments:
                arguments = [*arguments, "-o", out]
            answer = run(subcommand, *arguments)
            first = answer.stderr.decode().split("\n")[0]
            self.assertEqual(answer.returncode, code, (arguments, first))
            self.assertIn("error: ", first, arguments)
            self.assertEqual(answer.stdout, b"", arguments)
            self.assertFalse(out.exists(), arguments)


class Plan:
    """A plan as `source` and `list` tell of it, read here once more."""

    def __init__(self, *source):
        outline = text("source", "--stage", "plan", *source)
        self.values = [(label, int(size), storage, int(first or -1)) for label, size, storage, first in re.findall(
            r'^  value \d+ "([^"]*)": \w+, (\d+) bytes, (\w+)(?: [^,\n]*|\[[^\n]*\])*, (?:steps (\d+)\.\.|\w)', outline, re.M)]
        self.steps = [[int(v) for v in used.split(",") if v.strip()]
                      for used in re.findall(r"^  step \d+ kernel \d+ @\w+\(([^)]*)\)", outline, re.M)]
        self.left = [{int(v): label for v, label in re.findall(r'(\d+) "([^"]*)"', (re.search(r' over ((?:,? ?\d+ "[^"]*")+)', line) or ["", ""])[1])}
                     for line in re.findall(r"^  step .*$", outline, re.M)]
        self.results = [int(v) for v in re.search(r"^  return ?(.*)$", outline, re.M)[1].split(",") if v.strip()]
        self.kernels = json.loads(text("list", "--format", "json", *source))["kernels"]
        texts = json.loads(text("source", "--stage", "kernel", "--format", "json", *source))["kernels"]
        self.texts = [kernel["text"] for kernel in texts]

    def flows(self):
        """Sorted (from, to, label, bytes): the last writer of each value and who reads it then; -1 is the rim."""
        writer, flows, held = {}, set(), [label for label, *_ in self.values]
        for step, (used, kernel) in enumerate(zip(self.steps, self.texts)):
            signature = re.search(r"^kernel @\w+\((.*)\) on ", kernel, re.M)[1]
            access = re.findall(r"%p\d+: \w+\[[^\]]*\] (read|write|update)", signature)
            assert len(access) == len(used), signature
            for value, how in zip(used, access):
                if how != "write" and self.values[value][3] != step:
                    flows.add((writer.get(value, -1), step, value, held[value]))
            for value, how in zip(used, access):
                if how != "read":
                    writer[value] = step
            for value, label in self.left[step].items():
                held[value] = label
        found = [(a, b, label, self.values[v][1]) for a, b, v, label in flows]
        return sorted(found + [(writer.get(v, -1), -1, held[v], self.values[v][1]) for v in self.results])
