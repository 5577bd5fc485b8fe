"""Whole networks as ONNX files, and what PyTorch computes for them in f64: 700 MB, not to be committed."""

import torch
from torch import nn

from . import inputs, networks
from .npz import write_npz
from .onnx_networks import export


class Fire(nn.Module):
    def __init__(self, inputs_, squeezed, outputs):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs_, squeezed, 1)
        self.one, self.three = nn.Conv2d(squeezed, outputs, 1), nn.Conv2d(squeezed, outputs, 3, padding=1)

    def forward(self, x):
        y = torch.relu(self.squeeze(x))
        return torch.relu(torch.cat([self.one(y), self.three(y)], 1))


def squeezenet():
    def pool():
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    return nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), pool(), Fire(64, 16, 64), Fire(128, 16, 64), pool(),
                         Fire(128, 32, 128), Fire(256, 32, 128), pool(), Fire(256, 48, 192), Fire(384, 48, 192),
                         Fire(384, 64, 256), Fire(512, 64, 256), nn.Dropout(), nn.Conv2d(512, 1000, 1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten())


NETWORKS = {
    "resnet50": (lambda: networks.ResNet(networks.Bottleneck, (3, 4, 6, 3), 1000), (2, 3, 224, 224)),
    "mobilenet_v2": (lambda: networks.MobileNetV2(1000), (2, 3, 224, 224)),
    "vgg16": (lambda: networks.VGG((2, 2, 3, 3, 3), 4096, 1000, False), (1, 3, 224, 224)),
    "densenet121": (lambda: networks.DenseNet((6, 12, 24, 16), 32, 64, 1000), (2, 3, 224, 224)),
    "squeezenet": (squeezenet, (2, 3, 224, 224)),
    "unet": (lambda: networks.UNet(32, 4, 10), (1, 3, 128, 128)),
}


def write(folder):
    for name, (make, shape) in NETWORKS.items():
        torch.manual_seed(1)
        network = make()
        x = torch.from_numpy(inputs.uniform(f"x {name}", shape))
        with torch.no_grad():
            for _ in range(3):  # running statistics near those of the activations
                network.train()(x)
            network.eval()
            export(network, x, folder / f"{name}.onnx", 17)
            y = network.double()(x.double())
        write_npz(folder / f"{name}.npz", {"x": x.numpy(), "y": y.numpy()})
        print(name, tuple(y.shape), float(y.abs().max()))
