"""Convolutions and matrix products (docs/ops.md)."""

import torch
import torch.nn.functional as F

from .vjp import vjp


def padded(x, padding, value=0.0):
    """x with `padding` = [top, left, bottom, right] cells around each image."""
    top, left, bottom, right = padding
    return F.pad(x, (left, right, top, bottom), value=value)


def _conv2d(x, w, stride, padding, dilation, groups):
    return F.conv2d(padded(x, padding), w, stride=stride, dilation=dilation, groups=groups)


def _conv2d_input_grad(dy, w, input_size, groups, **common):
    shape = [dy.shape[0], w.shape[1] * groups, *input_size]
    zeros = torch.zeros(shape, dtype=dy.dtype)
    return vjp(lambda x: _conv2d(x, w, groups=groups, **common), zeros, dy)


def _conv2d_weight_grad(x, dy, kernel_size, groups, **common):
    shape = [dy.shape[1], x.shape[1] // groups, *kernel_size]
    zeros = torch.zeros(shape, dtype=dy.dtype)
    return vjp(lambda w: _conv2d(x, w, groups=groups, **common), zeros, dy)


MEANING = {
    "conv2d": _conv2d,
    "conv2d_input_grad": _conv2d_input_grad,
    "conv2d_weight_grad": _conv2d_weight_grad,
    "matmul": torch.matmul,
    "linear": F.linear,
}
