"""The twin of examples/own_optimizer.cpp."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import twin
from .generator import permutation, seed_of


class SignMomentum(torch.optim.Optimizer):
    def __init__(self, parameters, lr, momentum=0.9):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                average = self.state[p].setdefault("average", torch.zeros_like(p))
                average.mul_(group["momentum"]).add_(p.grad, alpha=1 - group["momentum"])
                p.sub_(torch.sign(average), alpha=group["lr"])


def _bar(index):
    image = np.full((16, 16), 20, dtype=np.float32)
    at = index // 2 % 14 + 1
    if index % 2 == 0:
        image[2:14, at] = 220
    else:
        image[at, 2:14] = 220
    return image / np.float32(255)


def _batches():
    """Of 32, of a new order each epoch; the loader's seed is 1."""
    epoch = 0
    while True:
        order = permutation(512, seed_of(1, epoch))
        for first in range(0, 512, 32):
            which = order[first : first + 32]
            yield np.stack([_bar(i) for i in which])[:, None], np.array([i % 2 for i in which])
        epoch += 1


def train(run):
    network = run.begin(nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                      nn.Linear(8 * 7 * 7, 2)))
    optimiser = SignMomentum(network.parameters(), lr=0.002)
    losses = []
    for (x, y), i in zip(_batches(), range(twin.STEPS)):
        optimiser.zero_grad()
        loss = F.cross_entropy(network(run.moved(f"x{i}", x)), torch.tensor(y))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return np.array(losses)


def record():
    return twin.curve(train)
