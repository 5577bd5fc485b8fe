"""Records what PyTorch computes for every op, optimiser and the S4 network, as files that tests read without Python.

    python make_references.py                everything
    python make_references.py ops            the graphs and the manifest
    python make_references.py composed       functions made of ops: tests/reference/composed.npz
    python make_references.py optimisers     tests/reference/optim/*.npz
    python make_references.py layers         the layers of torch.nn: tests/reference/layers/*.npz
    python make_references.py networks       one step of whole networks: tests/reference/networks/*.npz
    python make_references.py curves         the loss curves; reads Fashion-MNIST (--data FOLDER)
    python make_references.py examples       the programs in examples/: tests/reference/examples/*.npz
    python make_references.py random_networks --written FOLDER      of tests/random: tests/reference/random_networks/*

The last is made when it is asked for alone. FUSEJIT_WRITE_NETWORKS=FOLDER FUSEJIT_RANDOM_NETWORKS=1-600
build/release/tests/random --gtest_filter=RandomNetworks.AreWritten writes the folder.

Images are apart, since they need Pillow and no PyTorch: python recording/images.py

Remaking with the same PyTorch changes no byte on the same kind of processor. See README.md beside this file.
"""

import argparse
import json
import os
import pathlib
import shutil

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is loaded; the number of threads is an order of sums

import torch  # noqa: E402

from recording.cases import all_cases  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FAMILIES = (
    "elementwise",
    "composite",
    "reductions",
    "views",
    "anchors",
    "pools",
    "norms",
    "losses",
    "half",
    "random",
    "blocks",
)


def make_ops():
    for family in FAMILIES:
        shutil.rmtree(HERE / family, ignore_errors=True)
    entries = [case.write(HERE) for case in all_cases()]
    graphs = [entry["graph"] for entry in entries]
    repeated = {g for g in graphs if graphs.count(g) > 1}
    if repeated:
        raise ValueError(f"two cases have the same name: {sorted(repeated)}")
    lines = ",\n".join("  " + json.dumps(entry) for entry in entries)
    (HERE / "manifest.json").write_text(
        f'{{"torch_version": "{torch.__version__}", "cases": [\n{lines}\n]}}\n', encoding="ascii"
    )
    print(f"{len(entries)} cases")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "parts",
        nargs="*",
        default=["ops", "composed", "optimisers", "layers", "networks", "curves", "examples"],
        help="ops, composed, optimisers, layers, networks, curves, examples (default: these), random_networks",
    )
    parser.add_argument("--written", help="folder of the networks that tests/random wrote, for random_networks")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder of the four IDX files")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if "ops" in arguments.parts:
        make_ops()
    if "composed" in arguments.parts:
        from recording import composed

        composed.record(HERE / "composed.npz")
    if "optimisers" in arguments.parts:
        from recording import optimisers

        optimisers.record(HERE / "optim")
    if "layers" in arguments.parts:
        from recording import layers

        layers.record(HERE / "layers")
    if "networks" in arguments.parts:
        from recording import training_steps

        training_steps.record(HERE / "networks")
    if "curves" in arguments.parts:
        from recording import autocast_curves, resnet_curve, s4_curves

        s4_curves.record(HERE, pathlib.Path(arguments.data))
        resnet_curve.record(HERE, pathlib.Path(arguments.data))
        autocast_curves.record(HERE, pathlib.Path(arguments.data))
    if "examples" in arguments.parts:
        from recording import examples

        examples.record(HERE)
    if "random_networks" in arguments.parts:
        from recording import random_networks

        if not arguments.written:
            parser.error("random_networks needs --written FOLDER")
        random_networks.record(arguments.written, HERE / "random_networks")


if __name__ == "__main__":
    main()
