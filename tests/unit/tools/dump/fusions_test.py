#!/usr/bin/env python3
"""fusejit-dump fusions: the lines of docs/fusion.md, read by a parser of their form, add up to their summary, are about the
plan's own kernels, and save no more than the ledgers of the fused and the unfused plan are apart."""

import json
import re
import unittest

from dump_program import Case, run, text

KEYS = {"contraction", "bias_add", "normalization", "activation", "side_input", "elementwise", "reduction", "window",
        "layout", "loss"}


def parsed(line):
    word, *pairs = line.split(" ")
    fields = [pair.split("=") for pair in pairs]
    assert all(len(field) == 2 for field in fields), line
    assert len({key for key, _ in fields}) == len(fields), line
    return word, dict(fields)


class Lines(Case):
    def check(self, *source):
        *lines, last = text("fusions", *source).splitlines()
        fusions = [parsed(line) for line in lines]
        word, summary = parsed(last)
        self.assertEqual(word, "fusions")
        kernels = {kernel["name"] for kernel in json.loads(text("list", "--format", "json", *source))["kernels"]}
        for word, fusion in fusions:
            self.assertEqual(word, "fusion")
            self.assertIn(fusion["kernel"], kernels)
            self.assertGreater(int(fusion["ops"]), 1)
            parts = [key for key in fusion if key not in ("ops", "kernel", "saved_bytes")]
            self.assertTrue(parts)
            for key in parts:
                self.assertIn(re.sub("(_weight)?_grad$", "", key), KEYS | {"update"})
                self.assertRegex(fusion[key], r"^[\w./-]+(,[\w./-]+)*$")
        self.assertEqual(int(summary["lines"]), len(fusions))
        self.assertEqual(int(summary["saved_bytes"]), sum(int(fusion["saved_bytes"]) for _, fusion in fusions))
        self.assertLessEqual(int(summary["fused_ops"]), int(summary["recorded_ops"]))
        self.assertLessEqual(len(fusions), int(summary["kernels"]))
        told = json.loads(text("fusions", "--format", "json", *source))
        self.assertEqual([(f["kernel"], f["ops"], f["saved_bytes"]) for f in told["fusions"]],
                         [(f["kernel"], int(f["ops"]), int(f["saved_bytes"])) for _, f in fusions])
        self.assertEqual([{key: ",".join(ops) for key, ops in f["parts"].items()} for f in told["fusions"]],
                         [{key: f[key] for key in f if key not in ("ops", "kernel", "saved_bytes")} for _, f in fusions])
        for key in ("fused_ops", "recorded_ops", "kernels", "saved_bytes"):
            self.assertEqual(told[key], int(summary[key]))
        return fusions, summary

    def test_a_graph(self):
        fusions, summary = self.check(self.write("f.fj", """graph @f(%x: f32[64,32], %w: f32[16,32], %b: f32[16]) {
  %0 = linear(%x, %w) : f32[64,16]
  %1 = add(%0, %b) : f32[64,16]
  %2 = relu(%1) : f32[64,16]
  return %2
}
"""), "--target", "x86:avx2")
        self.assertEqual(len(fusions), 1)
        saved = 2 * 2 * 4 * 64 * 16  # two values, neither written nor read back
        self.assertEqual(fusions[0][1], {"contraction": "linear", "side_input": "add", "activation": "relu", "ops": "3",
                                         "kernel": fusions[0][1]["kernel"], "saved_bytes": str(saved)})
        self.assertEqual(summary, {"graph": "f", "lines": "1", "fused_ops": "3", "recorded_ops": "3", "kernels": "2",
                                   "saved_bytes": str(saved)})

    def test_models(self):
        for source in (["convnet@4:train"], ["resnet18@1x3x32x32", "--target", "cuda:sm_90"],
                       ["mobilenet_v2@1x3x32x32", "--target", "cuda:sm_90,cudnn=2"]):
            fusions, summary = self.check(*source)
            ledger = [json.loads(text("show", "--no-compile", "--format", "json", "--rules", rules, *source))["ledger_bytes"]
                      for rules in ("all", "none")]
            self.assertGreater(int(summary["saved_bytes"]), 0)
            self.assertLessEqual(int(summary["saved_bytes"]), ledger[1] - ledger[0], source)
            self.assertTrue(any("contraction" in fusion for _, fusion in fusions))
        step = self.check("convnet@4:train")[0]
        self.assertTrue(any(f.get("contraction_weight_grad") == "0/conv2d" and f.get("update") == "0/adadelta" for _, f in step))

    def test_without_fusion_there_are_none(self):
        fusions, summary = self.check(self.graph, "--rules", "none")
        self.assertEqual((fusions, summary["fused_ops"], summary["saved_bytes"]), ([], "0", "0"))

    def test_mistakes(self):
        half = self.write("half.fj", self.graph.read_text()[:60])
        for code, arguments in [(1, []), (1, [self.graph, "--format", "svg"]), (1, [self.graph, "--target", "vax"]), (2, [half]),
                                (2, [self.write("empty.fj", "")]), (2, [self.write("bytes.fj", "\x00\x7f<script>")]),
                                (2, ["convnet@0"]), (2, [self.graph, "--grad", "y"]), (5, [self.folder]),
                                (5, [self.folder / "missing.fj"])]:
            given = run("fusions", *arguments)
            self.assertEqual((given.returncode, given.stdout), (code, b""), arguments)
            self.assertIn("error: ", given.stderr.decode().split("\n")[0])

    def test_help_says_what_the_keys_are(self):
        page = text("fusions", "--help")
        for key in KEYS | {"update", "_grad", "ops", "kernel", "saved_bytes"}:
            self.assertIn(key, page)


if __name__ == "__main__":
    unittest.main()
