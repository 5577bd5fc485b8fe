"""The twin of examples/batching_server.cpp: the classes of 20 images."""

import numpy as np
import torch

from ..inputs import uniform
from ..networks import BasicBlock, ResNet
from . import twin

LEAST_MARGIN = 1e-3


@torch.no_grad()
def record():
    network = twin.Run(torch.float64).begin(ResNet(BasicBlock, (2, 2, 2, 2), 10)).eval()
    with torch.no_grad():
        # Which class a network of drawn weights finds hardly depends on the image; so each class begins where the mean
        # over the images is zero.
        x = torch.tensor(np.stack([uniform(f"request {i}", [3, 32, 32], -2, 2) for i in range(twin.STEPS)])).double()
        logits = network(x)
        bias = torch.tensor((network.fc.bias - logits.mean(0)).numpy().astype(np.float32))
        network.fc.bias.copy_(bias)
        logits = network(x)
    best = logits.topk(2)
    margin = (best.values[:, 0] - best.values[:, 1]) / logits.abs().max()
    if margin.min() < LEAST_MARGIN:
        raise ValueError(f"two classes of an image are {margin.min():.1e} apart")
    return {"fc.bias": bias.numpy(), "class": best.indices[:, 0].numpy()}
