"""ONNX Runtime as a contender of bench/cpu.py, for serving."""

import argparse

import numpy
import onnxruntime

import onnx_file
import protocol


def main():
    options = protocol.options(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    if options.mode != "serve" or options.dtype != "f32":
        raise SystemExit(f"ONNX Runtime on processors serves in f32 alone, not {options.mode} in {options.dtype}")
    path = onnx_file.onnx_file(options)
    held_before = protocol.resident_mib("VmRSS")
    x = numpy.random.default_rng(1).standard_normal((options.batch, 3, options.size, options.size), numpy.float32)
    session = None

    def step(part):
        nonlocal session
        if session is None:
            wanted = onnxruntime.SessionOptions()
            wanted.intra_op_num_threads, wanted.inter_op_num_threads = options.threads, 1
            session = onnxruntime.InferenceSession(path, wanted, providers=["CPUExecutionProvider"])
        session.run(None, {"x": x})

    protocol.serve(f"ONNX Runtime {onnxruntime.__version__}", step, held_before)


if __name__ == "__main__":
    main()
