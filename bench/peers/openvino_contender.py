"""OpenVINO as a contender of bench/cpu.py, for serving; its compiled models are kept in the folder BENCH_CACHE."""

import argparse
import os

import numpy
import openvino

import onnx_file
import protocol


def main():
    options = protocol.options(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    if options.mode != "serve":
        raise SystemExit(f"OpenVINO serves, it does not {options.mode}")
    path = onnx_file.onnx_file(options)
    held_before = protocol.resident_mib("VmRSS")
    x = numpy.random.default_rng(1).standard_normal((options.batch, 3, options.size, options.size), numpy.float32)
    request = None

    def step(part):
        nonlocal request
        if request is None:
            wanted = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": options.threads,
                      "INFERENCE_PRECISION_HINT": options.dtype, "CACHE_DIR": os.environ.get("BENCH_CACHE", "")}
            request = openvino.Core().compile_model(path, "CPU", wanted).create_infer_request()
        request.infer({0: x}, share_inputs=True, share_outputs=True)

    protocol.serve(f"OpenVINO {openvino.__version__.split('-')[0]}", step, held_before)


if __name__ == "__main__":
    main()
