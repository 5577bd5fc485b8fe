"""A network from an ONNX file as a contender that serves. The file is made once by a process of its own, so that
PyTorch is not in a contender's memory."""

import os
import pathlib
import subprocess
import sys

import numpy

import protocol

HERE = pathlib.Path(__file__).resolve().parent


def onnx_file(options):
    folder = pathlib.Path(os.environ.get("BENCH_ONNX", HERE.parents[1] / ".cache" / "onnx"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{options.net}_{options.batch}x{options.size}.onnx"
    if not path.exists():
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        made = subprocess.run(
            [sys.executable, HERE / "export_onnx.py", options.net, str(options.batch), str(options.size), path],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if made.returncode:
            raise RuntimeError("no ONNX file: " + made.stderr.strip().splitlines()[-1])
    return str(path)


def serve(name, options, prepare):
    """`prepare(path)` reads the file and gives a function of images [N,3,size,size]; the first step calls it."""
    path = onnx_file(options)
    held_before = protocol.resident_mib("VmRSS")
    x = numpy.random.default_rng(1).standard_normal((options.batch, 3, options.size, options.size), numpy.float32)
    network = None

    def step(part):
        nonlocal network
        if network is None:
            network = prepare(path)
        network(x)

    protocol.serve(name, step, held_before)
