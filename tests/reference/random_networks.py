"""Random networks in training (tests/random) against PyTorch, in f64: the loss, running statistics, the gradient of
every parameter, its update and the optimiser's state. PyTorch differentiates the forward pass by itself; what it is
held against is the graph interpreter's, which machine code is held against in tests/random/network_test.cpp.

    python random_networks.py build/release/tests/random                 seeds 1 to 5000
    python random_networks.py build/release/tests/random --seeds 7-7

Exits with 77 where there is no PyTorch.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)

from recording import graph_reader
from recording.random_networks import arrays, step, trained_of

BOUND = 1e-9  # of the largest of all results, or of an array's own largest; the farthest of 5,000 is written at the end
AT_A_TIME = 50


def expected(graph, inputs, names):
    """What PyTorch has for `names`, the results of a training step."""
    trained = trained_of(names)
    forward, gradients = step(graph, inputs, trained)
    found = dict(zip(names, forward))
    for name, g in zip(trained, gradients):
        found["gradient_of_" + name] = moved = g
        if "momentum_of_" + name in names:
            adam = "square_of_" + name in names
            moved = inputs[name + "_momentum"] * 0.9 + g * (0.1 if adam else 1)
            found["momentum_of_" + name] = moved
            if adam:
                square = inputs[name + "_var"] * 0.99 + g * g * 0.01
                found["square_of_" + name] = square
                moved = moved / (square.sqrt() + 1e-6)
        if "update_of_" + name in names:
            found["update_of_" + name] = inputs[name].detach() - inputs["rate"] * moved
    return {name: found[name] for name in names}


def difference(stem):
    """The largest, relative to the results, and its name."""
    graph = graph_reader.read(stem.with_suffix(".fj").read_text())
    got = arrays(stem.with_suffix(".out.npz"))
    want = expected(graph, arrays(stem.with_suffix(".in.npz")), list(got))
    of_all = max(float(w.abs().max()) for w in want.values() if w.numel())
    worst = (0.0, "")
    for name, w in want.items():
        if got[name].shape != w.shape:
            return float("inf"), f"{name}: {list(got[name].shape)} instead of {list(w.shape)}"
        if not w.numel():
            continue
        off = float((got[name] - w).abs().max()) / max(float(w.abs().max()), 1e-3 * of_all, 1e-300)
        worst = max(worst, (off if off == off else float("inf"), name))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="the program of tests/random")
    parser.add_argument("--seeds", default="1-5000", metavar="FIRST-LAST")
    arguments = parser.parse_args()
    first, last = map(int, arguments.seeds.split("-"))
    torch.set_num_threads(1)
    farthest, failed = (0.0, "", 0), 0
    for begin in range(first, last + 1, AT_A_TIME):
        end = min(begin + AT_A_TIME - 1, last)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [arguments.binary, "--gtest_filter=RandomNetworks.AreWritten"],
                env={**os.environ, "FUSEJIT_WRITE_NETWORKS": folder, "FUSEJIT_RANDOM_NETWORKS": f"{begin}-{end}"},
                check=True,
                stdout=subprocess.DEVNULL,
            )
            for seed in range(begin, end + 1):
                stem = pathlib.Path(folder) / str(seed)
                off, name = difference(stem)
                farthest = max(farthest, (off, name, seed))
                if off <= BOUND:
                    continue
                failed += 1
                print(f"{seed}: {name} is off by {off:.2g}\n{stem.with_suffix('.fj').read_text().splitlines()[0]}")
    print(f"{last - first + 1} networks, {failed} differ; the farthest is {farthest[2]}, {farthest[1]}: {farthest[0]:.2g}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
