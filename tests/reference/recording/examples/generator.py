"""fusejit's default generator and the draws of its data loaders (docs/ops.md, sections 11 and 15; docs/data.md) for a
second time: the examples draw their images from it, and so do their twins."""

import numpy as np

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MASK = (1 << 64) - 1


def words(seed, stream, elements):
    """Philox4x32-10: the words of these elements (an array of indices), as u64."""
    elements = np.asarray(elements, dtype=np.uint64)
    block = elements // np.uint64(4)
    c = [block & _LOW, block >> _32, np.full_like(block, stream & 0xFFFFFFFF), np.full_like(block, stream >> 32)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> _32) ^ c[1] ^ np.uint64(k0), p1 & _LOW, (p0 >> _32) ^ c[3] ^ np.uint64(k1), p0 & _LOW]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.choose((elements % np.uint64(4)).astype(np.int64), c)


def seed_of(seed, number):
    return (seed * 0x100000001B3 + number) & _MASK


def permutation(count, seed):
    """random_permutation: Fisher and Yates over pairs of words."""
    order = list(range(count))
    pairs = words(seed, 0, np.arange(2 * count + 2))
    for i in range(count, 1, -1):
        word = int(pairs[2 * i]) << 32 | int(pairs[2 * i + 1])
        j = word * i >> 64
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


class Draws:
    """What the transforms of one example draw."""

    def __init__(self, seed, epoch, index):
        self._seed, self._stream, self._next = seed_of(seed, epoch), index + 1, 0

    def _word(self):
        high, low = words(self._seed, self._stream, [self._next, self._next + 1])
        self._next += 2
        return int(high) << 32 | int(low)

    def uniform(self):
        return (self._word() >> 11) * 2.0**-53

    def below(self, count):
        return self._word() * count >> 64


class Generator:
    def __init__(self, seed):
        self._seed, self._drawn = seed, 0

    def next_seed(self):
        self._drawn += 1
        return seed_of(self._seed, self._drawn - 1)

    def _bits24(self, shape):
        return (words(self.next_seed(), 0, np.arange(np.prod(shape))) >> np.uint64(8)).reshape(shape)

    def rand(self, *shape):
        return self._bits24(shape).astype(np.float32) * np.float32(2.0**-24)

    def randn(self, *shape):
        """Its log and its cos are not fusejit's: last bits differ."""
        high, low = self.rand(*shape), self.rand(*shape)
        v = high + (1 - low) * np.float32(2.0**-24)
        turn = self.rand(*shape) * np.float32(2 * np.pi)
        return np.sqrt(np.log(v) * np.float32(-2)) * np.cos(turn)

    def randint(self, high, *shape):
        word = (self._bits24(shape) << np.uint64(24)) + self._bits24(shape)
        return (word % np.uint64(high)).astype(np.int64)

    def weights(self, fan_in, *shape):
        """What a layer draws for a weight, and with the weight's fan for its bias."""
        fraction = words(self.next_seed(), 0, np.arange(np.prod(shape))) >> np.uint64(8)
        return ((fraction * 2.0**-23 - 1) * (1 / np.sqrt(float(fan_in)))).astype(np.float32).reshape(shape)


def kept_by_dropout(seed, stream, p, shape):
    """The mask of dropout in the step that has this seed."""
    threshold = np.uint64(np.ceil(p * 2.0**24))
    return ((words(seed, stream, np.arange(np.prod(shape))) >> np.uint64(8)) >= threshold).reshape(shape)
