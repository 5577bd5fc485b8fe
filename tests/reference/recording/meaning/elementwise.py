"""Element-wise ops (docs/ops.md) on float and bool tensors; integers.py has the arithmetic of integers."""

import numpy as np
import torch


def _sign(x):
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)


def _clamp(x, min, max):
    if not x.is_floating_point():
        low, high = (torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max)
        min, max = (low if min == -np.inf else min), (high if max == np.inf else max)
        return torch.clamp(x, min, max)
    # Bounds are rounded to the compute type, like every number. An infinite bound is no bound: PyTorch 2.15 would give
    # the gradient 0 to an x that is equal to it.
    low, high = (None if np.isinf(bound) else float(np.float32(bound)) for bound in (min, max))
    return torch.clamp(x, low, high) if low is not None or high is not None else x


def _logical(function):
    return lambda *operands: function(*(t != 0 for t in operands))


def _classified(of_floats, of_others):
    """PyTorch has no isnan and the like of bool tensors on every back end; the answer is a constant."""
    return lambda x: of_floats(x) if x.is_floating_point() else torch.full(x.shape, of_others)


def round_to_f16(array):
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float64)


def round_to_bf16(array):
    """Nearest even, once, from f64: the unit of the last of 8 bits, or of the smallest denormal (2^-133)."""
    _, exponent = np.frexp(np.where(np.isfinite(array), array, 0))
    unit = np.exp2(np.maximum(exponent - 8, -133).astype(np.float64))
    rounded = np.where(np.isfinite(array), np.rint(array / unit) * unit, array)
    return np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, array), rounded)


_ROUNDED = {
    "f16": round_to_f16,
    "bf16": round_to_bf16,
    "f64": lambda a: a,
    "f32": lambda a: a.astype(np.float32).astype(np.float64),
}


class _CastBetweenFloats(torch.autograd.Function):
    """A cotangent has the dtype of its value, so the gradient is rounded too: to the dtype cast from."""

    @staticmethod
    def forward(ctx, x, dtype, source):
        ctx.source = source
        with np.errstate(over="ignore"):
            return torch.tensor(_ROUNDED[dtype](x.detach().numpy()))

    @staticmethod
    def backward(ctx, g):
        return torch.tensor(_ROUNDED[ctx.source](g.numpy())), None, None


INTEGERS = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def _saturated(x, dtype):
    """Toward zero, saturating, NaN to 0."""
    info = np.iinfo(INTEGERS[dtype])
    whole = [0 if np.isnan(v) else int(np.clip(np.trunc(v), -(2.0**70), 2.0**70)) for v in x.detach().numpy().ravel()]
    clipped = [min(max(v, info.min), info.max) for v in whole]
    return torch.tensor(np.array(clipped, dtype=info.dtype).reshape(x.shape))


def _cast(x, dtype, source="f64"):
    """`source` is the declared dtype of x, whose tensor is f64 in any case."""
    if dtype == "bool":
        return x != 0
    if dtype in INTEGERS:
        return _saturated(x, dtype) if x.is_floating_point() else torch.tensor(x.numpy().astype(INTEGERS[dtype]))
    if not x.is_floating_point():
        # From the integer itself: i64 → f64 → f32 would round twice.
        narrow = {"f32": np.float32, "f64": np.float64}.get(dtype)
        if narrow is not None:
            return torch.tensor(x.numpy().astype(narrow).astype(np.float64))
        return torch.tensor(_ROUNDED[dtype](x.numpy().astype(np.float64)))
    return _CastBetweenFloats.apply(x, dtype, source)


MEANING = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "floor_divide": lambda a, b: torch.floor_divide(a.detach(), b.detach()),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "pow": torch.pow,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": _sign,
    "square": lambda x: x * x,
    "reciprocal": torch.reciprocal,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "sin": torch.sin,
    "cos": torch.cos,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round": torch.round,
    "clamp": _clamp,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "logical_and": _logical(torch.logical_and),
    "logical_or": _logical(torch.logical_or),
    "logical_xor": _logical(torch.logical_xor),
    "logical_not": _logical(torch.logical_not),
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "bitwise_not": torch.bitwise_not,
    "isnan": _classified(torch.isnan, False),
    "isinf": _classified(torch.isinf, False),
    "isfinite": _classified(torch.isfinite, True),
    "where": torch.where,
    "cast": _cast,
    "detach": lambda x: x.detach(),
}
