"""The twin of examples/mobilenet_v3.cpp: [20,2], losses, and the mean of what the moving average gives for the batch.

RMSprop divides by gradients of which some are hardly more than rounding, so f32 runs part soon. `f64` is sharp to the
end: on images of noise, which both sides make to the bit.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ..inputs import uniform
from . import twin
from .generator import Generator, kept_by_dropout


def _conv_norm(inputs, outputs, kernel, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(outputs))


def _hardsigmoid(x):
    """F.hardsigmoid, whose gradient has 1/6 in f32 in every dtype."""
    return F.relu6(x + 3) / 6


class _SqueezeExcitation(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        return x * _hardsigmoid(self.fc2(F.relu(self.fc1(x.mean((2, 3), keepdim=True)))))


class _Block(nn.Module):
    def __init__(self, inputs, kernel, expanded, outputs, squeeze, hardswish, stride):
        super().__init__()
        self.adds = stride == 1 and inputs == outputs
        act = nn.Hardswish if hardswish else nn.ReLU
        self.body = nn.Sequential(_conv_norm(inputs, expanded, 1), act(),
                                  _conv_norm(expanded, expanded, kernel, stride, expanded), act())
        if squeeze:
            self.body.append(_SqueezeExcitation(expanded))
        self.body.append(_conv_norm(expanded, outputs, 1))

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class Dropout(nn.Module):
    """With fusejit's mask for the step that has `seed`."""

    def __init__(self, p):
        super().__init__()
        self.p, self.seed = p, None

    def forward(self, x):
        if not self.training:
            return x
        return x * torch.tensor(kept_by_dropout(self.seed, 0, self.p, tuple(x.shape))) * (1 / (1 - self.p))


STAGES = ((3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
          (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1))


def mobilenet_v3(classes):
    network = nn.Sequential(_conv_norm(3, 16, 3, 2), nn.Hardswish())
    channels = 16
    for stage in STAGES:
        network.append(_Block(channels, *stage))
        channels = stage[2]
    return network.extend([_conv_norm(channels, 128, 1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                           Dropout(0.2), nn.Linear(128, classes)])


def stripes(generator, n):
    label = generator.randint(4, n)
    angle = label.reshape(n, 1, 1, 1).astype(np.float32) * np.float32(0.7853982)
    rows = np.arange(64, dtype=np.float32).reshape(1, 1, 64, 1)
    columns = rows.reshape(1, 1, 1, 64)
    wave = np.sin((np.cos(angle) * columns + np.sin(angle) * rows) * np.float32(0.8)
                  + generator.rand(n, 1, 1, 1) * np.float32(6))
    return wave + generator.randn(n, 3, 64, 64) * np.float32(0.5), label


def noise(generator, i):
    label = generator.randint(4, 16)
    return uniform(f"x{i}", [16, 3, 64, 64]), label


def train(run, batch=lambda generator, i: stripes(generator, 16)):
    generator = Generator(2)
    network = run.begin(mobilenet_v3(4))
    optimiser = torch.optim.RMSprop(network.parameters(), lr=2e-3, momentum=0.9)
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True).eval()
    seen = []
    for i in range(twin.STEPS):
        x, y = batch(generator, i)
        x = run.moved(f"x{i}", x)
        network[-2].seed = generator.next_seed()
        optimiser.zero_grad()
        loss = F.cross_entropy(network(x), torch.tensor(y))
        loss.backward()
        optimiser.step()
        average.update_parameters(network)
        with torch.no_grad():
            seen.append([loss.item(), average(x).abs().mean().item()])
    return np.array(seen)


def record():
    return twin.curve(train) | twin.curve_in_f64(lambda run: train(run, noise))
