"""The ONNX file of a workload, made once by a process of its own, so that PyTorch is not in a contender's memory."""

import os
import pathlib
import subprocess
import sys

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
