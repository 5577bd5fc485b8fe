"""Input values made by integer arithmetic only, so that every machine and every NumPy makes the same ones."""

import zlib

import numpy as np

_F32 = np.float32


def _hashed(seed, count):
    """`count` 64-bit words of the SplitMix64 sequence that starts at `seed`."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(label, shape, low=-2.0, high=2.0):
    """f32 values in [low, high), drawn from a sequence that `label` picks."""
    count = int(np.prod(shape, dtype=np.int64))
    fraction = (_hashed(zlib.crc32(label.encode()), count) >> np.uint64(40)).astype(np.float64) * 2.0**-24
    return (low + (high - low) * fraction).astype(_F32).reshape(shape)


def integers(label, shape, low, high, dtype=np.int64):
    """Integers in [low, high)."""
    count = int(np.prod(shape, dtype=np.int64))
    words = _hashed(zlib.crc32(label.encode()), count) >> np.uint64(33)
    return (low + (words % np.uint64(high - low)).astype(np.int64)).astype(dtype).reshape(shape)


def booleans(label, shape):
    return integers(label, shape, 0, 2).astype(bool)


def f32(*values):
    return np.array(values, dtype=_F32)


def both_signs(*values):
    return np.array([s * v for v in values for s in (1, -1)], dtype=_F32)


# The points at which f32 code breaks: zeros, denormals, the ends of the range, halves, integers near 2^23 and 2^24.
EDGES = np.concatenate(
    [
        both_signs(
            0.0,
            1.401298464324817e-45,
            1e-40,
            1.1754943508222875e-38,
            1e-20,
            1e-8,
            0.25,
            0.5,
            0.75,
            1.0,
            1.5,
            2.5,
            3.7,
            10.0,
            20.0,
            50.5,
            88.0,
            100.0,
            1e5,
            8388607.5,
            16777216.0,
            1e10,
            1e30,
            3.4028234663852886e38,
            np.inf,
        ),
        f32(np.nan),
    ]
)

# Every ordered pair of these is an edge case of a two-operand function.
PAIR_EDGES = np.concatenate([both_signs(0.0, 1e-40, 0.5, 1.0, 1.5, 2.0, 3.0, 7.25, 100.0, 1e30, np.inf), f32(np.nan)])


def all_pairs(values):
    first, second = np.meshgrid(values, values, indexing="ij")
    return first.reshape(-1), second.reshape(-1)


def without(values, condition):
    """The values for which `condition` (an array of booleans) is false."""
    return values[~condition]


def to_bf16_bits(values):
    """f32 values rounded to nearest even, as the upper 16 bits of their f32 pattern."""
    bits = np.asarray(values, dtype=_F32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    nan_bits = np.uint64(0x7FC0)
    return np.where(np.isnan(values), nan_bits, rounded).astype(np.uint16)


def from_bf16_bits(bits):
    return (bits.astype(np.uint32) << np.uint32(16)).view(_F32)
