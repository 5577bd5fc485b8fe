"""Records networks as PyTorch's users have them: ONNX models and files of weights (README.md, "ONNX models" and
"Weights").

    python make_onnx.py                 models of one op and of an example, small networks that PyTorch exports, weights of small networks
    python make_onnx.py --large FOLDER  whole networks for the night, with what PyTorch computes; not to be committed

Needs the packages onnx, onnxruntime, onnxscript, safetensors, torch and torchvision.
"""

import argparse
import pathlib
import shutil

from recording import onnx_networks, onnx_ops, small_networks, whole_networks
from recording.examples import serve_onnx

HERE = pathlib.Path(__file__).resolve().parent
PARTS = {"onnx/ops": onnx_ops, "onnx/networks": onnx_networks, "torchvision": small_networks}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.large:
        folder = pathlib.Path(arguments.large)
        folder.mkdir(parents=True, exist_ok=True)
        whole_networks.write(folder)
        return
    for part, writer in PARTS.items():
        shutil.rmtree(HERE / part, ignore_errors=True)
        (HERE / part).mkdir(parents=True)
        print(f"{part}: {writer.write(HERE / part)}")
    serve_onnx.write_model(HERE / "examples" / "serve_onnx.onnx")


if __name__ == "__main__":
    main()
