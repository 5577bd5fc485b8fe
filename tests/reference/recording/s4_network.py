"""The network of the loss curves: convbn 1-32, relu, convbn 32-64, relu, max-pool, relu, linear 9216-128, dropout,
relu, linear 128-10, log-softmax. Dropout has p = 0 here, so that no random number is drawn.

Initial weights come from a formula (`initial_values`), so that a test makes the same ones without a file.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# Parameter number, name, shape, fan-in: the order of the modules.
PARAMETERS = (
    (0, "conv1.w", (32, 1, 3, 3), 9),
    (1, "conv2.w", (64, 32, 3, 3), 288),
    (2, "fc1.w", (128, 9216), 9216),
    (3, "fc1.b", (128,), 9216),
    (4, "fc2.w", (10, 128), 128),
    (5, "fc2.b", (10,), 128),
)


def initial_values(number, shape, fan_in):
    """Element e: u = ((e·2654435761 + (number+1)·40503) mod 2^32) / 2^32; f32((2u-1)/sqrt(fan_in)), all in f64."""
    e = np.arange(int(np.prod(shape)), dtype=np.uint64)
    word = (e * np.uint64(2654435761) + np.uint64((number + 1) * 40503)) % np.uint64(2**32)
    u = word.astype(np.float64) / 2.0**32
    bound = 1 / np.sqrt(np.float64(fan_in))
    return ((2 * u - 1) * bound).astype(np.float32).reshape(shape)


class UnaffineBatchNorm(nn.Module):
    """y = (x - mean) / (sqrt(var) + eps): unbiased variance, eps outside the root, no affine, no running statistics."""

    def forward(self, x):
        mean = x.mean((0, 2, 3), keepdim=True)
        var = x.var((0, 2, 3), correction=1, keepdim=True)
        return (x - mean) / (var.sqrt() + 1e-3)


class Network(nn.Module):
    def __init__(self, batch_norm, dropout=0.0):
        """`batch_norm(channels)` makes the module behind each convolution."""
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 32, 3, bias=False), batch_norm(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 64, 3, bias=False), batch_norm(64)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)
        self.dropout = dropout

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2))
        x = F.dropout(self.fc1(torch.flatten(x, 1)), self.dropout, self.training)
        return F.log_softmax(self.fc2(F.relu(x)), dim=1)

    def named(self):
        """The parameters under the names of `PARAMETERS`; those of an affine batch norm as bn1.w, bn1.b, …"""
        spelled = {"weight": "w", "bias": "b"}
        return {f"{n.rsplit('.', 1)[0]}.{spelled[n.rsplit('.', 1)[1]]}": p for n, p in self.named_parameters()}

    @torch.no_grad()
    def set_initial_values(self):
        named = self.named()
        for number, name, shape, fan_in in PARAMETERS:
            named[name].copy_(torch.tensor(initial_values(number, shape, fan_in)))
