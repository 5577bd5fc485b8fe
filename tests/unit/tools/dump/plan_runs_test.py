#!/usr/bin/env python3
"""fusejit-dump time, timeline and repro: what they say of a run, and that a folder of repro stands on its own."""

import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import unittest
import zipfile

from dump_program import Case, run, text

MODEL = "convnet@2:train"


class Runs(Case):
    def setUp(self):
        super().setUp()
        os.environ["FUSEJIT_CACHE"] = "off"

    def check_refusals(self, subcommand, *options):
        cases = [(2, [self.write("cut.fj", "graph @g(%x: f32[2]) {")]), (2, [self.write("bytes.fj", "\x00\x7f<script>")]),
                 (2, [self.write("empty.fj", "")]), (5, [self.folder / "missing.fj"]), (5, [self.folder]),
                 (1, [self.graph, "--target", "vax"]), (1, [self.graph, "--nonsense"]), (1, []), (2, ["convnet@0"]),
                 (2, [self.graph, "--grad", "y"])]
        for code, arguments in cases:
            answer = run(subcommand, *arguments, *options)
            self.assertEqual(answer.returncode, code, (arguments, answer.stderr))
            self.assertEqual(answer.stdout, b"")
            self.assertEqual(answer.stderr.count(b"\n"), 1, answer.stderr)

    def test_time_has_a_row_a_kernel(self):
        answer = json.loads(text("time", MODEL, "--steps", "3", "--threads", "2", "--format", "json"))
        shown = json.loads(text("show", MODEL, "--no-compile", "--format", "json"))
        self.assertEqual([k["name"] for k in answer["kernels"]], [k["name"] for k in shown["kernels"]])
        for row, kernel in zip(answer["kernels"], shown["kernels"]):
            self.assertEqual(row["bytes"], kernel["read_bytes"] + kernel["written_bytes"])
            self.assertEqual(row["flop"], kernel["flop"])
            self.assertLessEqual(0, row["min_ms"])
            self.assertLessEqual(row["min_ms"], row["median_ms"])
            self.assertLessEqual(row["median_ms"], row["max_ms"])
        self.assertLessEqual(sum(k["min_ms"] for k in answer["kernels"]), answer["max_ms"])
        self.assertEqual(answer["steps"], 3)
        table = text("time", self.graph, "--steps", "2", "--rules", "none")
        self.assertIn("medians of 2 steps", table)
        self.assertIn("matmul", table)
        self.check_refusals("time")
        self.assertIn(run("time", MODEL, "--target", "cuda:sm_90", "--steps", "1").returncode, (0, 6))
        self.assertEqual(run("time", MODEL, "--steps", "0").returncode, 1)

    def test_timeline_has_every_part(self):
        path = self.folder / "t.json"
        phases = text("timeline", MODEL, "--steps", "2", "-o", path)
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
        parts = {e["cat"] for e in events}
        self.assertLessEqual({"trace", "schedule", "codegen", "load", "launch", "run"}, parts)
        for part in parts:
            self.assertIn(part, phases)
        kernels = len(json.loads(text("list", MODEL, "--format", "json"))["kernels"])
        self.assertEqual(sum(e["cat"] == "launch" for e in events), 2 * kernels)
        first = {part: min(e["ts"] for e in events if e["cat"] == part) for part in parts}
        order = [first[part] for part in ("trace", "schedule", "codegen", "load", "launch")]
        self.assertEqual(order, sorted(order))
        self.check_refusals("timeline", "-o", self.folder / "out.json")
        self.assertFalse((self.folder / "out.json").exists())
        self.assertEqual(run("timeline", self.graph).returncode, 1)
        self.assertEqual(run("timeline", self.graph, "-o", self.folder / "none" / "t.json").returncode, 5)

    def build(self, folder):
        program = folder / "repro"
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror",
                        f'-DFOLDER="{folder}/"', folder / "main.cpp", folder / "kernel.s", "-o", program], check=True)
        return program

    def check_graph(self, folder):
        line = next(l for l in (folder / "README.md").read_text().splitlines() if l.startswith("fusejit-dump run"))
        answer = run(*[folder / word if (folder / word).exists() else word for word in line.split()[1:]])
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_repro_stands_on_its_own(self):
        # A convolution with statistics in two phases, a pool that keeps a mask, who reads that, a gradient with sums,
        # an update in place.
        for kernel in (1, "layer2_bn_relu_max_pool2d", "layer5_relu_grad",
                       "layer2_conv2d_input_grad_relu_bn_grad", "layer0_conv2d_weight_grad_adadelta"):
            folder = self.folder / f"repro_{kernel}"
            text("repro", MODEL, "--kernel", kernel, "-o", folder)
            answer = subprocess.run([self.build(folder), "2"], capture_output=True, check=False)
            self.assertEqual(answer.returncode, 0, answer.stdout)
            self.assertIn(b"every bit is as expected", answer.stdout)
            self.check_graph(folder)
        # The check is one: another expectation is seen, by the program and by the graph.
        wrong = next((folder / "buffers").glob("*layer0_weight.after.bin"))
        data = bytearray(wrong.read_bytes())
        data[6] ^= 0x40
        wrong.write_bytes(data)
        answer = subprocess.run([folder / "repro", "1"], capture_output=True, check=False)
        self.assertEqual(answer.returncode, 3)
        self.assertIn(b"1 differ: the first is 1", answer.stdout)

    def test_repro_builds_with_cmake_and_takes_other_types(self):
        graph = self.write("h.fj", "graph @g(%x: bf16[2,3,8,8], %w: bf16[4,3,3,3]) {\n"
                                   "  %0 = conv2d(%x, %w) : bf16[2,4,6,6]\n  %1 = relu(%0) : bf16[2,4,6,6]\n"
                                   "  return %1\n}\n")
        folder = self.folder / "repro"
        last = len(json.loads(text("list", graph, "--format", "json"))["kernels"]) - 1
        text("repro", graph, "--kernel", last, "-o", folder)
        cmake = shutil.which("cmake")
        subprocess.run([cmake, "-S", folder, "-B", folder / "build"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([cmake, "--build", folder / "build"], check=True, stdout=subprocess.DEVNULL)
        answer = subprocess.run([folder / "build" / "repro"], capture_output=True, check=False)
        self.assertEqual(answer.returncode, 0, answer.stdout)
        self.check_graph(folder)

    def test_what_a_run_planned_is_a_source(self):
        """Signatures of FUSEJIT_RECORD, here of this program's own run."""
        record = self.folder / "runs.fjs"
        os.environ["FUSEJIT_RECORD"] = str(record)
        try:
            text("time", MODEL, "--steps", "1")
            self.assertIn(b'"donated":[', record.read_bytes())
            one = json.loads(text("list", record, "--format", "json"))
            self.assertEqual(len(one["kernels"]), len(json.loads(text("list", MODEL, "--format", "json"))["kernels"]))
            self.assertEqual(text("source", record), text("source", f"{record}#1"))
            text("run", self.graph, "--inputs", self.inputs())
        finally:
            del os.environ["FUSEJIT_RECORD"]
        answer = run("show", record)
        self.assertEqual(answer.returncode, 2)
        self.assertIn(b"holds 2 signatures, say which:", answer.stderr)
        self.assertIn(b"runs.fjs#2  @g, 3 ops, for x86:", answer.stderr)
        self.assertIn("matmul", text("show", f"{record}#2"))
        text("html", f"{record}#1", "--measure", "--no-asm", "-o", self.folder / "page.html")
        lines = record.read_bytes().splitlines(keepends=True)
        bad = self.folder / "bad.fjs"
        for content in (b"", b"\0\x7f<script>", lines[0][:100], lines[0].replace(b"conv2d", b"conv3d"), b"{}\n"):
            bad.write_bytes(content)
            answer = run("show", bad)
            self.assertEqual((answer.returncode, answer.stdout), (2, b""), answer.stderr)
        for code, source in ((5, self.folder / "none.fjs"), (2, f"{record}#3"), (5, f"{record}#x"), (5, f"{record}#0"),
                             (5, f"{self.folder}/none.fjs#1")):
            self.assertEqual(run("show", source).returncode, code, source)

    def inputs(self):
        path = self.folder / "in.npz"
        with zipfile.ZipFile(path, "w") as archive:
            for name, shape in (("x", (64, 32)), ("w", (32, 16)), ("unused", (4,))):
                header = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
                header += b" " * (-(len(header) + 11) % 64) + b"\n"
                elements = struct.pack("<f", 0.5) * math.prod(shape)
                archive.writestr(name + ".npy",
                                 b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + elements)
        return path

    def test_repro_refuses(self):
        self.check_refusals("repro", "--kernel", "0", "-o", self.folder / "none")
        self.assertFalse((self.folder / "none").exists())
        mine = self.folder / "mine"
        mine.mkdir()
        (mine / "thesis.txt").write_text("x")
        for code, arguments in [(5, ["--kernel", "0", "-o", mine]), (2, ["--kernel", "99", "-o", self.folder / "n"]),
                                (2, ["--kernel", "nobody", "-o", self.folder / "n"]), (1, ["--kernel", "0"]),
                                (1, ["-o", self.folder / "n"]), (5, ["--kernel", "0", "-o", self.graph]),
                                (4, ["--kernel", "0", "--target", "cuda:sm_90", "-o", self.folder / "n"])]:
            answer = run("repro", self.graph, *arguments)
            self.assertEqual(answer.returncode, code, (arguments, answer.stderr))
        self.assertEqual([p.name for p in mine.iterdir()], ["thesis.txt"])
        self.assertFalse(pathlib.Path(self.folder / "n").exists())


if __name__ == "__main__":
    unittest.main()
