"""Writes a network of pytorch_resnet.py in evaluation mode as ONNX, f32: export_onnx.py NET BATCH SIZE FILE."""

import os
import sys

import torch

import pytorch_resnet


def main():
    net, batch, size, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.manual_seed(1)
    model = pytorch_resnet.MODELS[net]().eval()
    part = path + f".{os.getpid()}.onnx"
    torch.onnx.export(model, (torch.randn(batch, 3, size, size),), part, dynamo=False, input_names=["x"])
    os.replace(part, path)


if __name__ == "__main__":
    main()
