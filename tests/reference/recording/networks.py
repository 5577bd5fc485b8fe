"""Whole networks in plain PyTorch. Parameters have the names of torchvision's models, and so of fusejit's; the U-Net is
recorded at half its width. `NETWORKS` says at which size each is trained for the record."""

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .s4_network import UnaffineBatchNorm


def _conv(inputs, outputs, kernel, stride=1, groups=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)


# ---- residual networks ----------------------------------------------------------------------------------------------


class _Residual(nn.Module):
    def __init__(self, inputs, width, outputs, stride):
        super().__init__()
        self.add_layers(inputs, width, outputs, stride)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.branch(x) + (x if self.downsample is None else self.downsample(x)))


class BasicBlock(_Residual):
    expansion = 1

    def add_layers(self, inputs, width, outputs, stride):
        self.conv1, self.bn1 = _conv(inputs, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, outputs, 3), nn.BatchNorm2d(outputs)

    def branch(self, x):
        return self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))


class Bottleneck(_Residual):
    expansion = 4

    def add_layers(self, inputs, width, outputs, stride):
        self.conv1, self.bn1 = _conv(inputs, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = _conv(width, outputs, 1), nn.BatchNorm2d(outputs)

    def branch(self, x):
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return self.bn3(self.conv3(y))


class ResNet(nn.Module):
    def __init__(self, block, blocks, classes, first_width=64):
        super().__init__()
        self.conv1, self.bn1 = _conv(3, first_width, 7, 2), nn.BatchNorm2d(first_width)
        inputs = first_width
        for stage, count in enumerate(blocks):
            layer = nn.Sequential()
            for i in range(count):
                width = first_width << stage
                layer.append(block(inputs, width, width * block.expansion, 2 if i == 0 and stage > 0 else 1))
                inputs = width * block.expansion
            setattr(self, f"layer{stage + 1}", layer)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        y = self.layer4(self.layer3(self.layer2(self.layer1(y))))
        return self.fc(y.mean((2, 3)))


# ---- MobileNet-v2 ---------------------------------------------------------------------------------------------------


def _conv_norm_relu6(inputs, outputs, kernel, stride=1, groups=1):
    return nn.Sequential(_conv(inputs, outputs, kernel, stride, groups), nn.BatchNorm2d(outputs), nn.ReLU6())


class _InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        inner = inputs * expansion
        self.adds_input = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            *([_conv_norm_relu6(inputs, inner, 1)] if expansion != 1 else []),
            _conv_norm_relu6(inner, inner, 3, stride, inner),
            nn.Conv2d(inner, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x):
        return x + self.conv(x) if self.adds_input else self.conv(x)


class MobileNetV2(nn.Module):
    """Without dropout."""

    STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(_conv_norm_relu6(3, 32, 3, 2))
        inputs = 32
        for expansion, outputs, blocks, stride in self.STAGES:
            for i in range(blocks):
                self.features.append(_InvertedResidual(inputs, outputs, stride if i == 0 else 1, expansion))
                inputs = outputs
        self.features.append(_conv_norm_relu6(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Identity(), nn.Linear(1280, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


# ---- VGG ------------------------------------------------------------------------------------------------------------


class VGG(nn.Module):
    """Without dropout."""

    def __init__(self, convolutions, hidden, classes, batch_norm):
        super().__init__()
        self.features = nn.Sequential()
        inputs, width = 3, 64
        for count in convolutions:
            for _ in range(count):
                self.features.append(nn.Conv2d(inputs, width, 3, padding=1))
                if batch_norm:
                    self.features.append(nn.BatchNorm2d(width))
                self.features.append(nn.ReLU())
                inputs = width
            self.features.append(nn.MaxPool2d(2))
            width = min(2 * width, 512)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(inputs * 49, hidden), nn.ReLU(), nn.Identity(),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Identity(),
            nn.Linear(hidden, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


# ---- DenseNet -------------------------------------------------------------------------------------------------------


class _DenseLayer(nn.Module):
    def __init__(self, inputs, growth):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), _conv(inputs, 4 * growth, 1)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * growth), _conv(4 * growth, growth, 3)

    def forward(self, x):
        y = self.conv2(F.relu(self.norm2(self.conv1(F.relu(self.norm1(x))))))
        return torch.cat([x, y], 1)


class DenseNet(nn.Module):
    def __init__(self, blocks, growth, first, classes):
        super().__init__()
        f = self.features = nn.Sequential()
        f.add_module("conv0", _conv(3, first, 7, 2))
        f.add_module("norm0", nn.BatchNorm2d(first))
        f.add_module("relu0", nn.ReLU())
        f.add_module("pool0", nn.MaxPool2d(3, 2, 1))
        channels = first
        for b, count in enumerate(blocks, 1):
            block = nn.Sequential()
            for i in range(1, count + 1):
                block.add_module(f"denselayer{i}", _DenseLayer(channels, growth))
                channels += growth
            f.add_module(f"denseblock{b}", block)
            if b < len(blocks):
                transition = nn.Sequential()
                transition.add_module("norm", nn.BatchNorm2d(channels))
                transition.add_module("relu", nn.ReLU())
                transition.add_module("conv", _conv(channels, channels // 2, 1))
                transition.add_module("pool", nn.AvgPool2d(2))
                f.add_module(f"transition{b}", transition)
                channels //= 2
        f.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x):
        return self.classifier(F.relu(self.features(x)).mean((2, 3)))


# ---- SqueezeNet -----------------------------------------------------------------------------------------------------


class _Fire(nn.Module):
    def __init__(self, inputs, squeezed, outputs):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.expand1x1 = nn.Conv2d(squeezed, outputs, 1)
        self.expand3x3 = nn.Conv2d(squeezed, outputs, 3, padding=1)

    def forward(self, x):
        y = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.expand1x1(y)), F.relu(self.expand3x3(y))], 1)


class SqueezeNet(nn.Module):
    """Without dropout. fires: those behind each of the three pools."""

    def __init__(self, first, kernel, fires, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, first, kernel, 2), nn.ReLU())
        inputs, i = first, 0
        for count in fires:
            self.features.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            for _ in range(count):
                squeezed = 16 * (i // 2 + 1)
                self.features.append(_Fire(inputs, squeezed, 4 * squeezed))
                inputs, i = 8 * squeezed, i + 1
        self.classifier = nn.Sequential(nn.Identity(), nn.Conv2d(inputs, classes, 1), nn.ReLU())

    def forward(self, x):
        return self.classifier(self.features(x)).mean((2, 3))


# ---- U-Net ----------------------------------------------------------------------------------------------------------


def _two_convolutions(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [_conv(channels, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """`fj::models::unet`. up: "transpose", or "bilinear", which resizes and convolves."""

    def __init__(self, width, depth, classes, up="transpose", channels=3):
        super().__init__()
        self.depth = depth
        inputs = channels
        for i in range(depth):
            setattr(self, f"down{i}", _two_convolutions(inputs, width << i))
            inputs = width << i
        self.bottom = _two_convolutions(inputs, 2 * inputs)
        for i in range(depth):
            setattr(self, f"up{i}", self._up(up, width << i))
            setattr(self, f"merge{i}", _two_convolutions(width << (i + 1), width << i))
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def _up(up, outputs):
        if up == "transpose":
            return nn.ConvTranspose2d(2 * outputs, outputs, 2, 2)
        return nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(2 * outputs, outputs, 3, padding=1))

    def forward(self, x):
        skips = []
        for i in range(self.depth):
            skips.append(getattr(self, f"down{i}")(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for i in reversed(range(self.depth)):
            x = getattr(self, f"merge{i}")(torch.cat([skips[i], getattr(self, f"up{i}")(x)], 1))
        return self.head(x)


# ---- ConvNeXt -------------------------------------------------------------------------------------------------------


class _ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of [N,C,H,W]."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _Permute(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.permute(self.dims)


class _ConvNextBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(channels, channels, 7, padding=3, groups=channels),
            _Permute((0, 2, 3, 1)),
            nn.LayerNorm(channels, eps=1e-6),
            nn.Linear(channels, 4 * channels),
            nn.GELU(),
            nn.Linear(4 * channels, channels),
            _Permute((0, 3, 1, 2)),
        )
        self.layer_scale = nn.Parameter(torch.ones(channels, 1, 1))

    def forward(self, x):
        return self.layer_scale * self.block(x) + x


class ConvNext(nn.Module):
    """Without stochastic depth."""

    def __init__(self, blocks, channels, classes):
        super().__init__()
        f = self.features = nn.Sequential(
            nn.Sequential(nn.Conv2d(3, channels[0], 4, 4), _ChannelNorm(channels[0], eps=1e-6))
        )
        for i, (count, width) in enumerate(zip(blocks, channels)):
            if i > 0:
                before = channels[i - 1]
                f.append(nn.Sequential(_ChannelNorm(before, eps=1e-6), nn.Conv2d(before, width, 2, 2)))
            f.append(nn.Sequential(*[_ConvNextBlock(width) for _ in range(count)]))
        self.classifier = nn.Sequential(
            _ChannelNorm(channels[-1], eps=1e-6), nn.Flatten(), nn.Linear(channels[-1], classes)
        )

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3), keepdim=True))


# ---- the digits network ---------------------------------------------------------------------------------------------


class _ConvBatchNorm(nn.Conv2d):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, 3, bias=False)
        self.norm = UnaffineBatchNorm()

    def forward(self, x):
        return self.norm(super().forward(x))


def convnet():
    """The S4 network as fusejit's main job has it, without dropout."""
    return nn.Sequential(
        _ConvBatchNorm(1, 32), nn.ReLU(), _ConvBatchNorm(32, 64), nn.ReLU(), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
        nn.Linear(9216, 128), nn.Identity(), nn.ReLU(), nn.Linear(128, 10), nn.LogSoftmax(1),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    name: str
    make: Callable
    image: tuple
    target: tuple  # shape of the labels
    loss: Callable = F.cross_entropy


CLASSES = 10
NETWORKS = (
    Case("convnet", convnet, (5, 1, 28, 28), (5,), F.nll_loss),
    Case("resnet18", lambda: ResNet(BasicBlock, (2, 2, 2, 2), CLASSES), (3, 3, 67, 75), (3,)),
    Case("resnet34", lambda: ResNet(BasicBlock, (3, 4, 6, 3), CLASSES), (3, 3, 64, 64), (3,)),
    Case("resnet50", lambda: ResNet(Bottleneck, (3, 4, 6, 3), CLASSES), (4, 3, 64, 64), (4,)),
    Case("mobilenet_v2", lambda: MobileNetV2(CLASSES), (4, 3, 64, 64), (4,)),
    Case("vgg16", lambda: VGG((2, 2, 3, 3, 3), 64, CLASSES, False), (3, 3, 70, 67), (3,)),
    Case("vgg16_bn", lambda: VGG((2, 2, 3, 3, 3), 64, CLASSES, True), (2, 3, 35, 44), (2,)),
    Case("densenet121", lambda: DenseNet((6, 12, 24, 16), 32, 64, CLASSES), (4, 3, 64, 64), (4,)),
    Case("squeezenet1_0", lambda: SqueezeNet(96, 7, (3, 4, 1), CLASSES), (2, 3, 66, 75), (2,)),
    Case("squeezenet1_1", lambda: SqueezeNet(64, 3, (2, 2, 4), CLASSES), (3, 3, 50, 64), (3,)),
    Case("unet", lambda: UNet(32, 4, CLASSES), (2, 3, 32, 48), (2, 32, 48)),
    Case("unet_bilinear", lambda: UNet(8, 3, CLASSES, "bilinear", 3), (2, 3, 24, 40), (2, 24, 40)),
    Case("convnext", lambda: ConvNext((3, 3, 9, 3), (40, 80, 160, 320), CLASSES), (2, 3, 70, 58), (2,)),
)
