#!/usr/bin/env python3
"""fusejit-dump diff: every kernel is in one of four lists, the figures are those of show, and the exit code says it all."""

import json
import unittest

from dump_program import GRAPH, Case, run, text

SAME, CHANGED = 0, 3


def answer(*arguments):
    given = run("diff", "--format", "json", *arguments)
    assert given.stderr == b"", given.stderr
    return given.returncode, json.loads(given.stdout)


class Differences(Case):
    def check_complete(self, diff, old, new):
        """Each step is in one list; figures are those that `show` has of each side."""
        changed = [pair for kernel in diff["changed"] for pair in kernel["steps"]]
        for side, options, alone in ((0, old, "removed"), (1, new, "added")):
            shown = json.loads(text("show", "--format", "json", "--no-compile", *options))
            steps = [pair[side] for pair in diff["unchanged"] + changed] + [k["index"] for k in diff[alone]]
            self.assertEqual(sorted(steps), list(range(len(shown["kernels"]))))
            figures = {name: figure[("old", "new")[side]] for name, figure in diff["figures"].items()}
            self.assertEqual(figures["launches"], len(shown["kernels"]))
            self.assertEqual(figures["different kernels"], shown["different_kernels"])
            for name in ("ledger", "bound", "arena"):
                self.assertEqual(figures[name + " bytes"], shown[name + "_bytes"])
        for figure in diff["figures"].values():
            self.assertEqual(figure["change"], figure["new"] - figure["old"])
        texts = [{k["index"]: k["text"] for k in json.loads(text("source", "--stage", "kernel", "--format", "json", *side))
                  ["kernels"]} for side in (old, new)]
        body = lambda kernel: kernel[kernel.index("("):] if "\nkernel" not in kernel else kernel[  # noqa: E731
            kernel.index("(", kernel.index("\nkernel")):]
        for a, b in diff["unchanged"]:
            self.assertEqual(body(texts[0][a]), body(texts[1][b]))
        for a, b in changed:
            self.assertNotEqual(body(texts[0][a]), body(texts[1][b]))

    def test_the_same_is_the_same(self):
        for source in (self.graph, "convnet@4:train"):
            code, diff = answer(source, source)
            self.assertEqual((code, diff["same"], diff["changed"], diff["outline"]), (SAME, True, [], ""))
            self.check_complete(diff, [source], [source])
        self.assertEqual(run("diff", self.graph, self.graph).returncode, SAME)

    def test_names_of_graphs_are_no_change(self):
        other = self.write("other.fj", GRAPH.replace("@g", "@another"))
        self.assertEqual(answer(self.graph, other)[0], SAME)

    def test_rules(self):
        code, diff = answer("convnet@4:train", "convnet@4:train", "--new-rules", "none")
        self.assertEqual((code, diff["same"]), (CHANGED, False))
        self.assertGreater(len(diff["added"]), len(diff["removed"]))
        self.assertGreater(diff["figures"]["launches"]["change"], 0)
        self.check_complete(diff, ["convnet@4:train"], ["convnet@4:train", "--rules", "none"])

    def test_targets(self):
        code, diff = answer("convnet@4", "convnet@4", "--old-target", "x86:avx2", "--new-target", "cuda:sm_90")
        self.assertEqual((code, diff["unchanged"]), (CHANGED, []))
        self.assertEqual([diff[side]["target"].split(",")[0] for side in ("old", "new")], ["x86:avx2", "cuda:sm_90"])
        self.check_complete(diff, ["convnet@4", "--target", "x86:avx2"], ["convnet@4", "--target", "cuda:sm_90"])

    def test_batches_change_kernels_and_say_where(self):
        code, diff = answer("convnet@4:train", "convnet@8:train", "--target", "x86:avx2")
        self.assertEqual((code, diff["removed"], diff["added"]), (CHANGED, [], []))
        self.assertTrue(diff["unchanged"] and diff["changed"])
        for kernel in diff["changed"]:
            self.assertTrue(kernel["lines"].startswith("@@ -"))
            self.assertTrue(any(line[0] == "-" for line in kernel["lines"].splitlines()))
        self.check_complete(diff, ["convnet@4:train", "--target", "x86:avx2"], ["convnet@8:train", "--target", "x86:avx2"])
        written = run("diff", "convnet@4:train", "convnet@8:train", "--target", "x86:avx2")
        self.assertEqual(written.returncode, CHANGED)
        self.assertIn(f"kernels: {len(diff['unchanged'])} unchanged, ", written.stdout.decode())

    def test_one_more_op_is_one_more_kernel(self):
        more = GRAPH.replace("return ", "%3 = sqrt(%unused) : f32[4]\n  return %3, ")
        code, diff = answer(self.graph, self.write("more.fj", more))
        self.assertEqual((code, diff["removed"], diff["changed"]), (CHANGED, [], []))
        self.assertEqual([kernel["ops"] for kernel in diff["added"]], [["%3 sqrt"]])

    def test_values_alone(self):
        swapped = self.write("swapped.fj", GRAPH.replace("return %2, %x, %0", "return %x, %2, %0"))
        code, diff = answer(self.graph, swapped)
        self.assertEqual((code, diff["changed"], diff["removed"], diff["added"]), (CHANGED, [], [], []))
        self.assertIn("return", diff["outline"])
        self.assertIn("every kernel is as it was; the plans differ", run("diff", self.graph, swapped).stdout.decode())

    def test_mistakes(self):
        bad = self.write("bad.fj", GRAPH[:40])
        for code, arguments in [(1, []), (1, [self.graph]), (1, [self.graph, self.graph, "--new-rules", "some"]),
                                (1, [self.graph, self.graph, "--old-target", "vax"]), (2, [self.graph, bad]),
                                (2, [bad, self.graph]), (5, [self.graph, self.folder]),
                                (5, [self.folder / "missing.fj", self.graph]), (1, [self.graph, self.graph, "--new-dtype", "f16"]),
                                (1, [self.graph, self.graph, "--format", "svg"])]:
            given = run("diff", *arguments)
            self.assertEqual((given.returncode, given.stdout), (code, b""), arguments)
            self.assertIn("error: ", given.stderr.decode().split("\n")[0])
        self.assertTrue(run("diff", self.graph, bad).stderr.decode().startswith(str(bad) + ":"))


if __name__ == "__main__":
    unittest.main()
