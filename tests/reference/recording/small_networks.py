"""The same networks of few channels, of torchvision's own blocks: small enough to be kept. Values come from the names, so
that every machine makes the same.

torchvision/<name>.onnx, .weights.npz, .weights.safetensors and .npz are as in whole_networks.py, but that the ONNX model
keeps its names and has other values than the weights: x and y are of the weights."""

from collections import OrderedDict

import numpy as np
import safetensors.torch
import torch
from torch import nn
from torchvision.models import densenet, mobilenetv2, resnet, squeezenet, vgg

from . import inputs, networks
from .npz import version_numbers, write_npz
from .onnx_networks import export

CLASSES = 5


def _resnet():
    shortcut = nn.Sequential(resnet.conv1x1(4, 16, 2), nn.BatchNorm2d(16))
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(3, 4, 7, 2, 3, bias=False), bn1=nn.BatchNorm2d(4), relu=nn.ReLU(), maxpool=nn.MaxPool2d(3, 2, 1),
        layer1=nn.Sequential(resnet.Bottleneck(4, 4, 2, shortcut), resnet.Bottleneck(16, 4)),
        avgpool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), fc=nn.Linear(16, CLASSES)))


def _mobilenet_v2():
    return nn.Sequential(OrderedDict(
        features=nn.Sequential(mobilenetv2.Conv2dNormActivation(3, 4, stride=2, activation_layer=nn.ReLU6),
                               mobilenetv2.InvertedResidual(4, 4, 1, 1), mobilenetv2.InvertedResidual(4, 6, 2, 6),
                               mobilenetv2.InvertedResidual(6, 6, 1, 6)),
        pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(),
        classifier=nn.Sequential(nn.Dropout(0.2), nn.Linear(6, CLASSES))))


def _vgg():
    return nn.Sequential(OrderedDict(
        features=vgg.make_layers([4, "M", 8, 8, "M"]), avgpool=nn.AdaptiveAvgPool2d(2), flatten=nn.Flatten(),
        classifier=nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, CLASSES))))


def _squeezenet():
    return nn.Sequential(OrderedDict(
        features=nn.Sequential(nn.Conv2d(3, 4, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True),
                               squeezenet.Fire(4, 2, 4, 4), nn.MaxPool2d(3, 2, ceil_mode=True),
                               squeezenet.Fire(8, 2, 4, 4)),
        classifier=nn.Sequential(nn.Dropout(), nn.Conv2d(8, CLASSES, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
        flatten=nn.Flatten()))


NETWORKS = {
    "resnet": (_resnet, (2, 3, 32, 32)),
    "mobilenet_v2": (_mobilenet_v2, (2, 3, 16, 16)),
    "vgg": (_vgg, (2, 3, 16, 16)),
    "densenet": (lambda: densenet.DenseNet(4, (2, 2), 6, 2, num_classes=CLASSES), (2, 3, 32, 32)),
    "squeezenet": (_squeezenet, (2, 3, 34, 34)),
    "unet": (lambda: networks.UNet(4, 2, CLASSES), (1, 3, 8, 12)),
    "unet_bilinear": (lambda: networks.UNet(4, 1, CLASSES, "bilinear", 1), (1, 1, 8, 12)),
}


def _fill(network, other):
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if value.dtype.is_floating_point:
                factor = name.endswith("running_var") or value.dim() == 1 and name.endswith("weight")
                drawn = inputs.uniform(f"{name}{other}", tuple(value.shape), *((0.5, 1.5) if factor else (-0.5, 0.5)))
                value.copy_(torch.from_numpy(drawn))
            else:
                value.fill_(3)  # num_batches_tracked


def write(folder):
    for name, (make, shape) in NETWORKS.items():
        network = make().eval()
        x = torch.from_numpy(inputs.uniform(f"x {name}", shape))
        _fill(network, " of the model")
        export(network, x, folder / f"{name}.onnx", 17, torch.onnx.TrainingMode.PRESERVE, folds=False)
        _fill(network, "")
        state = network.state_dict()
        write_npz(folder / f"{name}.weights.npz", {key: value.numpy() for key, value in state.items()})
        safetensors.torch.save_file(state, folder / f"{name}.weights.safetensors", {"format": "pt"})
        with torch.no_grad():
            y = network.double()(x.double())
        write_npz(folder / f"{name}.npz",
                  {"x": x.numpy(), "y": y.numpy(), "torch_version": version_numbers(torch.__version__)})
    return len(NETWORKS)
