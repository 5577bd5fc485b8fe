"""Weights of PyTorch's networks go through fusejit and back: `fusejit convert` reads each file that PyTorch wrote, PyTorch
reads what it writes with strict=True, and the network computes what it did before, to the bit.

    python round_trip.py build/release/bin/fusejit           the small networks of tests/reference/torchvision
    python round_trip.py build/release/bin/fusejit FOLDER    whole networks too, of make_onnx.py --large FOLDER: through
                                                             fusejit's own networks, and from the ONNX model as well

Needs safetensors, torch and torchvision.
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy as np
import safetensors.torch
import torch

from recording import small_networks, whole_networks

HERE = pathlib.Path(__file__).resolve().parent
FORMATS = (".npz", ".safetensors")


def read(path):
    if path.suffix == ".safetensors":
        return safetensors.torch.load_file(path)
    with np.load(path) as archive:
        return {name: torch.from_numpy(archive[name]) for name in archive.files}


def computed(network, state, x):
    network.load_state_dict(state, strict=True)
    with torch.no_grad():
        return network.eval().double()(x.double())


def check(fusejit, folder, name, make, sources, options):
    with np.load(folder / f"{name}.npz") as recorded:
        x, y = torch.from_numpy(recorded["x"]), torch.from_numpy(recorded["y"])
    before = read(folder / f"{name}.weights.safetensors")
    with tempfile.TemporaryDirectory() as scratch:
        for source in sources:
            for ending in FORMATS:
                target = pathlib.Path(scratch) / f"again{ending}"
                subprocess.run([fusejit, "convert", folder / f"{name}{source}", target, *options], check=True,
                               stdout=subprocess.DEVNULL)
                after = read(target)
                for key, value in after.items():
                    assert torch.equal(value, before[key]) and value.dtype == before[key].dtype, (name, source, key)
                assert torch.equal(computed(make(), after, x), y), (name, source, ending)
                print(f"{name}{source} -> {ending}: {len(after)} values of {len(before)}, the same results")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fusejit")
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    weights = [f".weights{ending}" for ending in FORMATS]
    for name, (make, _) in small_networks.NETWORKS.items():
        check(arguments.fusejit, HERE / "torchvision", name, make, weights, [])
    for name, (make, _) in whole_networks.NETWORKS.items() if arguments.folder else ():
        check(arguments.fusejit, arguments.folder, name, make, [*weights, ".names.onnx"], ["--model", name])


if __name__ == "__main__":
    main()
