"""tests/reference/random_networks: of the random networks that tests/random has written to a folder, few and small ones
that have every kind of block, norm, activation, window, head and loss between them, with PyTorch's loss, running
statistics and gradients.
"""

import pathlib
import re

import numpy as np
import torch

from . import graph_reader
from .npz import version_numbers, write_npz

_MOST_BYTES = 40_000  # of one network's arrays
_OPTIMISERS = ("descent", "momentum", "adam")


def arrays(path):
    with np.load(path) as archive:
        return {name: torch.from_numpy(archive[name]) for name in archive.files}


def step(graph, inputs, trained):
    """The forward pass of a written network, whose first result is its loss, and the gradients by `trained`."""
    for name in trained:
        inputs[name].requires_grad_()
    forward = graph.compute(inputs)
    gradients = torch.autograd.grad(forward[0], [inputs[name] for name in trained], allow_unused=True)
    gradients = [torch.zeros_like(inputs[name]) if g is None else g for name, g in zip(trained, gradients)]
    return [value.detach() for value in forward], gradients


def trained_of(names):
    """The parameters that a step's results are gradients or updates of."""
    return [name.split("_of_", 1)[1] for name in names if name.startswith(("gradient_of_", "update_of_"))]


def _words(stem):
    """What a network is made of: the words of its description, without sizes, and the ops of its text."""
    first, text = stem.with_suffix(".fj").read_text().split("\n", 1)
    words = set(re.findall(r"[a-z_]{3,}[\w:]*", first.split("|", 1)[1])) | set(re.findall(r"= (\w+)\(", text))
    return words, first.split()[-1] in _OPTIMISERS


def _chosen(folder):
    candidates = {}
    for path in sorted(folder.glob("*.fj"), key=lambda p: int(p.stem)):
        stem = path.with_suffix("")
        words, has_optimiser = _words(stem)
        size = sum(stem.with_suffix(ending).stat().st_size for ending in (".in.npz", ".out.npz"))
        if size <= _MOST_BYTES and not has_optimiser:
            candidates[stem] = words
    missing = set().union(*candidates.values())
    while missing:
        best = max(candidates, key=lambda stem: len(candidates[stem] & missing))
        missing -= candidates[best]
        yield best


def record(written, target):
    """`written`: the folder of FUSEJIT_WRITE_NETWORKS."""
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    chosen = list(_chosen(pathlib.Path(written)))
    for stem in chosen:
        text = stem.with_suffix(".fj").read_text()
        inputs = arrays(stem.with_suffix(".in.npz"))
        trained = trained_of(arrays(stem.with_suffix(".out.npz")))
        forward, gradients = step(graph_reader.read(text), inputs, trained)
        expected = {f"out{i}": value for i, value in enumerate(forward)}
        expected.update({f"d_{name}": gradient for name, gradient in zip(trained, gradients)})
        (target / f"{stem.name}.fj").write_text(text, encoding="ascii")
        write_npz(target / f"{stem.name}.in.npz", {name: value.detach().numpy() for name, value in inputs.items()})
        expected = {name: value.numpy() for name, value in expected.items()}
        expected["torch_version"] = version_numbers(torch.__version__)
        write_npz(target / f"{stem.name}.out.npz", expected)
    print(f"{len(chosen)} networks")
