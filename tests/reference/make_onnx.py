"""Records small ONNX models and what ONNX Runtime computes for them: tests/reference/onnx (README.md there).

    python make_onnx.py                 models of one op, small networks that PyTorch exports, and the model of an example
    python make_onnx.py --large FOLDER  whole networks for the night, with what PyTorch computes; not to be committed

Needs the packages onnx, onnxruntime and torch (bench/peers/requirements.txt).
"""

import argparse
import pathlib
import shutil

from recording import onnx_large, onnx_networks, onnx_ops
from recording.examples import serve_onnx

HERE = pathlib.Path(__file__).resolve().parent / "onnx"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.large:
        folder = pathlib.Path(arguments.large)
        folder.mkdir(parents=True, exist_ok=True)
        onnx_large.write(folder)
        return
    for part, writer in (("ops", onnx_ops), ("networks", onnx_networks)):
        shutil.rmtree(HERE / part, ignore_errors=True)
        (HERE / part).mkdir(parents=True)
        print(f"{part}: {writer.write(HERE / part)} models")
    serve_onnx.write_model(HERE.parent / "examples" / "serve_onnx.onnx")


if __name__ == "__main__":
    main()
