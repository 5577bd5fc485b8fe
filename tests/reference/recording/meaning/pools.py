"""Pooling and upsampling (docs/ops.md)."""

import math

import torch
import torch.nn.functional as F

from .anchors import padded
from .vjp import transpose, vjp


def _max_pool2d(x, kernel_size, stride, padding, dilation):
    top, left, bottom, right = padding
    if top == bottom and left == right and 2 * top <= kernel_size[0] and 2 * left <= kernel_size[1]:
        return F.max_pool2d(x, kernel_size, stride, [top, left], dilation)
    return F.max_pool2d(padded(x, padding, -math.inf), kernel_size, stride, 0, dilation)


def _max_pool2d_grad(x, dy, **attributes):
    return vjp(lambda t: _max_pool2d(t, **attributes), x, dy)


def _max_pool2d_tap(x, y, kernel_size, stride, padding):
    top, left, _, _ = padding
    image = padded(x, padding, -math.inf)
    largest, places = F.max_pool2d(image, kernel_size, stride, return_indices=True)
    if not torch.equal(largest, y):
        raise ValueError("y is not the maximum")
    width, (rows, columns) = image.shape[3], y.shape[2:]
    down = places // width - torch.arange(rows).reshape(-1, 1) * stride[0]
    across = places % width - torch.arange(columns) * stride[1]
    return (down * kernel_size[1] + across).to(torch.uint8)


def _max_pool2d_tap_grad(dy, tap, input_size, kernel_size, stride, padding):
    top, left, bottom, right = padding
    height, width = input_size[0] + top + bottom, input_size[1] + left + right
    down = torch.arange(dy.shape[2]).reshape(-1, 1) * stride[0] + tap // kernel_size[1]
    across = torch.arange(dy.shape[3]) * stride[1] + tap % kernel_size[1]
    places = (down * width + across).flatten(2)
    dx = torch.zeros(*dy.shape[:2], height * width, dtype=dy.dtype).scatter_add(2, places, dy.flatten(2))
    return dx.reshape(*dy.shape[:2], height, width)[:, :, top : top + input_size[0], left : left + input_size[1]]


def _avg_pool2d(x, kernel_size, stride, padding, count_include_pad):
    top, left, bottom, right = padding
    if top == bottom and left == right and 2 * top <= kernel_size[0] and 2 * left <= kernel_size[1]:
        return F.avg_pool2d(x, kernel_size, stride, [top, left], count_include_pad=count_include_pad)
    means = F.avg_pool2d(padded(x, padding), kernel_size, stride)
    if count_include_pad:
        return means
    return means / F.avg_pool2d(padded(torch.ones_like(x), padding), kernel_size, stride)


def _nearest(x, output_size):
    # PyTorch multiplies by an f32 scale, which can pick another cell than ⌊i·H/P⌋: such sizes are refused.
    rows, columns = ([min(i * n // p, n - 1) for i in range(p)] for n, p in zip(x.shape[2:], output_size))
    numbered = torch.arange(x[0, 0].numel(), dtype=x.dtype).reshape(1, 1, *x.shape[2:])
    if not torch.equal(F.interpolate(numbered, size=output_size), numbered[:, :, rows][:, :, :, columns]):
        raise ValueError(f"nearest from {list(x.shape)} to {output_size} is not the same in PyTorch")
    return F.interpolate(x, size=output_size, mode="nearest")


def _bilinear(x, output_size, align_corners):
    return F.interpolate(x, size=output_size, mode="bilinear", align_corners=align_corners)


def _avg_pool2d_grad(dy, input_size, **attributes):
    return transpose(lambda x: _avg_pool2d(x, **attributes), [*dy.shape[:2], *input_size], dy)


def _transposed(resize):
    """The transpose of a function whose output size is that of `dy`."""

    def apply(dy, input_size, **attributes):
        output_size = list(dy.shape[2:])
        return transpose(lambda x: resize(x, output_size=output_size, **attributes), [*dy.shape[:2], *input_size], dy)

    return apply


def _adaptive_avg_pool2d(x, output_size):
    return F.adaptive_avg_pool2d(x, output_size)


MEANING = {
    "max_pool2d": _max_pool2d,
    "max_pool2d_grad": _max_pool2d_grad,
    "max_pool2d_tap": _max_pool2d_tap,
    "max_pool2d_tap_grad": _max_pool2d_tap_grad,
    "avg_pool2d": _avg_pool2d,
    "avg_pool2d_grad": _avg_pool2d_grad,
    "adaptive_avg_pool2d": _adaptive_avg_pool2d,
    "adaptive_avg_pool2d_grad": _transposed(_adaptive_avg_pool2d),
    "upsample_nearest2d": _nearest,
    "upsample_nearest2d_grad": _transposed(_nearest),
    "upsample_bilinear2d": _bilinear,
    "upsample_bilinear2d_grad": _transposed(_bilinear),
}
