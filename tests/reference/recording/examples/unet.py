"""The twin of examples/unet.cpp."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import twin
from .generator import Generator


def _block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.bottom = _block(1, 8), _block(8, 16), _block(16, 32)
        self.up2, self.right2 = nn.ConvTranspose2d(32, 16, 2, 2), _block(32, 16)
        self.up1, self.right1 = nn.ConvTranspose2d(16, 8, 2, 2), _block(16, 8)
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.first(x)
        b = self.second(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        d = self.right2(torch.cat([self.up2(c), b], 1))
        return self.head(self.right1(torch.cat([self.up1(d), a], 1)))


def discs(generator, n):
    rows = np.arange(32, dtype=np.float32).reshape(1, 1, 32, 1)
    columns = rows.reshape(1, 1, 1, 32)
    row = generator.rand(n, 1, 1, 1) * np.float32(20) + np.float32(6)
    column = generator.rand(n, 1, 1, 1) * np.float32(20) + np.float32(6)
    radius = generator.rand(n, 1, 1, 1) * np.float32(3) + np.float32(3)
    mask = (np.square(rows - row) + np.square(columns - column) < np.square(radius)).astype(np.float32)
    return mask + generator.randn(n, 1, 32, 32) * np.float32(0.7), mask


def train(run):
    generator = Generator(2)
    network = run.begin(UNet())
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    losses = []
    for i in range(twin.STEPS):
        x, mask = discs(generator, 16)
        generator.next_seed()  # the step's
        optimiser.zero_grad()
        loss = F.binary_cross_entropy_with_logits(network(run.moved(f"x{i}", x)), torch.tensor(mask).to(run.dtype))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return np.array(losses)


def record():
    return twin.curve(train)
