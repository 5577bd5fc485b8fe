"""ONNX Runtime as a contender of bench/cpu.py, for serving."""

import argparse

import onnxruntime

import onnx_network
import protocol


def main():
    options = protocol.options(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    if options.mode != "serve" or options.dtype != "f32":
        raise SystemExit(f"ONNX Runtime on processors serves in f32 alone, not {options.mode} in {options.dtype}")

    def prepare(path):
        wanted = onnxruntime.SessionOptions()
        wanted.intra_op_num_threads, wanted.inter_op_num_threads = options.threads, 1
        session = onnxruntime.InferenceSession(path, wanted, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {"x": x})

    onnx_network.serve(f"ONNX Runtime {onnxruntime.__version__}", options, prepare)


if __name__ == "__main__":
    main()
