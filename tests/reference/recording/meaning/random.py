"""Philox4x32-10 and the ops that draw from it (docs/ops.md). PyTorch has no such generator on the CPU: this is a
second implementation from the text, checked against the two vectors that the text prints."""

import math

import numpy as np
import torch

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW = 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = _M0 * c[0], _M1 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & _LOW, (p0 >> 32) ^ c[3] ^ k[1], p0 & _LOW]
        k = [(k[0] + _W0) & _LOW, (k[1] + _W1) & _LOW]
    return c


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [
    0xD16CFE09,
    0x94FDCCEB,
    0x5001E420,
    0x24126EA1,
]


def _words(seed, stream, shape):
    """Bits 8…31 of the word of each element."""
    key = [seed & _LOW, (seed >> 32) & _LOW]
    words = []
    for block in range(math.ceil(math.prod(shape) / 4)):
        words += philox([block & _LOW, block >> 32, stream & _LOW, (stream >> 32) & _LOW], key)
    return np.array(words[: math.prod(shape)], dtype=np.int64).reshape(shape) >> 8


def _rand(seed, shape, stream, dtype):
    fraction = _words(int(seed), stream, shape) * 2.0**-24
    kept_bits = {"f32": 24, "f64": 24, "f16": 11, "bf16": 8}[dtype]
    # Toward zero at the dtype's own precision; the smallest drawn number but zero, 2^-24, is a denormal of f16.
    _, exponent = np.frexp(fraction)
    unit = np.exp2(np.maximum(exponent - kept_bits, -24).astype(np.float64))
    return torch.tensor(np.floor(fraction / unit) * unit)


def _dropout(x, seed, p, stream, source="f32"):
    threshold = math.ceil(p * 2.0**24)
    kept = torch.tensor(_words(int(seed), stream, list(x.shape)) >= threshold)
    scale = 1 / (1 - p) if p < 1 else 0.0
    if source != "f64":  # the compute type
        scale = float(np.float32(scale))
    return torch.where(kept, x * scale, 0.0)


MEANING = {"rand": _rand, "dropout": _dropout}
