"""The twin of examples/train.cpp: three epochs of seven batches, and rows (training_steps.py) of what net.npz has then.

The program seeds the generator with 1 and draws its own weights. C++ leaves open which argument of Sequential(…) is
made first: `convolution_first.*` and `linear_first.*` are what comes of either.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..training_steps import values_of
from . import twin
from .generator import Generator, permutation

IMAGES, BATCH, EPOCHS = 1750, 250, 3

# Now and then rounding decides whether a ReLU is passed or which of two pixels is the largest of its window, and what
# comes after that step differs by a hundred times the rounding. Which one does depends on the order of sums as much as
# on last bits. So runs differ in both: (threads, oneDNN), and nudged ones of each.
ORDERS, NUDGED_RUNS = ((1, True), (2, True), (3, True), (1, False)), 7


def images():
    """Ten classes that differ in brightness: bytes [1750,28,28] and labels."""
    labels = np.arange(IMAGES) % 10
    noise = twin.bytes_of("train", IMAGES * 28 * 28).reshape(IMAGES, 28, 28)
    return noise + (labels * 20).astype(np.uint8)[:, None, None], labels


def _train(run, convolution_first):
    generator = Generator(1)
    network = nn.Sequential(nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                            nn.Linear(5408, 10)).to(run.dtype)
    with torch.no_grad():
        for place in (0, 5) if convolution_first else (5, 0):
            weight, bias = network[place].weight, network[place].bias
            fan_in = weight[0].numel()
            weight.copy_(run.moved(f"{place}.weight", generator.weights(fan_in, *weight.shape)))
            bias.copy_(run.moved(f"{place}.bias", generator.weights(fan_in, *bias.shape)))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    pixels, labels = images()
    pixels = ((pixels / 255.0 - 0.2860) / 0.3530).astype(np.float32)
    for epoch in range(EPOCHS):
        order = permutation(IMAGES, generator.next_seed())
        for first in range(0, IMAGES, BATCH):
            which = order[first : first + BATCH]
            generator.next_seed()  # the step's
            optimiser.zero_grad()
            loss = F.cross_entropy(network(torch.tensor(pixels[which][:, None]).to(run.dtype)),
                                   torch.tensor(labels[which]))
            loss.backward()
            optimiser.step()
        optimiser.param_groups[0]["lr"] *= 0.7
    return twin.rows_of(values_of(network))


def record():
    arrays = {}
    for name, convolution_first in (("convolution_first", True), ("linear_first", False)):
        meant = arrays[f"{name}.rows"] = _train(twin.Run(torch.float64), convolution_first)
        runs = [one for order in ORDERS for one in _in_order(*order, convolution_first)]
        arrays[f"{name}.tolerance"] = twin.row_tolerance(meant, runs)
    return arrays


def _in_order(threads, onednn, convolution_first):
    threads_before, onednn_before = torch.get_num_threads(), torch.backends.mkldnn.enabled
    torch.set_num_threads(threads)
    torch.backends.mkldnn.enabled = onednn
    try:
        return [_train(run, convolution_first) for run in twin.nudged_runs(NUDGED_RUNS)]
    finally:
        torch.set_num_threads(threads_before)
        torch.backends.mkldnn.enabled = onednn_before
