"""examples/<name>.npz: what the programs in examples/ compute in 20 steps, or for 20 requests, as PyTorch does it.

Each module here is the same program again: network, optimiser, schedule, and the images that the program draws. Both
begin with values picked by names (training_steps.py), so that nothing but results is recorded.
"""

import torch

from ..npz import version_numbers, write_npz
from . import (batching_server, cifar10, gan, mobilenet_v3, own_optimizer, serve, serve_onnx, train, unet,
               vision_transformer)

_TWINS = {
    "unet": unet.record,
    "gan": gan.record,
    "mobilenet_v3": mobilenet_v3.record,
    "vision_transformer": vision_transformer.record,
    "own_optimizer": own_optimizer.record,
    "train": train.record,
    "cifar10": cifar10.record,
    "serve": serve.record,
    "batching_server": batching_server.record,
}


def record(folder):
    """folder: tests/reference."""
    torch.set_num_threads(1)
    (folder / "examples").mkdir(exist_ok=True)
    for name, twin in (_TWINS | {"serve_onnx": lambda: serve_onnx.record(folder)}).items():
        arrays = twin()
        for label, value in arrays.items():
            if label.endswith(("meant", "tolerance", "f64", "f64_tolerance")):
                print(f"{name}.{label}: {value.reshape(len(value), -1)[[0, -1]].tolist()}")
        arrays["torch_version"] = version_numbers(torch.__version__)
        write_npz(folder / "examples" / f"{name}.npz", arrays)
