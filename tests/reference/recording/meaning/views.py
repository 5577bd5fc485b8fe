"""Views, gather and the sources without randomness (docs/ops.md)."""

import numpy as np
import torch
import torch.nn.functional as F

from .vjp import transpose


def _slices(starts, stops, steps):
    return tuple(slice(a, o, s) for a, o, s in zip(starts, stops, steps))


def _unslice(g, shape, starts, steps):
    result = torch.zeros(shape, dtype=g.dtype)
    stops = [a + (n - 1) * s + 1 if n else a for a, n, s in zip(starts, g.shape, steps)]
    result[_slices(starts, stops, steps)] = g
    return result


def _pad(x, low, high, value):
    # F.pad wants the last dim first.
    pairs = [side for d in reversed(range(x.dim())) for side in (low[d], high[d])]
    return F.pad(x, pairs, value=value)


def _gather(x, index, dim):
    index = index.long()
    inside = (index >= 0) & (index < x.shape[dim])
    gathered = x.gather(dim, torch.where(inside, index, 0))
    # PyTorch raises out of range; fusejit gives NaN, or 0 where the dtype has none.
    return torch.where(inside, gathered, torch.nan if x.is_floating_point() else 0)


def _gather_grad(g, index, dim, shape):
    index = index.long()
    inside = (index >= 0) & (index < shape[dim])
    if not g.is_floating_point():
        return torch.zeros(shape, dtype=g.dtype).scatter_add(dim, torch.where(inside, index, 0), torch.where(inside, g, 0))
    return transpose(lambda x: x.gather(dim, torch.where(inside, index, 0)), shape, torch.where(inside, g, 0))


def _one_hot(index, num_classes, dtype):
    hot = index.long().unsqueeze(-1) == torch.arange(num_classes)
    return hot.to(_FILLED.get(dtype, torch.float64))


_FILLED = {
    "bool": torch.bool,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


def _full(shape, value, dtype):
    if dtype == "f32":
        value = float(np.float32(value))
    return torch.full(shape, value, dtype=_FILLED.get(dtype, torch.float64))


def _constant(shape, dtype, data):
    if dtype == "f32":
        data = [float(np.float32(v)) for v in data]
    return torch.tensor(data, dtype=_FILLED.get(dtype, torch.float64)).reshape(shape)


def _iota(shape, dim, dtype):
    along = torch.arange(shape[dim], dtype=_FILLED.get(dtype, torch.float64))
    return along.reshape([-1 if d == dim else 1 for d in range(len(shape))]).expand(shape)


MEANING = {
    "reshape": lambda x, shape: x.reshape(shape),
    "flatten": torch.flatten,
    "permute": lambda x, dims: x.permute(dims),
    "squeeze": lambda x, dim: x.squeeze(dim),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim),
    "expand": lambda x, shape: x.expand(shape),
    "slice": lambda x, **bounds: x[_slices(**bounds)],
    "unslice": _unslice,
    "pad": _pad,
    "concat": lambda *operands, dim: torch.cat(operands, dim),
    "flip": lambda x, dims: x.flip(dims),
    "gather": _gather,
    "gather_grad": _gather_grad,
    "one_hot": _one_hot,
    "full": _full,
    "constant": _constant,
    "iota": _iota,
}
