#!/usr/bin/env python3
"""fusejit-dump extract: one kernel as a file of each kind, read by the tools that it is for where they are there."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from dump_program import GRAPH, PROGRAM, Case, run, text

CONVOLUTION = """graph @conv(%x: f16[8,64,28,28]:nhwc, %w: f16[64,64,3,3]:nhwc) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f16[8,64,28,28]:nhwc
  return %0
}
"""
X86, CUDA = ["--target", "x86:avx2"], ["--target", "cuda:sm_90"]


def said(*command):
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, (command, answer.stderr)
    return answer.stdout


class Extract(Case):
    def setUp(self):
        super().setUp()
        answer = run("extract", self.graph, "--kernel", 0, *X86, "-o", self.folder / "k.o")
        if b"no x86 code generator" in answer.stderr:
            self.skipTest(answer.stderr.decode())
        (self.folder / "k.o").unlink()

    def extract(self, name, *arguments):
        path = self.folder / name
        line = text("extract", *arguments, "-o", path)
        content = path.read_bytes()
        self.assertTrue(line.startswith(f"{path}: kernel "), line)
        self.assertIn(f"{len(content):,} bytes", line)
        return path, content, line

    def without_nvrtc(self, answer):
        """Skips the test if that is what was answered."""
        if answer.returncode == 4 and b"NVRTC" in answer.stderr:
            self.skipTest(answer.stderr.decode())

    def test_loops_can_be_read_again(self):
        for target in X86, CUDA:
            _, content, line = self.extract("k.kir", self.graph, "--kernel", 0, *target)
            self.assertIn(b"\nkernel @", content)
            self.assertTrue(content.startswith(b"; kernel 0 of the plan, "), content)
            loops = text("source", "--stage", "kernel", self.graph, "--kernel", 0, *target)
            self.assertTrue(content.decode().endswith(loops[loops.index("kernel @"):]))
            self.assertNotIn("phase", line)

    def test_assembly_is_that_of_asm(self):
        """What runs, under a name of its own."""
        path, content, line = self.extract("k.s", "convnet@4:train", "--kernel", "layer0_conv2d_bn", *X86)
        def plain(lines):
            return [x for x in lines.splitlines() if x and not re.match(r"#|\s*\.file", x)]
        shown = plain(text("asm", "convnet@4:train", "--kernel", "layer0_conv2d_bn", *X86))
        symbol = re.search(r"(kernel_\w+)_phase_0", line)[1]
        self.assertEqual(symbol, "kernel_layer0_conv2d_bn")
        self.assertEqual(plain(content.decode()), [re.sub(r"\bphase_", symbol + "_phase_", x) for x in shown])
        if shutil.which("as"):
            said("as", path, "-o", self.folder / "as.o")
        if shutil.which("llvm-mca-19"):
            self.assertIn("Total Cycles", said("llvm-mca-19", path))

    def test_objects_have_the_kernels_name(self):
        path, content, line = self.extract("k.o", "convnet@4:train", "--kernel", "layer0_conv2d_bn", *X86)
        self.assertEqual(content[:4], b"\x7fELF")
        symbols = re.findall(r"kernel_layer0_conv2d_bn_phase_\d", line)
        self.assertEqual(len(symbols), 2, line)
        if not shutil.which("objdump"):
            self.skipTest("no objdump here")
        shown = said("objdump", "-d", path)
        self.assertEqual(re.findall(r"<(\w+)>:", shown), symbols)
        self.assertIn("vfmadd", shown)

    def test_llvm_is_a_module(self):
        path, content, _ = self.extract("k.ll", "convnet@4:train", "--kernel", "layer0_conv2d_bn", *X86)
        self.assertIn(b"define void @kernel_layer0_conv2d_bn_phase_1(", content)
        if shutil.which("opt-19"):
            said("opt-19", "-passes=verify", "-disable-output", path)

    def test_cuda_is_the_standalone_text(self):
        arguments = ["convnet@4:train", "--kernel", "layer0_conv2d_bn", *CUDA]
        _, content, line = self.extract("k.cu", *arguments)
        self.assertEqual(content.decode(), text("source", "--standalone", *arguments))
        for entry in re.findall(r"kernel_\w+", line):
            self.assertIn(f" {entry}(".encode(), content)

    def test_code_for_gpus(self):
        arguments = ["convnet@4:train", "--kernel", "layer2_bn_relu_max_pool2d", *CUDA]
        self.without_nvrtc(run("extract", *arguments, "-o", self.folder / "k.ptx"))
        _, ptx, _ = self.extract("k.ptx", *arguments)
        self.assertIn(b".visible .entry kernel_layer2_bn_relu_max_pool2d(", ptx)
        _, cubin, _ = self.extract("k.cubin", *arguments)
        self.assertEqual(cubin[:4], b"\x7fELF")
        self.assertIn(b".text.kernel_layer2_bn_relu_max_pool2d\0", cubin)

    def test_steps_of_a_library(self):
        graph = self.write("conv.fj", CONVOLUTION)
        for kind in "cu", "kir":
            _, content, line = self.extract("k." + kind, graph, "--target", "cuda:sm_90,cudnn=1")
            self.assertIn(b"done by one call of cuDNN (precompiled engine); ", content)
            self.assertIn(b"forward f16:nhwc x=[8,64,28,28] w=[64,64,3,3]", content)
            self.assertIn("; where cuDNN is, it does this step\n", line)

    def test_mistakes(self):
        """Each with its code and sentence; nothing is written."""
        same = self.write("same.fj", GRAPH.replace("exp(%1) : f32[64,16]\n  return %2", "matmul(%1, %v) : f32[64,8]\n  return %2")
                          .replace("%unused: f32[4]", "%v: f32[16,8]"))
        o, cubin = self.folder / "k.o", self.folder / "k.cubin"
        missing = "/none/libnvrtc.so"
        cases = [(1, [self.graph], "--output is required"), (1, [self.graph, "-o", ""], "empty"),
                 (1, [self.graph, "-o", self.folder / "k"], "is told by the suffix: .kir, .ll, .s, .o for x86, "),
                 (1, [self.graph, "-o", self.folder / "k.exe"], "is told by the suffix"),
                 (1, [self.graph, "-o", o, "--target", "vax"], "--target vax"),
                 (2, [self.graph, "-o", cubin, *X86], "has no .cubin; it has .kir, .ll, .s, .o"),
                 (2, [self.graph, "-o", o, *CUDA], "has no .o; it has .kir, .cu, .ptx, .cubin"),
                 (2, [self.graph, "-o", o, *X86], "the kernels of @g are different kernels: 0, 1"),
                 (2, [same, "-o", o, "--kernel", "matmul", *X86], "those called matmul of @g are different kernels: "),
                 (2, [self.graph, "-o", o, "--kernel", "7", *X86], "has no kernel 7"),
                 (2, [self.graph, "-o", o, "--kernel", "none", *X86], "has no kernel none"),
                 (2, [self.write("cut.fj", GRAPH[:40]), "-o", o], "cut.fj:1:41: error: "),
                 (2, [self.write("bytes.fj", "\x00\x7f"), "-o", o], "bytes.fj:1:1: error: "),
                 (2, [self.write("nothing.fj", ""), "-o", o], "nothing.fj:1:1: error: "),
                 (4, [self.graph, "-o", cubin, "--kernel", 0, *CUDA], missing),
                 (5, [self.folder / "none.fj", "-o", o], "cannot be opened"),
                 (5, [self.graph, "-o", self.folder / "none" / "k.o", "--kernel", 0, *X86], "none/k.o")]
        (self.folder / "taken.o").mkdir()
        cases.append((5, [self.graph, "-o", self.folder / "taken.o", "--kernel", 0, *X86], "taken.o"))
        before = sorted(self.folder.rglob("*"))
        for code, arguments, sentence in cases:
            answer = subprocess.run([PROGRAM, "extract", *map(str, arguments)], capture_output=True, check=False,
                                    env={**os.environ, "FUSEJIT_NVRTC": missing})
            first = answer.stderr.decode().split("\n")[0]
            self.assertEqual(answer.returncode, code, (arguments, first))
            self.assertIn(sentence, first)
            self.assertIn("error: ", first)
            self.assertEqual(answer.stdout, b"")
            self.assertEqual(sorted(self.folder.rglob("*")), before, arguments)

    def test_an_empty_folder(self):
        empty = self.folder / "empty"
        empty.mkdir()
        program = pathlib.Path(PROGRAM).resolve()
        answer = subprocess.run([program, "extract", "g.fj", "-o", "k.o"], capture_output=True, check=False, cwd=empty)
        self.assertEqual(answer.returncode, 5, answer.stderr)
        self.assertEqual(list(pathlib.Path(empty).iterdir()), [])
        answer = subprocess.run([program, "extract", "convnet@1", "--kernel", "0", "-o", "k.o"],
                                capture_output=True, check=False, cwd=empty)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual([path.name for path in empty.iterdir()], ["k.o"])

    def test_help_needs_no_other_page(self):
        shown = text("extract", "--help")
        for kind in ".kir", ".ll", ".s", ".o", ".cu", ".ptx", ".cubin", "--kernel", "--target":
            self.assertIn(kind, shown)


if __name__ == "__main__":
    unittest.main()
