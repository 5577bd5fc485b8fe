"""Times a training step of the S4 network in PyTorch on the CPU and prints one JSON line.

    python pytorch_convnet.py [--batch 250] [--compile] [--channels-last] [--batch-norm plain|ordinary]

The network: convbn 1-32 3x3, relu, convbn 32-64 3x3, relu, max-pool 2, relu, linear 9216-128, dropout 0.5, relu,
linear 128-10, log-softmax; nll loss; Adadelta lr 1.0; Fashion-MNIST. A step is everything from a batch in memory to
updated parameters. `plain` batch norm has no affine and no running statistics, unbiased variance and eps outside the
root, written in tensor operations; `ordinary` is torch.nn.BatchNorm2d.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class PlainBatchNorm(nn.Module):
    def forward(self, x):
        mean = x.mean((0, 2, 3), keepdim=True)
        var = x.var((0, 2, 3), correction=1, keepdim=True)
        return (x - mean) / (var.sqrt() + 1e-3)


class Network(nn.Module):
    def __init__(self, batch_norm):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 32, 3, bias=False), batch_norm(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 64, 3, bias=False), batch_norm(64)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2))
        x = F.relu(F.dropout(self.fc1(torch.flatten(x, 1)), 0.5, self.training))
        return F.log_softmax(self.fc2(x), dim=1)


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    rank = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(rank)]
    return torch.frombuffer(bytearray(data[4 + 4 * rank :]), dtype=torch.uint8).reshape(shape)


def batches_of(folder, batch, steps):
    """Normalised images and labels in file order; starts again where the file ends."""
    count = min(60000 // batch, steps) * batch
    images = read_idx(folder / "train-images-idx3-ubyte.gz")[:count].float().unsqueeze(1)
    labels = read_idx(folder / "train-labels-idx1-ubyte.gz")[:count].long()
    images = (images / 255 - 0.1307) / 0.3081
    return list(zip(images.split(batch), labels.split(batch)))


def processor_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    named = dict(line.split(":", 1) for line in lines if ":" in line)
    field = {key.strip(): value.strip() for key, value in named.items()}
    return f"{field['model name']} (family {field['cpu family']}, model {field['model']})"


def resident_mib(field):
    """`VmRSS` is what the process holds now, `VmHWM` the most it held."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def busy_seconds():
    """CPU seconds the whole machine has worked, and those of this process: their growth tells who else was busy."""
    fields = [int(v) for v in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK"), time.process_time()


def percentile(sorted_values, percent):
    return sorted_values[round((len(sorted_values) - 1) * percent / 100)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--steps", type=int, default=40, help="timed steps")
    parser.add_argument("--warm-up", type=int, default=5, help="steps before them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="torch.compile the network and the optimiser's step")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--batch-norm", choices=["plain", "ordinary"], default="plain")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    return parser.parse_args()


def main():
    options = arguments()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    plain = options.batch_norm == "plain"
    network = Network((lambda channels: PlainBatchNorm()) if plain else nn.BatchNorm2d)
    batches = batches_of(options.data, options.batch, options.steps + options.warm_up)
    if options.channels_last:
        network = network.to(memory_format=torch.channels_last)
        batches = [(x.contiguous(memory_format=torch.channels_last), target) for x, target in batches]
    optimiser = torch.optim.Adadelta(network.parameters(), lr=1.0)
    forward = torch.compile(network) if options.compile else network
    update = torch.compile(optimiser.step) if options.compile else optimiser.step

    held_before = resident_mib("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    milliseconds, started, loss = [], time.perf_counter(), None
    for i in range(options.warm_up + options.steps):
        x, target = batches[i % len(batches)]
        begin = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        loss = F.nll_loss(forward(x), target)
        loss.backward()
        update()
        milliseconds.append((time.perf_counter() - begin) * 1e3)
        if i + 1 == options.warm_up:
            timed_from = time.perf_counter()
            machine_before, own_before = busy_seconds()
    timed_seconds = time.perf_counter() - timed_from
    machine_after, own_after = busy_seconds()
    others = (machine_after - machine_before) - (own_after - own_before)
    timed = sorted(milliseconds[options.warm_up :])
    median = statistics.median(timed)
    print(
        json.dumps(
            {
                "peer": "pytorch",
                "torch": torch.__version__,
                "processor": processor_name(),
                "mode": "compile" if options.compile else "eager",
                "channels_last": options.channels_last,
                "batch_norm": options.batch_norm,
                "batch": options.batch,
                "threads": options.threads,
                "steps": options.steps,
                "ms_per_step": round(median, 2),
                "ms_p10": round(percentile(timed, 10), 2),
                "ms_p90": round(percentile(timed, 90), 2),
                "images_per_second": round(options.batch / median * 1e3, 1),
                "warm_up_seconds": round(timed_from - started, 2),
                "others_used_cores": round(max(0.0, others) / timed_seconds, 2),
                "peak_rss_growth_mib": round(resident_mib("VmHWM") - held_before, 1),
                "last_loss": round(loss.item(), 4),
            }
        )
    )


if __name__ == "__main__":
    main()
