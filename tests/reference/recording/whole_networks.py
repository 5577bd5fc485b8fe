"""torchvision's networks and the U-Net at full size as users have them: weights as .npz and as .safetensors, the network
as ONNX by each of PyTorch's exporters, and what PyTorch computes in f64. 3 GB, not to be committed.

    <name>.weights.npz, <name>.weights.safetensors   state_dict()
    <name>.onnx            the exporter with dynamo=False: batch norm is folded into convolutions
    <name>.names.onnx      the same with its training form kept and nothing folded: names are those of state_dict()
    <name>.program.onnx    the exporter with dynamo=True, weights in a file of their own
    <name>.npz             x, and y = the network of x in f64
"""

import warnings

import numpy as np
import safetensors.torch
import torch
import torchvision

from . import inputs, networks
from .npz import write_npz
from .onnx_networks import export

SEED = 1
NETWORKS = {
    "resnet50": (torchvision.models.resnet50, (2, 3, 224, 224)),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, (2, 3, 224, 224)),
    "vgg16": (torchvision.models.vgg16, (1, 3, 224, 224)),
    "densenet121": (torchvision.models.densenet121, (2, 3, 224, 224)),
    "squeezenet1_0": (torchvision.models.squeezenet1_0, (2, 3, 224, 224)),
    "unet": (lambda: networks.UNet(64, 4, 21), (1, 3, 128, 128)),
}
TRAINING_BATCHES = 3


def _as_trained(network, x):
    """Running statistics near those of the activations, and no two vectors equal: the exporter with dynamo=False writes
    equal values once, under one of their names."""
    network.train()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
        for _ in range(TRAINING_BATCHES):
            network(x)
    return network.eval()


def write_forms(folder, name, network, x):
    """Of a network in evaluation mode: all that the module's docstring lists, but for x and y."""
    state = network.state_dict()
    np.savez(folder / f"{name}.weights.npz", **{key: value.numpy() for key, value in state.items()})
    safetensors.torch.save_file(state, folder / f"{name}.weights.safetensors", {"format": "pt"})
    export(network, x, folder / f"{name}.onnx", 17)
    export(network, x, folder / f"{name}.names.onnx", 17, torch.onnx.TrainingMode.PRESERVE, folds=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (x,), folder / f"{name}.program.onnx", dynamo=True, verbose=False,
                          input_names=["x"], output_names=["y"], dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))


def write(folder):
    for name, (make, shape) in NETWORKS.items():
        torch.manual_seed(SEED)
        x = torch.from_numpy(inputs.uniform(f"x {name}", shape))
        network = _as_trained(make(), x)
        write_forms(folder, name, network, x)
        with torch.no_grad():
            y = network.double()(x.double())
        write_npz(folder / f"{name}.npz", {"x": x.numpy(), "y": y.numpy()})
        print(name, tuple(y.shape), float(y.abs().max()))
