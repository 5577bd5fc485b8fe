"""The twin of examples/gan.cpp: [20,2] losses, of the judge and of the maker."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import twin
from .generator import Generator

NOISE = 16


def generator():
    return nn.Sequential(nn.Linear(NOISE, 32 * 4 * 4), nn.ReLU(), twin.Function(lambda x: x.reshape(-1, 32, 4, 4)),
                         nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid())


def discriminator():
    return nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2),
                         nn.Flatten(), nn.Linear(32 * 4 * 4, 1))


def squares(draws, n):
    rows = np.arange(16, dtype=np.float32).reshape(1, 1, 16, 1)
    columns = rows.reshape(1, 1, 1, 16)
    top = np.floor(draws.rand(n, 1, 1, 1) * np.float32(10))
    left = np.floor(draws.rand(n, 1, 1, 1) * np.float32(10))
    inside = (rows >= top) & (rows < top + 6) & (columns >= left) & (columns < left + 6)
    return np.where(inside, np.float32(0.9), np.float32(0.1))


def _surprise(logits, real):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, 0.9 if real else 0.0))


def train(run):
    draws = Generator(2)
    make, judge = run.begin(generator()), run.begin(discriminator())
    makes = torch.optim.Adam(make.parameters(), lr=1e-3, betas=(0.5, 0.999))
    judges = torch.optim.Adam(judge.parameters(), lr=5e-4, betas=(0.5, 0.999))
    losses = []
    for i in range(twin.STEPS):
        real = run.moved(f"real{i}", squares(draws, 32))
        noise = run.moved(f"noise{i}", draws.randn(32, NOISE))
        draws.next_seed()  # the step's
        judges.zero_grad()
        judged = _surprise(judge(real), True) + _surprise(judge(make(noise).detach()), False)
        judged.backward()
        judges.step()
        noise = run.moved(f"more noise{i}", draws.randn(32, NOISE))
        draws.next_seed()
        makes.zero_grad()
        made = _surprise(judge(make(noise)), True)
        made.backward()
        makes.step()
        losses.append([judged.item(), made.item()])
    return np.array(losses)


def record():
    return twin.curve(train)
