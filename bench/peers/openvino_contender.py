"""OpenVINO as a contender of bench/cpu.py, for serving; its compiled models are kept in the folder BENCH_CACHE."""

import argparse
import os

import openvino

import onnx_network
import protocol


def main():
    options = protocol.options(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    if options.mode != "serve":
        raise SystemExit(f"OpenVINO serves, it does not {options.mode}")

    def prepare(path):
        wanted = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": options.threads,
                  "INFERENCE_PRECISION_HINT": options.dtype, "CACHE_DIR": os.environ.get("BENCH_CACHE", "")}
        request = openvino.Core().compile_model(path, "CPU", wanted).create_infer_request()
        return lambda x: request.infer({0: x}, share_inputs=True, share_outputs=True)

    onnx_network.serve(f"OpenVINO {openvino.__version__.split('-')[0]}", options, prepare)


if __name__ == "__main__":
    main()
