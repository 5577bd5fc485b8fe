"""The twin of examples/cifar10.cpp: 20 steps of batches of 128 toy images in bf16 autocast, and the rate of each.

`tolerance` is four times what a run without autocast and three whose weights differ in the last bit strayed up to each
step: much, since the rate is high from the first one on. `f64` is the training without autocast in f64, and sharp.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR

from ..networks import BasicBlock, ResNet
from . import twin
from .generator import Draws, permutation, seed_of

FILES, IN_FILE, BATCH = 5, 128, 128
MEAN = np.array([0.4914, 0.4822, 0.4465], dtype=np.float32).reshape(3, 1, 1)
DEVIATION = np.array([0.2470, 0.2435, 0.2616], dtype=np.float32).reshape(3, 1, 1)


def images():
    """Ten classes that differ in brightness: bytes [640,3,32,32] and labels."""
    labels = np.arange(FILES * IN_FILE) % 10
    noise = np.concatenate([twin.bytes_of(f"cifar10 {file}", IN_FILE * 3072) for file in range(1, FILES + 1)])
    return noise.reshape(-1, 3, 32, 32) + (labels * 20).astype(np.uint8)[:, None, None, None], labels


def _augmented(image, draws):
    """RandomCrop(32, padding 4), RandomHorizontalFlip, ToTensor, Normalize."""
    padded = np.pad(image, ((0, 0), (4, 4), (4, 4)))
    top, left = draws.below(9), draws.below(9)
    image = padded[:, top : top + 32, left : left + 32]
    if draws.uniform() < 0.5:
        image = image[:, :, ::-1]
    return (image.astype(np.float32) / np.float32(255) - MEAN) / DEVIATION


def _batches():
    pixels, labels = images()
    for epoch in range(twin.STEPS * BATCH // len(labels)):
        order = permutation(len(labels), seed_of(1, epoch))
        for first in range(0, len(labels), BATCH):
            which = order[first : first + BATCH]
            yield np.stack([_augmented(pixels[i], Draws(1, epoch, i)) for i in which]), labels[which]


def _train(batches, run, narrow):
    network = run.begin(ResNet(BasicBlock, (2, 2, 2, 2), 10))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    schedule = CosineAnnealingLR(optimiser, twin.STEPS)
    seen = []
    for x, y in batches:
        optimiser.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            loss = F.cross_entropy(network(torch.tensor(x).to(run.dtype)), torch.tensor(y), label_smoothing=0.1)
        loss.backward()
        seen.append([loss.item(), optimiser.param_groups[0]["lr"]])
        optimiser.step()
        schedule.step()
    return np.array(seen)


def record():
    batches = list(_batches())
    first, *others = twin.nudged_runs()
    meant = _train(batches, first, narrow=True)
    runs = [_train(batches, first, narrow=False), *(_train(batches, run, narrow=True) for run in others)]
    arrays = {"meant": meant, "tolerance": twin.tolerance(meant, runs, 1e-9)}
    return arrays | twin.curve_in_f64(lambda run: _train(batches, run, narrow=False))
