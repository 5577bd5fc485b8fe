"""resnet18_curve.npz: 100 losses of ResNet-18 on the first 100 batches of Fashion-MNIST.

Batches of 32 in file order, the one channel three times. A pixel p becomes f32((p/255 - 0.2860) / 0.3530), computed in
f64 and rounded once. Initial values are those of training_steps.py. The network runs in f64 (`loss_f64`) and in f32
(`loss_f32`); `tolerance_f64` and `tolerance_f32` are 8 times what runs in that dtype strayed from `loss_f64` up to that
step, over runs whose initial weights differ in the last bit of the dtype. In f64 no value crosses a kink of relu or
max-pool and the curve is sharp to the end; in f32 some do from the second step on, and later losses are those of another
training. So the mean of the last 20 has a tolerance too (`late_tolerance_f32`), three times what it strayed.
"""

import numpy as np
import torch
import torch.nn.functional as F

from .idx import read_idx
from .inputs import uniform
from .networks import CLASSES, BasicBlock, ResNet
from .npz import version_numbers, write_npz
from .training_steps import initial_value, values_of

STEPS, BATCH = 100, 32
HYPER = {"lr": 0.001, "momentum": 0.9}


def batches(data, steps, batch):
    """The first training images [steps,batch,1,28,28] and their labels, in file order."""
    pixels = read_idx(data / "train-images-idx3-ubyte.gz")[: steps * batch]
    labels = read_idx(data / "train-labels-idx1-ubyte.gz")[: steps * batch]
    images = ((pixels / 255.0 - 0.2860) / 0.3530).astype(np.float32).reshape(steps, batch, 1, 28, 28)
    return images, labels.astype(np.int64).reshape(steps, batch)


def initial_network(dtype, nudged, width=64):
    """nudged: the number of a run whose initial values differ by up to the last bit of their dtype, or None."""
    network = ResNet(BasicBlock, (2, 2, 2, 2), CLASSES, width).to(dtype)
    with torch.no_grad():
        for name, value in values_of(network).items():
            shape = list(value.shape)
            value.copy_(torch.tensor(initial_value(name, shape)))
            if nudged is not None:
                noise = torch.tensor(uniform(f"{name} {nudged}", shape, -1, 1)).to(dtype)
                value.mul_(1 + torch.finfo(dtype).eps * noise)
    return network


def _losses(dtype, images, labels, nudged=None):
    network = initial_network(dtype, nudged)
    steps = torch.optim.SGD(network.parameters(), **HYPER)
    losses = []
    for x, target in zip(images, labels):
        steps.zero_grad()
        loss = F.cross_entropy(network(torch.tensor(x).to(dtype).expand(-1, 3, -1, -1)), torch.tensor(target))
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return np.array(losses)


def record(folder, data):
    torch.set_num_threads(1)
    images, labels = batches(data, STEPS, BATCH)
    arrays = {}
    for label, dtype, nudged_runs, smallest in (("f64", torch.float64, 1, 1e-9), ("f32", torch.float32, 3, 1e-5)):
        losses = arrays[f"loss_{label}"] = _losses(dtype, images, labels)
        runs = np.array([losses] + [_losses(dtype, images, labels, run) for run in range(nudged_runs)])
        strayed = np.abs(runs - arrays["loss_f64"]).max(axis=0)
        arrays[f"tolerance_{label}"] = smallest + 8 * np.maximum.accumulate(strayed)
        late = np.abs(runs[:, 80:].mean(axis=1) - arrays["loss_f64"][80:].mean()).max()
        arrays[f"late_tolerance_{label}"] = np.array([smallest + 3 * late])
        some = [0, 9, 49, 99]
        print(f"resnet18_curve in {label}: {losses[some]}, tolerance {arrays[f'tolerance_{label}'][some]}")
    arrays["first_batch_sum"] = np.array(images[0].astype(np.float64).sum())
    arrays["first_labels"] = labels[0]
    arrays.update({name: np.array(value) for name, value in HYPER.items()})
    arrays["torch_version"] = version_numbers(torch.__version__)
    write_npz(folder / "resnet18_curve.npz", arrays)
