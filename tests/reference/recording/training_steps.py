"""networks/<name>.npz: what one training step of a whole network comes to, in f64, and the loss after it.

A tensor is recorded as a row of numbers, `described`: its largest absolute value, its Euclidean norm, its product with
a fixed vector, and samples. The first three see a wrong element anywhere, the third also one in a wrong place; the
samples say by how much. Rows are in the order of the tensors' names.

Initial values, images and labels come from integer arithmetic (`inputs.py`), picked by the tensor's name.
"""

import copy
import zlib

import numpy as np
import torch

from .inputs import _hashed, integers, uniform
from .networks import CLASSES, NETWORKS
from .npz import version_numbers, write_npz

SAMPLES = 6
# In f32, gradients below this share of the network's largest are taken as that large: see _strayed().
FLOOR = 1e-2
NUDGED_RUNS = 2
OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=1e-4),
    # eps is large: where a gradient is smaller than that, the update does not amplify its rounding.
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3, betas=(0.9, 0.99), eps=1e-3),
}


def initial_value(name, shape):
    """f32: weights of matrices and kernels within sqrt(6/fan_in), other factors and variances 0.5 to 1.5, the rest
    within 0.2."""
    if len(shape) == 1 or name.endswith("layer_scale"):
        positive = name.endswith(("weight", "running_var", "layer_scale"))
        return uniform(name, shape, *((0.5, 1.5) if positive else (-0.2, 0.2)))
    bound = np.sqrt(np.float64(6) / np.float64(np.prod(shape[1:])))
    return uniform(name, shape, -bound, bound)


def described(name, values):
    values = values.detach().double().numpy().reshape(-1)
    direction = uniform(f"direction {name}", values.shape, -1, 1).astype(np.float64)
    places = (_hashed(zlib.crc32(f"samples {name}".encode()), SAMPLES) >> np.uint64(33)) % np.uint64(values.size)
    head = [np.abs(values).max(), np.sqrt(np.dot(values, values)), np.dot(values, direction)]
    return np.concatenate([head, values[places]])


def _table(tensors):
    rows = [described(name, tensors[name]) for name in sorted(tensors)]
    return np.array(rows).reshape(len(rows), 3 + SAMPLES)


def values_of(network):
    return {k: v for k, v in network.state_dict().items() if not k.endswith("num_batches_tracked")}


def _trained(case, dtype, nudged=None):
    """Tables by name. nudged: the number of a run whose initial values differ by at most the last bit of their f32."""
    network = case.make().to(dtype)
    with torch.no_grad():
        for name, value in values_of(network).items():
            value.copy_(torch.tensor(initial_value(name, list(value.shape))))
            if nudged is not None:
                noise = torch.tensor(uniform(f"{name} {nudged}", list(value.shape), -1, 1)).to(dtype)
                value.mul_(1 + 2.0**-23 * noise)
    x = torch.tensor(uniform("x", case.image)).to(dtype)
    target = torch.tensor(integers("target", case.target, 0, CLASSES))
    loss = case.loss(network(x), target)
    loss.backward()
    gradients = {name: p.grad for name, p in network.named_parameters()}
    made = {
        "gradients": _table(gradients),
        "running": _table({name: value for name, value in values_of(network).items() if "running" in name}),
    }
    for optimiser, make in OPTIMISERS.items():
        stepped = copy.deepcopy(network)
        for name, parameter in stepped.named_parameters():
            parameter.grad = gradients[name].clone()
        make(stepped.parameters()).step()
        made[f"{optimiser}.values"] = _table(values_of(stepped))
        made[f"{optimiser}.loss"] = np.array([loss.item(), case.loss(stepped(x), target).item()])
    return made, network


def names_hash(network):
    """So that a network with other names or shapes is told at once: crc32 of "name[2,3]\n…" in order of names."""
    lines = [f"{name}{str(list(value.shape)).replace(' ', '')}\n" for name, value in sorted(values_of(network).items())]
    return zlib.crc32("".join(lines).encode())


def _strayed(run, meant, floor):
    """How far the worst tensor of a run is off: its norm and its product, by its norm. Those that are zero but for
    rounding are measured by `floor` times the largest value of all. And the median tensor, with its samples."""
    if len(meant) == 0:
        return 0, 0
    least = floor * meant[:, 0].max()
    norms = np.maximum(meant[:, 1], least)
    off = np.abs(run - meant)
    whole = off[:, 1:3].max(axis=1) / norms
    samples = off[:, 3:].max(axis=1) / np.maximum(meant[:, 0], least)
    return whole.max(), np.sort(np.maximum(whole, samples))[len(meant) // 2]


def record(folder):
    folder.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    for case in NETWORKS:
        meant, network = _trained(case, torch.float64)
        runs = [_trained(case, torch.float32, nudged)[0] for nudged in (None, *range(NUDGED_RUNS))]
        arrays = dict(meant)
        for name, table in meant.items():
            if name.endswith("loss"):
                off = [np.abs(run[name] / table - 1) for run in runs]
            else:
                off = [_strayed(run[name], table, FLOOR if name == "gradients" else 0) for run in runs]
            # Another order of sums is another sample of the same rounding, and of which kinks it crosses.
            arrays[f"f32_tolerance.{name}"] = 4 * np.max(off, axis=0) + 1e-6
        arrays["names_hash"] = np.array(names_hash(network), dtype=np.int64)
        arrays["torch_version"] = version_numbers(torch.__version__)
        write_npz(folder / f"{case.name}.npz", arrays)
        print(f"{case.name}: {len(arrays['gradients'])} parameters")
        for name, value in arrays.items():
            if "loss" in name or "tolerance" in name:
                print(f"  {name} {value}")
