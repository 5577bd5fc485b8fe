"""Integer arithmetic (docs/ops.md) in Python's own integers: PyTorch raises or traps on division by zero and on
MIN by -1, where fusejit returns the values below. Narrow integers are held against PyTorch where it answers."""

import numpy as np
import torch


def _wrapped(value, info):
    value &= (1 << info.bits) - 1
    return value - (1 << info.bits) if info.min < 0 and value >> (info.bits - 1) else value


def _floor_divide(a, b):
    return a // b if b else 0


def _remainder(a, b):
    return a % b if b else 0


def _fmod(a, b):
    return (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else 0


def _pow(a, b, bits):
    if b >= 0:
        return pow(a, b, 1 << bits)
    if a == 1:
        return 1
    return (1 if b % 2 == 0 else -1) if a == -1 else 0


MEANING = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul": lambda a, b, bits: a * b,
    "floor_divide": lambda a, b, bits: _floor_divide(a, b),
    "remainder": lambda a, b, bits: _remainder(a, b),
    "fmod": lambda a, b, bits: _fmod(a, b),
    "pow": _pow,
    "neg": lambda a, bits: -a,
    "abs": lambda a, bits: abs(a),
    "square": lambda a, bits: a * a,
}


def _check(of_integers, of_torch, operands, result):
    """PyTorch says the same of all operands but divisors of 0 and negative exponents."""
    known = torch.ones(result.shape, dtype=torch.bool)
    if len(operands) == 2:
        known = operands[1] >= 0 if of_integers is _pow else operands[1] != 0
    if not torch.equal(of_torch(*(t[known] for t in operands)), result[known]):
        raise ValueError("PyTorch differs")


def dispatch(of_integers, of_floats):
    """`of_integers` where the operands are integers, else `of_floats`."""

    def apply(*operands):
        if operands[0].is_floating_point():
            return of_floats(*operands)
        dtype = torch.result_type(*operands) if len(operands) == 2 else operands[0].dtype
        info = torch.iinfo(dtype)
        arrays = np.broadcast_arrays(*(t.numpy() for t in operands))
        values = [
            _wrapped(of_integers(*(int(v) for v in vs), info.bits), info) for vs in zip(*(a.ravel() for a in arrays))
        ]
        result = torch.tensor(np.array(values, dtype=np.int64).reshape(arrays[0].shape)).to(dtype)
        if info.bits < 32:
            _check(of_integers, of_floats, [torch.tensor(a) for a in arrays], result)
        return result

    return apply
