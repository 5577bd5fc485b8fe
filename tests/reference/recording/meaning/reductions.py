"""Reductions (docs/ops.md)."""

import torch


def _in_f64_or_i64(x):
    return x if x.is_floating_point() else x.long()


def _sum(x, dim, keepdim):
    return _in_f64_or_i64(x).sum(dim, keepdim=keepdim) if dim else _in_f64_or_i64(x)


def _prod(x, dim, keepdim):
    """PyTorch reduces one dim at a time; the reduced dims are made one first, so that its own gradient is asked."""
    kept = [d for d in range(x.dim()) if d not in dim]
    shape = [x.shape[d] for d in kept]
    result = _in_f64_or_i64(x).permute(kept + list(dim)).reshape(shape + [-1] if x.numel() else shape + [0]).prod(-1)
    return result.reshape([1 if d in dim else x.shape[d] for d in range(x.dim())]) if keepdim else result


MEANING = {
    "sum": _sum,
    "mean": lambda x, dim, keepdim: x.mean(dim, keepdim=keepdim),
    "prod": _prod,
    "amax": lambda x, dim, keepdim: x.amax(dim, keepdim=keepdim),
    "amin": lambda x, dim, keepdim: x.amin(dim, keepdim=keepdim),
    "any": lambda x, dim, keepdim: (x != 0).any(dim, keepdim=keepdim),
    "all": lambda x, dim, keepdim: (x != 0).all(dim, keepdim=keepdim),
    "var": lambda x, dim, correction, keepdim: x.var(dim, correction=correction, keepdim=keepdim),
    "argmax": lambda x, dim, keepdim: (
        x.long().argmax(dim, keepdim) if x.dtype == torch.bool else x.argmax(dim, keepdim)
    ),
    "argmin": lambda x, dim, keepdim: (
        x.long().argmin(dim, keepdim) if x.dtype == torch.bool else x.argmin(dim, keepdim)
    ),
}
