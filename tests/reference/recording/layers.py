"""layers/<name>.npz: each layer of fusejit's nn as PyTorch's torch.nn has it: names, forward and gradients, in f64.

Arrays: `x` (`query`, `key`, ... of attention), `state.<name>` for every value of the state_dict, `out`, the cotangent
`d_out`, the gradients `d_<input>` and `grad.<name>`, and `after.<name>` for running statistics that the forward pass
changed. Everything that is put in comes from integer arithmetic; what `train` says is the mode.
"""

import pathlib
import shutil

import numpy as np
import torch
from torch import nn

from .inputs import integers, uniform
from .npz import version_numbers, write_npz

IMAGE = [2, 4, 5, 6]  # what the sizes of layers below fit


def _layers():
    """name: (layer, shapes or values of its inputs, mode)."""
    images = {"x": IMAGE}
    yield "conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), {"x": [2, 4, 9]}, True
    for mode in ("reflect", "replicate", "circular"):
        yield f"conv1d_{mode}", nn.Conv1d(4, 3, 3, padding=2, padding_mode=mode), {"x": [2, 4, 9]}, True
    conv1d_same = nn.Conv1d(4, 3, 4, padding="same", padding_mode="reflect", bias=False)
    yield "conv1d_reflect_same", conv1d_same, {"x": [2, 4, 9]}, True
    yield "conv2d", nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), images, True
    for mode in ("reflect", "replicate", "circular"):
        yield f"conv2d_{mode}", nn.Conv2d(4, 3, 3, padding=(2, 1), padding_mode=mode), images, True
    yield "conv2d_reflect_same", nn.Conv2d(4, 3, (2, 4), padding="same", padding_mode="reflect"), images, True
    yield "conv_transpose2d", nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), images, True
    grouped = nn.ConvTranspose2d(4, 6, (2, 3), stride=(2, 1), groups=2, bias=False, dilation=2)
    yield "conv_transpose2d_groups", grouped, images, True
    yield "linear", nn.Linear(6, 3), images, True
    yield "batch_norm2d", nn.BatchNorm2d(4), images, True
    yield "batch_norm2d_eval", nn.BatchNorm2d(4), images, False
    yield "layer_norm", nn.LayerNorm(6), images, True
    yield "layer_norm_image", nn.LayerNorm([4, 5, 6], eps=1e-3, bias=False), images, True
    yield "layer_norm_plain", nn.LayerNorm([5, 6], elementwise_affine=False), images, True
    yield "group_norm", nn.GroupNorm(2, 4), images, True
    yield "group_norm_plain", nn.GroupNorm(4, 4, affine=False), images, True
    yield "instance_norm2d", nn.InstanceNorm2d(4), images, True
    yield "instance_norm2d_affine", nn.InstanceNorm2d(4, affine=True, eps=1e-3), images, True
    tracked = {"affine": True, "track_running_stats": True, "momentum": 0.25}
    yield "instance_norm2d_tracked", nn.InstanceNorm2d(4, **tracked), images, True
    yield "instance_norm2d_tracked_eval", nn.InstanceNorm2d(4, **tracked), images, False
    for name, layer in {
        "relu": nn.ReLU(),
        "relu6": nn.ReLU6(),
        "leaky_relu": nn.LeakyReLU(),
        "prelu": nn.PReLU(),
        "prelu_channels": nn.PReLU(4),
        "elu": nn.ELU(),
        "selu": nn.SELU(),
        "gelu": nn.GELU(),
        "gelu_tanh": nn.GELU("tanh"),
        "silu": nn.SiLU(),
        "mish": nn.Mish(),
        "softplus": nn.Softplus(),
        "softplus_beta": nn.Softplus(2, 3),
        "sigmoid": nn.Sigmoid(),
        "hardsigmoid": _Hardsigmoid(),
        "hardswish": nn.Hardswish(),
        "tanh": nn.Tanh(),
        "softmax": nn.Softmax(1),
        "softmax_last": nn.Softmax(-1),
        "log_softmax": nn.LogSoftmax(1),
        "identity": nn.Identity(),
        "max_pool2d": nn.MaxPool2d(2),
        "avg_pool2d": nn.AvgPool2d(2),
        "max_pool2d_ceil": nn.MaxPool2d(2, ceil_mode=True),
        "avg_pool2d_ceil": nn.AvgPool2d(2, ceil_mode=True),
        "adaptive_max_pool2d": nn.AdaptiveMaxPool2d((5, 3)),
        "pixel_shuffle": nn.PixelShuffle(2),
        "adaptive_avg_pool2d": nn.AdaptiveAvgPool2d((2, 3)),
        "upsample_scale": nn.Upsample(scale_factor=2),
        "upsample_size": nn.Upsample(size=(7, 4)),
        "upsample_bilinear": nn.Upsample(scale_factor=(2, 1.5), mode="bilinear"),
        "upsample_bilinear_size": nn.Upsample(size=(7, 4), mode="bilinear"),
        "upsample_corners": nn.Upsample(scale_factor=1.5, mode="bilinear", align_corners=True),
    }.items():
        yield name, layer, images, True
    yield "pixel_unshuffle", nn.PixelUnshuffle(2), {"x": [2, 1, 4, 6]}, True
    rows = {"x": integers("layers embedding", [3, 4], 0, 7)}
    rows["x"][0, 1] = rows["x"][2, 2] = 5
    yield "embedding", nn.Embedding(7, 3), rows, True
    yield "embedding_padding", nn.Embedding(7, 3, padding_idx=-2), rows, True
    yield "attention_self", _SelfAttention(8, 2), {"x": [3, 5, 8]}, True
    three = {"query": [3, 5, 8], "key": [3, 4, 8], "value": [3, 4, 8]}
    yield "attention", nn.MultiheadAttention(8, 4, batch_first=True), three, True
    yield "attention_plain", nn.MultiheadAttention(8, 1, bias=False, batch_first=True), three, True
    ignored = integers("layers ignored", [3, 4], 0, 2).astype(bool)
    ignored[:, 0] = False
    masked = {**three, "attn_mask": uniform("layers attn_mask", [5, 4]), "key_padding_mask": ignored}
    yield "attention_masked", nn.MultiheadAttention(8, 4, batch_first=True), masked, True
    heads = integers("layers attn_mask heads", [12, 5, 4], 0, 2).astype(bool)
    heads[:, :, 1] = False
    yield "attention_masked_heads", nn.MultiheadAttention(8, 4, batch_first=True), {**three, "attn_mask": heads}, True


class _Hardsigmoid(nn.Module):
    """By its formula: the gradient of PyTorch's own takes a sixth from f32."""

    def forward(self, x):
        return nn.functional.relu6(x + 3) / 6


class _SelfAttention(nn.MultiheadAttention):
    def __init__(self, features, heads):
        super().__init__(features, heads, batch_first=True)

    def forward(self, x):
        return super().forward(x, x, x)


def _recorded(name, layer, inputs, train):
    layer = layer.double().train(train)
    arrays = {"torch_version": version_numbers(torch.__version__)}
    with torch.no_grad():
        for key, value in layer.state_dict().items():
            if key.endswith("num_batches_tracked"):
                continue
            low = 0.5 if key.endswith("running_var") else -1
            arrays[f"state.{key}"] = uniform(f"layers {name} {key}", list(value.shape), low, 1.5)
            value.copy_(torch.tensor(arrays[f"state.{key}"].astype(np.float64)))
    given = {}
    for key, value in inputs.items():
        array = uniform(f"layers {name} {key}", value, -4, 4) if isinstance(value, list) else value
        arrays[key] = array.astype(np.int32) if array.dtype == bool else array
        given[key] = torch.tensor(array.astype(np.float64) if array.dtype == np.float32 else array)
        if given[key].is_floating_point() and "mask" not in key:
            given[key].requires_grad_()
    result = layer(**given) if "query" in given else layer(given["x"])
    result = result[0] if isinstance(result, tuple) else result
    arrays["out"] = result.detach().numpy()
    arrays["d_out"] = uniform(f"layers {name} d_out", list(result.shape))
    result.backward(torch.tensor(arrays["d_out"].astype(np.float64)))
    arrays.update({f"d_{key}": t.grad.numpy() for key, t in given.items() if t.requires_grad})
    arrays.update({f"grad.{key}": p.grad.numpy() for key, p in layer.named_parameters()})
    arrays.update({f"after.{key}": b.numpy() for key, b in layer.named_buffers() if key.startswith("running_")})
    return arrays


def record(folder):
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    torch.manual_seed(0)
    for name, layer, inputs, train in _layers():
        write_npz(folder / f"{name}.npz", _recorded(name, layer, inputs, train))
