#!/usr/bin/env python3
"""fusejit-dump --schedule: what source --stage schedule prints can be edited and built; docs/schedules.md says how."""

import json
import os
import pathlib
import re
import unittest

from dump_program import Case, run, text

MODEL = "convnet@2:train"
CONVOLUTION = """graph @g(%x: f32[2,8,6,6], %w: f32[16,8,3,3], %v: f32[16,8,3,3]) {
  %0 = conv2d(%x, %w) : f32[2,16,4,4]
  %1 = conv2d(%x, %v) : f32[2,16,4,4]
  return %0, %1
}
"""
DOCUMENT = pathlib.Path(__file__).parents[4] / "docs" / "schedules.md"


def schedules(*source):
    """By step: its schedules on one line each."""
    return [[one["schedule"] for one in kernel["schedules"]]
            for kernel in json.loads(text("show", "--no-compile", "--format", "json", *source))["kernels"]]


class Schedules(Case):
    def setUp(self):
        super().setUp()
        os.environ["FUSEJIT_CACHE"] = "off"
        self.two = self.write("two.fj", CONVOLUTION)

    def test_what_is_printed_is_read(self):
        for options in (["--target", "x86:avx2"], ["--target", "x86:avx512"], ["--target", "cuda:sm_90"],
                        ["--target", "x86:avx2", "--rules", "none"], ["--target", "cuda:sm_90,cudnn=1"]):
            source = [MODEL, *options]
            file = self.write("all.txt", text("source", "--stage", "schedule", *source))
            plan = [*source, "--stage", "plan"]
            self.assertEqual(text("source", *plan, "--schedule", file), text("source", *plan), options)

    def test_each_part_of_a_joined_step_is_reached(self):
        norm = self.write("norm.fj", "graph @g(%x: f32[64,768]) {\n  %0 = layer_norm(%x, 1, 0) {normalized_shape=[768]} : "
                                     "f32[64,768]\n  return %0\n}\n")
        source = [norm, "--target", "x86:avx2"]
        (sums, rest), = schedules(*source)
        printed = text("source", "--stage", "schedule", *source)
        for before, after in ((sums, sums.replace("fetch j 2048", "fetch j 1024")),
                              (rest, rest.replace("x 1", "x 2"))):
            lines = lambda one: re.sub(r"(?<!^) (?=(vector|task|outer|inner|unroll|fetch)\b)", "\n  ", one).replace(" }", "\n}")
            self.assertIn(lines(before), printed)
            file = self.write("part.txt", printed.replace(lines(before), lines(after)))
            self.assertEqual(schedules(*source, "--schedule", file), [[after, rest] if before == sums else [sums, after]])

    def test_each_entry_reaches_its_step_alone(self):
        for rules in ("all", "none"):
            source = [MODEL, "--target", "x86:avx2", "--rules", rules]
            chosen = schedules(*source)
            with_schedules = [s for s, of_step in enumerate(chosen) if any(" pack b" in one for one in of_step)]
            self.assertGreater(len(with_schedules), 4)
            names = [k["name"] for k in json.loads(text("list", "--format", "json", *source))["kernels"]]
            for s in with_schedules:
                entry = text("source", "--stage", "schedule", "--kernel", s, *source)
                self.assertTrue(entry.startswith(f"step {s}  ; {names[s]}: "), entry)
                entry = re.sub("  pack b .*\n|  fetch k .*\n", "", entry)
                # The weights are no longer laid out by a kernel before, and so not fetched in that order.
                expected = chosen[:s - 1] + [[re.sub(" pack b [0-9]+| fetch k [0-9]+", "", one)
                                              for one in chosen[s]]] + chosen[s + 1:]
                for head in (f"step {s}", f"step @{names[s]}"):
                    if "@" in head and names.count(names[s]) > 1:
                        continue
                    file = self.write("one.txt", re.sub("^step .*", head, entry))
                    self.assertEqual(schedules(*source, "--schedule", file), expected, (rules, head))

    def test_groups_without_an_anchor_have_entries_too(self):
        graph = self.write("biased.fj", "graph @biased(%x: f32[10816,32], %b: f32[32]) {\n"
                           "  %0 = add(%x, %b) : f32[10816,32]\n  return %0\n}\n")
        for target, before, after, wrong, sentence in (
                ("x86:avx2", "vector j 8 x 4", "vector j 8 x 2", "vector j 8 x 5", "5 vectors of 8 lanes, but j has 32 elements"),
                ("cuda:sm_90", "i*j/256", "i*j/64", "i*j/2048", "a block of 2048 threads; at most 1024")):
            source = [graph, "--target", target]
            chosen = schedules(*source)
            entries = text("source", "--stage", "schedule", *source).split("\n\n")
            entry = next(one for one in entries if '\ndomain "[i, j]; i 10816, j 32"\n' in one and before in one)
            step = int(entry.split()[1])
            file = self.write("domain.txt", entry.replace(before, after))
            expected = [[one.replace(before, after) for one in of_step] if s == step else of_step
                        for s, of_step in enumerate(chosen)]
            self.assertNotEqual(expected, chosen)
            self.assertEqual(schedules(*source, "--schedule", file), expected)
            answer = run("show", *source, "--no-compile", "--schedule", self.write("domain.txt", entry.replace(before, wrong)))
            self.assertEqual(answer.returncode, 2)
            self.assertIn(f"}} is no schedule of [i, j]; i 10816, j 32: {sentence}", answer.stderr.decode())

    def test_without_a_step_it_is_for_every_one(self):
        source = [self.two, "--target", "x86:avx2"]
        first, second = text("source", "--stage", "schedule", *source).split("\n\n")
        general = re.sub("step .*\n", "", first).replace("unroll c 4", "unroll c 2")
        file = self.write("every.txt", "; for both\n" + general)
        self.assertEqual([one for step in schedules(*source, "--schedule", file) for one in step],
                         [one.replace("unroll c 4", "unroll c 2") for step in schedules(*source) for one in step])
        file = self.write("but_one.txt", general + second)  # a step's own comes first
        changed = [a != b for a, b in zip(schedules(*source, "--schedule", file), schedules(*source)) if a]
        self.assertEqual(changed, [True, False])

    def test_stands_beside_the_kernel(self):
        source = [self.two, "--target", "x86:avx2", "--kernel", "1"]
        printed = text("source", "--stage", "schedule", *source)
        self.assertIn("\n" + printed, text("show", *source))
        for stage, comment in (("kernel", ";"), ("llvm", ";"), ("asm", "#")):
            command = ["asm"] if stage == "asm" else ["source", "--stage", stage]
            answer = run(*command, *source)
            if answer.returncode == 4:
                continue
            lines = [f"{comment}   {line}" for line in printed.splitlines()[1:]]
            self.assertIn("\n".join(lines), answer.stdout.decode())

    def test_runs_and_compares(self):
        file = self.write("s.txt", text("source", "--stage", "schedule", MODEL).replace("unroll c 4", "unroll c 2"))
        before, after = schedules(MODEL), schedules(MODEL, "--schedule", file)
        differ = [s for s, (a, b) in enumerate(zip(before, after)) if a != b]
        self.assertGreater(len(differ), 1)
        answer = json.loads(text("time", MODEL, "--steps", "3", "--schedule", file, "--format", "json"))
        self.assertEqual([k["index"] for k in answer["chosen"]["kernels"]], differ)
        for kernel in answer["chosen"]["kernels"]:
            self.assertEqual(kernel["median_ms"], answer["kernels"][kernel["index"]]["median_ms"])
            self.assertGreater(kernel["ratio"], 0)
        self.assertNotIn("chosen", json.loads(text("time", MODEL, "--steps", "1", "--format", "json")))
        self.assertIn("ratios are medians of pairs", text("time", MODEL, "--steps", "2", "--schedule", file))
        self.assertEqual(run("diff", MODEL, MODEL, "--new-schedule", file).returncode, 3)
        self.assertEqual(run("diff", MODEL, MODEL, "--schedule", file).returncode, 0)
        graph = self.write("none.fj", "graph @g() {\n  %0 = full() {shape=[8,64], value=3} : f32[8,64]\n"
                           "  %1 = full() {shape=[64,32], value=2} : f32[64,32]\n"
                           "  %2 = matmul(%0, %1) : f32[8,32]\n  return %2\n}\n")
        file = self.write("p.txt", text("source", "--stage", "schedule", graph))
        text("run", graph, "--outputs", self.folder / "want.npz", "--engine", "graph")
        text("run", graph, "--check", self.folder / "want.npz", "--schedule", file)
        file.write_text(re.sub("tile q [0-9]+", "tile q 4000", file.read_text()))
        self.assertEqual(run("run", graph, "--schedule", file).returncode, 2)

    def test_a_cached_plan_hides_nothing(self):
        os.environ["FUSEJIT_CACHE"] = "on"
        os.environ["FUSEJIT_CACHE_DIR"] = str(self.folder / "cache")
        try:
            text("time", self.two, "--steps", "1")
            file = self.write("s.txt", text("source", "--stage", "schedule", self.two).replace("unroll c 4", "unroll c 2"))
            for _ in range(2):
                answer = json.loads(text("time", self.two, "--steps", "1", "--schedule", file, "--format", "json"))
                self.assertEqual(len(answer["chosen"]["kernels"]), 2, "the chosen ones and others, both times")
        finally:
            del os.environ["FUSEJIT_CACHE_DIR"]

    def test_every_mistake_has_its_place(self):
        source = [self.two, "--target", "x86:avx2"]
        good = text("source", "--stage", "schedule", "--kernel", "1", *source)
        cases = [("", ":1:1: error: expected 'contraction' but found the end of the text"),
                 (good.replace("step 1", "step 99"), ":1:6: error: the plan of @g has no kernel 99; it has "),
                 (good.replace("step 1", "step @nobody"), ":1:6: error: the plan of @g has no kernel nobody"),
                 (good.replace("step 1", "step one"), ":1:6: error: expected the number of a step or its @name"),
                 (good.replace("step 1", "step 0"), ":2:1: error: step 0 does not have this contraction"),
                 (re.sub("step .*\n", "", good).replace("n 2", "n 3"), ":1:1: error: no step of @g has this contraction"),
                 (good + good.replace("unroll c 4", "unroll c 2"), ":12:1: error: step 1 has another schedule for this"),
                 (good.replace("vector k 8", "vector k eight"), ":4:12: error: expected a number"),
                 (good.replace("vector k 8", "vector k 7"), "a vector of 7 lanes: only powers of two"),
                 (good.replace("inner", "iner"), ":8:3: error: expected '}' but found 'iner'"),
                 (good + "\0", ":11:1: error: "), ("(" * (2 << 20), ":1:1: error: a file of schedules has at most 1 MiB")]
        for content, sentence in cases:
            file = self.write("bad.txt", content)
            for command in (["show"], ["time", "--steps", "1"], ["source"], ["diff", self.two]):
                answer = run(*command, *source, "--schedule", file)
                first = answer.stderr.decode().split("\n")[0]
                self.assertEqual((answer.returncode, answer.stdout), (2, b""), (command, first))
                self.assertIn(sentence, first)
                self.assertTrue(first.startswith(str(file) if sentence[0] == ":" else "fusejit-dump: error: schedule {"), first)
        for code, file in ((5, self.folder / "none.txt"), (5, self.folder), (1, ""), (5, "/dev/zero")):
            self.assertEqual(run("show", *source, "--schedule", file).returncode, code, file)
        half = self.write("half.fj", "graph @h(%x: f16[8,64,28,28]:nhwc, %w: f16[64,64,3,3]:nhwc) {\n"
                          "  %0 = conv2d(%x, %w) : f16[8,64,26,26]:nhwc\n  return %0\n}\n")
        library = self.write("l.txt", re.sub("step .*\n", "", text("source", "--stage", "schedule", half, "--target",
                                                                   "cuda:sm_90")))
        answer = run("show", half, "--target", "cuda:sm_90,cudnn=1", "--no-compile", "--schedule", library)
        self.assertIn(b"a library computes this contraction, without a schedule", answer.stderr)
        answer = run("run", self.two, "--engine", "graph", "--schedule", library)
        self.assertEqual(answer.returncode, 1)

    def test_the_document_says_what_happens(self):
        section = DOCUMENT.read_text().split("## Trying another schedule\n")[1].split("\n## ")[0]
        first, second = re.findall("```\n(.*?)```", section, re.S)
        file = self.folder / "conv.txt"
        for block, code in ((first, 0), (second, 2)):
            command, output = block.split("\n", 1)
            words = command.removeprefix("$ fusejit-dump ").replace(" | tee conv.txt", "").replace("conv.txt", str(file))
            answer = run(*words.split())
            self.assertEqual(answer.returncode, code)
            self.assertEqual((answer.stderr if code else answer.stdout).decode(), output)
            file.write_text(output.replace("tile q 6", "tile q 12"))
        self.assertEqual(first.split("\n", 1)[1].splitlines()[4], "  tile q 6", "line 5")


if __name__ == "__main__":
    unittest.main()
