"""What the twins of the examples share: values to begin with, and how far f32 may stray."""

import numpy as np
import torch
from torch import nn

from ..inputs import uniform
from ..training_steps import described, initial_value, values_of

STEPS = 20
_NUDGED_RUNS = 3


class Function(nn.Module):
    """A function as a layer of a Sequential."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def bytes_of(label, count):
    """Bytes below 56, of a sequence that `label` picks."""
    return np.floor(uniform(label, [count], 0, 56)).astype(np.uint8)


class Run:
    """One run of a twin: its dtype, and how its numbers begin."""

    def __init__(self, dtype, nudged=None):
        self.dtype, self.nudged = dtype, nudged

    def begin(self, network):
        """The network in this dtype, its values those of their names (training_steps.py)."""
        network.to(self.dtype)
        with torch.no_grad():
            for name, value in values_of(network).items():
                value.copy_(self.moved(name, initial_value(name, list(value.shape))))
        return network

    def moved(self, label, values):
        """f32 values in this dtype; in a nudged run each differs by at most the last bit of that."""
        values = torch.tensor(values).to(self.dtype)
        if self.nudged is None:
            return values
        noise = torch.tensor(uniform(f"{label} {self.nudged}", list(values.shape), -1, 1)).to(self.dtype)
        return values * (1 + torch.finfo(self.dtype).eps * noise)


def nudged_runs(count=_NUDGED_RUNS):
    return [Run(torch.float32, nudged) for nudged in (None, *range(count))]


def tolerance(meant, runs, least):
    """[STEPS,...]: four times what any run strayed up to each step, but `least`."""
    strayed = np.max([np.abs(run - meant) for run in runs], axis=0)
    return least + 4 * np.maximum.accumulate(strayed, axis=0)


def curve(train):
    """train(run) gives an array [STEPS,...] of what is compared: `meant` in f64, and the `tolerance` of runs in f32, of
    which weights and images differ in the last bit."""
    meant = train(Run(torch.float64))
    return {"meant": meant, "tolerance": tolerance(meant, [train(run) for run in nudged_runs()], 1e-6)}


def curve_in_f64(train):
    """`f64`, and `f64_tolerance` of runs in f64 that differ in its last bit."""
    meant = train(Run(torch.float64))
    runs = [train(Run(torch.float64, nudged)) for nudged in range(_NUDGED_RUNS)]
    return {"f64": meant, "f64_tolerance": tolerance(meant, runs, 1e-9)}


def rows_of(values):
    """A row for each tensor by name (training_steps.py): of the values that a network ends with."""
    return np.array([described(name, value) for name, value in sorted(values.items())])


def row_tolerance(meant, runs):
    """[rows]: four times what any run strayed in norm and product, relative to the norm, and in its largest value and
    samples, relative to the largest; plus 1e-6."""
    scale = np.stack([meant[:, 0], meant[:, 1], meant[:, 1], *[meant[:, 0]] * (meant.shape[1] - 3)], axis=1)
    return 1e-6 + 4 * np.max([np.abs(run - meant) / scale for run in runs], axis=(0, 2))
