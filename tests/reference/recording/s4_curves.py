"""s4_*curve.npz: 20 losses of the S4 network on the first 20 batches of Fashion-MNIST.

Batches of 64 in file order. A pixel p becomes f32((p/255 - 0.1307) / 0.3081), computed in f64 and rounded once.
The network runs in f64 (`loss_f64`) and in f32 (`loss_f32`) from the same f32 weights and images.

Training amplifies rounding, and how much depends on the learning rate. So each curve brings its own `tolerance`: 8
times what f32 runs strayed from f64 up to that step, over runs whose initial weights differ in the last bit. They are
many because a value that crosses a kink of relu or max-pool does so in some of them only: at lr 0.002 one does at step
17 in 9 of 24.
"""

import numpy as np
import torch
import torch.nn.functional as F

from .idx import read_idx
from .inputs import uniform
from .npz import version_numbers, write_npz
from .s4_network import Network, UnaffineBatchNorm

STEPS, BATCH = 20, 64
_NUDGED_RUNS = 24


def _batches(data):
    pixels = read_idx(data / "train-images-idx3-ubyte.gz")[: STEPS * BATCH]
    labels = read_idx(data / "train-labels-idx1-ubyte.gz")[: STEPS * BATCH]
    images = ((pixels / 255.0 - 0.1307) / 0.3081).astype(np.float32).reshape(STEPS, BATCH, 1, 28, 28)
    return images, labels.astype(np.int64).reshape(STEPS, BATCH)


@torch.no_grad()
def _nudge(network, run):
    """Moves each weight by at most the last bit of its f32."""
    for name, parameter in network.named().items():
        noise = torch.tensor(uniform(f"{name} {run}", list(parameter.shape), -1, 1)).to(parameter.dtype)
        parameter.mul_(1 + 2.0**-23 * noise)


def _trained(dtype, batch_norm, optimiser, images, labels, nudged=None):
    network = Network(batch_norm).to(dtype)
    network.set_initial_values()
    if nudged is not None:
        _nudge(network, nudged)
    steps = optimiser(network.parameters())
    losses = []
    for x, target in zip(images, labels):
        steps.zero_grad()
        loss = F.nll_loss(network(torch.tensor(x).to(dtype)), torch.tensor(target))
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return np.array(losses, dtype=np.float64), network


def _curve(batch_norm, optimiser, hyper, images, labels):
    arrays = {}
    for label, dtype in (("f64", torch.float64), ("f32", torch.float32)):
        losses, network = _trained(dtype, batch_norm, optimiser, images, labels)
        arrays[f"loss_{label}"] = losses
        for name, parameter in network.named().items():
            arrays[f"norm_{label}.{name}"] = np.array(parameter.detach().double().norm().item())
    in_f32 = [arrays["loss_f32"]]
    in_f32 += [_trained(torch.float32, batch_norm, optimiser, images, labels, run)[0] for run in range(_NUDGED_RUNS)]
    strayed = np.abs(np.array(in_f32) - arrays["loss_f64"]).max(axis=0)
    arrays["tolerance"] = 1e-5 + 8 * np.maximum.accumulate(strayed)
    # So that a test which reads the images itself can tell a wrong batch from a wrong network.
    arrays["first_batch_sum"] = np.array(images[0].astype(np.float64).sum())
    arrays["first_labels"] = labels[0]
    arrays.update({name: np.array(value) for name, value in hyper.items()})
    arrays["torch_version"] = version_numbers(torch.__version__)
    return arrays


def record(folder, data):
    # Two threads sum in another order than one; this number is part of what is recorded in f32.
    torch.set_num_threads(2)
    images, labels = _batches(data)
    curves = {
        "s4_curve": (lambda channels: UnaffineBatchNorm(), "Adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6}),
        "s4_batchnorm_curve": (torch.nn.BatchNorm2d, "SGD", {"lr": 0.05, "momentum": 0.9}),
        "s4_batchnorm_slow_curve": (torch.nn.BatchNorm2d, "SGD", {"lr": 0.002, "momentum": 0.9}),
    }
    for name, (batch_norm, kind, hyper) in curves.items():
        arrays = _curve(batch_norm, lambda p: getattr(torch.optim, kind)(p, **hyper), hyper, images, labels)
        write_npz(folder / f"{name}.npz", arrays)
        first, last = arrays["loss_f64"][[0, -1]]
        print(
            f"{name}: {first:.4f} to {last:.4f}, tolerance {arrays['tolerance'][0]:.1e} to {arrays['tolerance'][-1]:.1e}"
        )
