"""Times training steps of ResNet-50 and MobileNet-v2 in PyTorch, eager and compiled; one JSON line a measurement.

    python pytorch_resnet.py [--batches 64,256] [--precisions f32,tf32,bf16,f16] [--modes eager,compile,graphs]

A step is forward, cross-entropy, backward and SGD with momentum on images that are on the device already,
channels-last; `graphs` is torch.compile whose kernels are replayed as CUDA graphs (mode reduce-overhead), which frees it of
its host. bf16 and f16 are autocast (f16 with a gradient scaler). What cannot be measured is a line with `what` and
`problem`; the rest goes on. The networks are written out here, because torchvision need not be installed.
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(inputs, outputs, kernel, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)
    )


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.first = conv_norm(inputs, width, 1)
        self.second = conv_norm(width, width, 3, stride)
        self.third = conv_norm(width, 4 * width, 1)
        same = stride == 1 and inputs == 4 * width
        self.shortcut = nn.Identity() if same else conv_norm(inputs, 4 * width, 1, stride)

    def forward(self, x):
        y = F.relu(self.second(F.relu(self.first(x))))
        return F.relu(self.third(y) + self.shortcut(x))


class Basic(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.first = conv_norm(inputs, width, 3, stride)
        self.second = conv_norm(width, width, 3)
        self.shortcut = nn.Identity() if stride == 1 and inputs == width else conv_norm(inputs, width, 1, stride)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


def resnet(block, expansion, blocks):
    layers, inputs = [conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for i in range(count):
            layers.append(block(inputs, width, 2 if i == 0 and stage > 0 else 1))
            inputs = expansion * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def resnet18():
    return resnet(Basic, 1, [2, 2, 2, 2])


def resnet50():
    return resnet(Bottleneck, 4, [3, 4, 6, 3])


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        width = inputs * expansion
        layers = [] if expansion == 1 else [conv_norm(inputs, width, 1), nn.ReLU6()]
        layers += [conv_norm(width, width, 3, stride, groups=width), nn.ReLU6(), conv_norm(width, outputs, 1)]
        self.layers, self.joins = nn.Sequential(*layers), stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.layers(x) if self.joins else self.layers(x)


def mobilenet_v2():
    layers, inputs = [conv_norm(3, 32, 3, 2), nn.ReLU6()], 32
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expansion, outputs, blocks, stride in stages:
        for block in range(blocks):
            layers.append(Inverted(inputs, outputs, stride if block == 0 else 1, expansion))
            inputs = outputs
    layers += [conv_norm(inputs, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(1280, 1000))


MODELS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "resnet18": resnet18}
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def measure(name, batch, precision, mode, options):
    device = options.device
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    network = MODELS[name]().to(device).to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler(device, enabled=precision == "f16" and device == "cuda")
    x = torch.randn(batch, 3, options.size, options.size, device=device).contiguous(memory_format=torch.channels_last)
    target = torch.randint(1000, (batch,), device=device)
    compiled = {"compile": "default", "graphs": "reduce-overhead"}
    forward = torch.compile(network, mode=compiled[mode]) if mode in compiled else network

    def step():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device, DTYPES.get(precision), enabled=precision in DTYPES):
            loss = F.cross_entropy(forward(x), target)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        return loss

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    begin = time.perf_counter()
    loss = step()
    wait()
    first = time.perf_counter() - begin
    for _ in range(min(5, options.steps)):
        step()
    wait()
    timed = []
    for _ in range(7 if options.steps > 1 else 1):
        begin = time.perf_counter()
        for _ in range(options.steps):
            loss = step()
        wait()
        timed.append((time.perf_counter() - begin) * 1e3 / options.steps)
    ms = statistics.median(timed)
    peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0.0
    return {
        "model": name,
        "batch": batch,
        "precision": precision,
        "mode": mode,
        "ms": ms,
        "images/s": batch / ms * 1e3,
        "first s": first,
        "peak GB": peak,
        "last loss": loss.item() if torch.isfinite(loss) else None,
        "torch": torch.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    split = lambda text: text.split(",")
    parser.add_argument("--models", type=split, default=["resnet50", "mobilenet_v2"])
    parser.add_argument("--batches", type=lambda text: [int(n) for n in text.split(",")], default=[64, 256])
    parser.add_argument("--precisions", type=split, default=["f32", "tf32", "bf16", "f16"])
    parser.add_argument("--modes", type=split, default=["eager", "compile", "graphs"])
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=10, help="steps of one timed measurement, of which there are seven")
    parser.add_argument("--seconds", type=float, default=600, help="nothing is started after this")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"what": "PyTorch", "problem": "torch sees no GPU"}))
        return
    started = time.monotonic()
    # What is compared first comes first.
    for name in options.models:
        for batch in options.batches:
            for precision in options.precisions:
                for mode in options.modes:
                    what = f"{name} {batch} {precision} {mode}"
                    if time.monotonic() - started > options.seconds:
                        print(json.dumps({"what": what, "problem": "out of time"}), flush=True)
                        continue
                    try:
                        row = measure(name, batch, precision, mode, options)
                    except Exception as error:  # whatever a version of torch cannot do
                        row = {"what": what, "problem": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
                    print(json.dumps(row), flush=True)
                    if options.device == "cuda":
                        torch.cuda.empty_cache()
                        torch.cuda.reset_peak_memory_stats()


if __name__ == "__main__":
    main()
