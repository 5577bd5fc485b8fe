"""resnet18_bf16_curve.npz, resnet18_f16_curve.npz: 200 losses of ResNet-18 in mixed precision, as PyTorch trains it.

Images and initial values are those of resnet_curve.py, batches of 32; SGD at a rate at which rounding is not amplified
so much that another momentum would go unseen. In f16 batches of 16 and a quarter of the channels, since a step of the
whole network takes PyTorch ten seconds: its f16 convolutions are not made for processors. Network and loss are within
`torch.autocast("cpu", dtype)`; in f16 there is a GradScaler (SCALER), whose scale after each step is `scale`. It begins
so high that two updates surely overflow and are left out, then stands where none does: at the edge it would be a
question of rounding whether there is an update.

How far two right implementations may be apart is what PyTorch's own runs are: its run in f32 (`loss_f32`), which leaves
the same updates out and whose distance is that of everything that is rounded, and runs in autocast whose initial
weights differ in the last bit of their f32. `tolerance` is four times what any of them strayed from `loss` up to that
step, `window_tolerance` four times what the means of 20 losses each did up to that window.
"""

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F

from .npz import version_numbers, write_npz
from .resnet_curve import batches, initial_network

STEPS, WINDOW, NUDGED_RUNS = 200, 20, 2
BATCH = {"bf16": 32, "f16": 16}
WIDTH = {"bf16": 64, "f16": 16}
HYPER = {"lr": 5e-5, "momentum": 0.9}
SCALER = {"init_scale": 2.0**19, "backoff_factor": 2.0**-4, "growth_interval": 150}
LEFT_OUT = {"bf16": 0, "f16": 2}
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def _trained(name, data, narrow, nudged):
    """Losses, and scales after each step."""
    torch.set_num_threads(1)
    images, labels = batches(data, STEPS, BATCH[name])
    dtype = DTYPES[name]
    network = initial_network(torch.float32, nudged, WIDTH[name])
    steps = torch.optim.SGD(network.parameters(), **HYPER)
    scaler = torch.amp.GradScaler("cpu", **SCALER, enabled=narrow and dtype == torch.float16)
    losses, scales = [], []
    for i, (x, target) in enumerate(zip(images, labels)):
        steps.zero_grad()
        with torch.autocast("cpu", dtype=dtype, enabled=narrow):
            loss = F.cross_entropy(network(torch.tensor(x).expand(-1, 3, -1, -1)), torch.tensor(target))
        scaler.scale(loss).backward()
        if narrow or i >= LEFT_OUT[name]:
            scaler.step(steps)
        scaler.update()
        losses.append(loss.item())
        scales.append(scaler.get_scale())
    return np.array(losses), np.array(scales)


def _windows(losses):
    return losses.reshape(-1, WINDOW).mean(axis=1)


def _curve(name, data):
    runs = [(True, None), (False, None)] + [(True, run) for run in range(NUDGED_RUNS)]
    with ProcessPoolExecutor(2) as pool:
        made = list(pool.map(_trained, *zip(*((name, data, narrow, nudged) for narrow, nudged in runs))))
    losses = np.array([run[0] for run in made])
    strayed = np.abs(losses[1:] - losses[0]).max(axis=0)
    windows = np.array([_windows(run) for run in losses])
    arrays = {
        "loss": losses[0],
        "loss_f32": losses[1],
        "tolerance": 4 * np.maximum.accumulate(strayed),
        "window_tolerance": 4 * np.maximum.accumulate(np.abs(windows[1:] - windows[0]).max(axis=0)),
        "batch": np.array(BATCH[name]),
        "width": np.array(WIDTH[name]),
        **{name: np.array(value) for name, value in HYPER.items()},
        "torch_version": version_numbers(torch.__version__),
    }
    if name == "f16":
        arrays["scale"] = made[0][1]
        if any((run[1] != arrays["scale"]).any() for run in made[2:]) or arrays["scale"][1] != arrays["scale"][9]:
            raise ValueError("which updates overflow is a question of rounding")
    print(f"resnet18 in {name}: window means {windows[0]}, in f32 {windows[1]}, tolerance {arrays['window_tolerance']}")
    return arrays


def record(folder, data):
    for name in DTYPES:
        write_npz(folder / f"resnet18_{name}_curve.npz", _curve(name, data))
