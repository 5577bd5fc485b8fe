"""Small networks as PyTorch's exporter writes them, and what PyTorch computes for them."""

import warnings

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

from . import inputs
from .npz import version_numbers, write_npz


class Shuffled(nn.Module):
    """Shapes that the exporter computes by nodes: a flattening, a channel shuffle, an upsampling to another's size."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.head = nn.Linear(8 * 8 * 8, 5)

    def forward(self, x):
        n, c, h, w = x.shape
        y = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        y = functional.interpolate(self.conv(y), size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.head(y.view(y.size(0), -1))


class Excited(nn.Module):
    """An inverted residual with squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 8, 1),
                                     nn.Hardsigmoid())
        self.project = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y = self.depth(self.expand(x))
        return x + self.project(y * self.squeeze(y))


class Up(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, padding=1)
        self.middle = nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        y = functional.leaky_relu(self.down(x), 0.1)
        z = functional.elu(self.middle(functional.avg_pool2d(y, 2)))
        z = torch.cat([y, self.up(z)], 1)
        return functional.softmax(functional.interpolate(self.last(z), scale_factor=2), 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * (c // 2) ** -0.5, -1)
        return functional.gelu(x + self.out((weights @ v).transpose(1, 2).reshape(b, t, c)))


def classifier():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(4 * 3 * 3, 5))


def signal():
    return nn.Sequential(nn.Conv1d(2, 4, 5, stride=2, padding=2), nn.BatchNorm1d(4), nn.SiLU(), nn.MaxPool1d(2),
                         nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1), nn.GroupNorm(2, 2), nn.InstanceNorm1d(2),
                         nn.Tanh())


def shuffled_pixels():
    return nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(1, 8, 3), nn.PReLU(8), nn.PixelShuffle(2), nn.Mish(),
                         nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.LogSoftmax(1))


def fill(network):
    """Values from the names, so that every machine makes the same."""
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if value.dtype.is_floating_point:
                low, high = (0.5, 1.5) if name.endswith("running_var") else (-0.5, 0.5)
                value.copy_(torch.from_numpy(inputs.uniform(name, tuple(value.shape), low, high)))


def export(network, x, path, opset, training=torch.onnx.TrainingMode.EVAL, folds=True, batch_is_open=True):
    axes = {"x": {0: "N"}, "y": {0: "N"}} if batch_is_open else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (x,), str(path), dynamo=False, opset_version=opset, input_names=["x"],
                          output_names=["y"], dynamic_axes=axes, training=training, do_constant_folding=folds)


CASES = {
    "classifier": (classifier, (2, 1, 8, 8), 17),
    "shuffled": (Shuffled, (2, 4, 8, 8), 16),
    "excited": (Excited, (2, 4, 6, 6), 14),
    "up": (Up, (2, 3, 4, 4), 13),
    "attention": (Attention, (2, 5, 8), 17),
    "signal": (signal, (2, 2, 16), 18),
    "shuffled_pixels": (shuffled_pixels, (2, 1, 4, 4), 20),
}


def write_training(folder):
    """The classifier in its training form: results, gradients, running statistics (the variance by n, as in ONNX)."""
    network = classifier()
    fill(network)
    network.train()
    x = torch.from_numpy(inputs.uniform("x training", (3, 1, 8, 8)))
    with torch.no_grad():
        features = network[0](x)
    mean, var = features.mean((0, 2, 3)), features.var((0, 2, 3), unbiased=False)
    export(network, x, folder / "training.onnx", 17, torch.onnx.TrainingMode.TRAINING, folds=False)
    # The exporter calls the module, which updates its statistics: those in the file are the ones to begin with.
    kept = {tensor.name: numpy_helper.to_array(tensor)
            for tensor in onnx.load(str(folder / "training.onnx")).graph.initializer}
    after = {"1.running_mean": 0.9 * kept["1.running_mean"] + 0.1 * mean.numpy(),
             "1.running_var": 0.9 * kept["1.running_var"] + 0.1 * var.numpy()}
    fill(network)
    network.train()
    y = network(x)
    weights = torch.from_numpy(inputs.uniform("weights", tuple(y.shape)))
    (y * weights).sum().backward()
    arrays = {"x": x.numpy(), "weights": weights.numpy(), "y": y.detach().numpy()}
    arrays |= {f"d_{name}": p.grad.numpy() for name, p in network.named_parameters()}
    arrays |= {f"after.{name}": value for name, value in after.items()}
    write_npz(folder / "training.npz", arrays)


def write(folder):
    for name, (make, shape, opset) in CASES.items():
        network = make()
        fill(network)
        network.eval()
        x = torch.from_numpy(inputs.uniform(f"x {name}", shape))
        export(network, x, folder / f"{name}.onnx", opset)
        with torch.no_grad():
            arrays = {"x": x.numpy(), "y": network(x).numpy()}
            more = torch.from_numpy(inputs.uniform(f"more {name}", (3, *shape[1:])))
            arrays |= {"more.x": more.numpy(), "more.y": network(more).numpy()}
        arrays["torch_version"] = version_numbers(torch.__version__)
        write_npz(folder / f"{name}.npz", {k: np.asarray(v) for k, v in arrays.items()})
    write_training(folder)
    return len(CASES) + 1
