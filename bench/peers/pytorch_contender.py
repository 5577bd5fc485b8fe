"""PyTorch as a contender of bench/cpu.py: eager or compiled, channels outside or inside, f32, bf16 or autocast.

bf16 is the whole network and its optimiser's state in bf16, as fusejit has it; --autocast keeps weights in f32.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

import protocol
import pytorch_convnet
import pytorch_resnet

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def network(net, batch_norm):
    if net == "convnet":
        return pytorch_convnet.Network(
            nn.BatchNorm2d if batch_norm == "ordinary" else lambda channels: pytorch_convnet.PlainBatchNorm()
        )
    return pytorch_resnet.MODELS[net]()


def step_of_parts(make):
    """A step that does what `make(part)` gives; that of the last part is kept, with its tensors."""
    kept = {}

    def step(part):
        if part not in kept:
            kept.clear()
            kept[part] = make(part)
        kept[part]()

    return step


def layer_step(options):
    """A step that computes one pass of one convolution, named by its part."""

    def make(part):
        what, *numbers = part.split()
        n, c, s, k, r, stride, padding = (int(v) for v in numbers)
        layout = torch.channels_last if options.channels_last else torch.contiguous_format
        dtype = DTYPES[options.dtype]
        x = torch.rand(n, c, s, s).to(dtype).contiguous(memory_format=layout)
        w = torch.rand(k, c, r, r).to(dtype).contiguous(memory_format=layout)
        if what == "forward":
            return lambda: F.conv2d(x, w, None, stride, padding)
        g = torch.rand_like(F.conv2d(x, w, None, stride, padding)).contiguous(memory_format=layout)
        mask = [what == "dx", what == "dw", False]
        return lambda: torch.ops.aten.convolution_backward(
            g, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, mask
        )

    return torch.no_grad()(step_of_parts(make))


class Pattern(nn.Module):
    """A few layers: conv or none, batch norm or a bias, a side input or none, ReLU."""

    def __init__(self, name, channels):
        super().__init__()
        words = name.split("_")
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias="bias" in words) if "conv" in words else None
        self.norm = nn.BatchNorm2d(channels) if "bn" in words else None
        self.adds = "add" in words

    def forward(self, x, side):
        y = self.conv(x) if self.conv else x
        y = self.norm(y) if self.norm else y
        return F.relu(y + side if self.adds else y)


def pattern_step(options):
    """A step that computes a pattern and every gradient of it, for one cotangent."""

    def make(part):
        name, *numbers = part.split()
        n, c, s = (int(v) for v in numbers)
        layout = torch.channels_last if options.channels_last else torch.contiguous_format
        dtype = DTYPES[options.dtype]
        net = Pattern(name, c).to(dtype).to(memory_format=layout)
        x, side, g = (torch.randn(n, c, s, s).to(dtype).contiguous(memory_format=layout) for _ in range(3))
        inputs = [x.requires_grad_(), *([side.requires_grad_()] if net.adds else []), *net.parameters()]
        forward = torch.compile(net) if options.compile else net

        def step():
            y = forward(x, side)
            return y, torch.autograd.grad(y, inputs, g)

        return step

    return step_of_parts(make)


def cast(options):
    return torch.autocast("cpu", torch.bfloat16, enabled=options.autocast)


def serve_step(options, net, x):
    net.eval()
    if options.compile:
        from torch._inductor import config

        config.freezing = True  # folds batch norm and packs weights, as servers do
    forward = torch.compile(net) if options.compile else net

    def step(part):
        with torch.no_grad(), cast(options):
            forward(x)

    return step


def train_step(options, net, x):
    convnet = options.net == "convnet"
    target = torch.arange(options.batch) % (10 if convnet else 1000)
    if convnet:
        optimiser = torch.optim.Adadelta(net.parameters(), lr=1.0)
    else:
        optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)
    forward = torch.compile(net) if options.compile else net
    update = torch.compile(optimiser.step) if options.compile and convnet else optimiser.step
    loss_of = F.nll_loss if convnet else F.cross_entropy

    def step(part):
        optimiser.zero_grad(set_to_none=True)
        with cast(options):
            loss = loss_of(forward(x), target)
        loss.backward()
        update()
        return loss.item()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--batch-norm", choices=["plain", "ordinary"], default="plain", help="of the digits network")
    options = protocol.options(parser)
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    held_before = protocol.resident_mib("VmRSS")
    if options.mode == "layers":
        step = layer_step(options)
    elif options.mode == "patterns":
        step = pattern_step(options)
    else:
        dtype = torch.float32 if options.autocast else DTYPES[options.dtype]
        layout = torch.channels_last if options.channels_last else torch.contiguous_format
        net = network(options.net, options.batch_norm).to(dtype).to(memory_format=layout)
        shape = (1, 28, 28) if options.net == "convnet" else (3, options.size, options.size)
        x = torch.randn(options.batch, *shape).to(dtype).contiguous(memory_format=layout)
        step = (train_step if options.mode == "train" else serve_step)(options, net, x)
    protocol.serve(f"PyTorch {torch.__version__.split('+')[0]}", step, held_before)


if __name__ == "__main__":
    main()
