"""The twin of examples/serve.cpp: ResNet-50 for images of 20 sizes whose pixels are 0.5, and what the program says of
each: the class and its probability."""

import numpy as np
import torch

from ..networks import Bottleneck, ResNet
from . import twin

SIDES = range(32, 32 + 8 * twin.STEPS, 8)


@torch.no_grad()
def _served(run):
    network = run.begin(ResNet(Bottleneck, (3, 4, 6, 3), 1000)).eval()
    network.fc.weight.mul_(2.0**-10)  # logits are thousands otherwise, and every probability 1
    best = [torch.softmax(network(torch.full((1, 3, side, side), 0.5).to(run.dtype)), 1)[0].max(0) for side in SIDES]
    return np.array([int(b.indices) for b in best]), np.array([float(b.values) for b in best])


def record():
    classes, probabilities = _served(twin.Run(torch.float64))
    runs = [_served(run) for run in twin.nudged_runs()]
    if any((run[0] != classes).any() for run in runs):
        raise ValueError("two classes are as probable as each other")
    strayed = np.max([np.abs(run[1] - probabilities) for run in runs], axis=0)
    # The program prints six digits.
    return {"side": np.array(SIDES), "class": classes, "meant": probabilities, "tolerance": 1e-6 + 4 * strayed}
