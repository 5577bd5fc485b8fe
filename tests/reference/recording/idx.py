"""Reads the gzipped IDX files in which MNIST and Fashion-MNIST are published."""

import gzip

import numpy as np


def read_idx(path):
    with gzip.open(path, "rb") as file:
        data = file.read()
    if data[:3] != b"\0\0\x08":
        raise ValueError(f"{path}: not an IDX file of bytes")
    rank = data[3]
    shape = np.frombuffer(data, ">i4", rank, 4)
    return np.frombuffer(data, np.uint8, -1, 4 + 4 * rank).reshape(shape)
