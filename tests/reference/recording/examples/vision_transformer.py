"""The twin of examples/vision_transformer.cpp: [20,2], losses and the rate of each step."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from . import twin
from .generator import Generator

WIDTH, PATCHES = 32, 16


class _Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        tokens = self.norm1(x)
        y = x + self.attention(tokens, tokens, tokens, need_weights=False)[0]
        return y + self.mlp(self.norm2(y))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 4, 4)
        self.places = nn.Parameter(torch.zeros(1, PATCHES, WIDTH))
        self.blocks = nn.Sequential(_Block(WIDTH), _Block(WIDTH))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(tokens)).mean(1))


def examples(generator, n):
    label = generator.randint(4, n)
    quarter = label.reshape(n, 1, 1, 1)
    row = quarter // 2 * 8 + generator.randint(8, n, 1, 1, 1)
    column = quarter % 2 * 8 + generator.randint(8, n, 1, 1, 1)
    rows = np.arange(16).reshape(1, 1, 16, 1)
    inside = ((rows == row) & (rows.reshape(1, 1, 1, 16) == column)).astype(np.float32)
    return inside * np.float32(4) + generator.randn(n, 1, 16, 16) * np.float32(0.3), label


def train(run):
    generator = Generator(2)
    network = run.begin(VisionTransformer())
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    warm_up = twin.STEPS // 10 + 1
    warm = LinearLR(optimiser, 0.1, total_iters=warm_up)
    schedule = SequentialLR(optimiser, [warm, CosineAnnealingLR(optimiser, twin.STEPS)], [warm_up])
    seen = []
    for i in range(twin.STEPS):
        x, y = examples(generator, 32)
        generator.next_seed()  # the step's
        optimiser.zero_grad()
        loss = F.cross_entropy(network(run.moved(f"x{i}", x)), torch.tensor(y))
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1)
        seen.append([loss.item(), optimiser.param_groups[0]["lr"]])
        optimiser.step()
        schedule.step()
    return np.array(seen)


def record():
    return twin.curve(train)
