"""Composite ops (docs/ops.md)."""

import torch
import torch.nn.functional as F


def _bias_add(x, b):
    return x + b.reshape([1, -1] + [1] * (x.dim() - 2))


def _hardsigmoid(x):
    # F.hardsigmoid's gradient in f64 is the f32 constant 1/6; autograd of the formula is exact.
    return torch.where((x > -3) & (x < 3), (x + 3) / 6, F.hardsigmoid(x).detach())


MEANING = {
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "selu": F.selu,
    "gelu": F.gelu,
    "silu": F.silu,
    "mish": F.mish,
    "softplus": F.softplus,
    "hardsigmoid": _hardsigmoid,
    "hardswish": F.hardswish,
    "softmax": F.softmax,
    "log_softmax": F.log_softmax,
    "bias_add": _bias_add,
}
