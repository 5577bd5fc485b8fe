"""The twin of examples/serve_onnx.cpp, and the model that both serve: images of tests/reference/images, one at a time,
then in two batches."""

import numpy as np
import torch
from torch import nn

from . import twin

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def network():
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                         nn.Conv2d(8, 16, 3, padding=1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(16, 10))


def images(folder):
    """Their names, and what the program makes of their pixels: [18,3,19,23], as Pillow decodes them."""
    decoded = np.load(folder / "images" / "expected.npz")
    names = sorted(name.removesuffix(".rgb") for name in decoded.files if name.endswith(".rgb"))
    pixels = np.stack([decoded[f"{name}.rgb"] for name in names]).astype(np.float32) / np.float32(255)
    return names, ((pixels - np.float32(MEAN)) / np.float32(DEVIATION)).transpose(0, 3, 1, 2)


@torch.no_grad()
def record(folder):
    names, x = images(folder)

    def served(run):
        return run.begin(network()).eval()(torch.tensor(x).to(run.dtype)).numpy()

    meant = served(twin.Run(torch.float64))
    strayed = np.max([np.abs(served(run) - meant) for run in twin.nudged_runs()])
    return {"meant": meant, "tolerance": np.array([1e-6 + 4 * strayed])}


def write_model(path):
    """Needs the package onnx."""
    from ..onnx_networks import export

    one = twin.Run(torch.float32).begin(network()).eval()
    export(one, torch.zeros(2, 3, 19, 23), path, 17)
