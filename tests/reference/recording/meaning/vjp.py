"""The gradient of a function as an ordinary differentiable function: how every `*_grad` op gets its meaning."""

import torch


def vjp(function, at, cotangent):
    """The gradient of <function(at), cotangent>, itself differentiable in `at`, `cotangent` and captured tensors."""
    if not at.requires_grad:
        at = at.detach().requires_grad_()
    with torch.enable_grad():
        (result,) = torch.autograd.grad(function(at), at, cotangent, create_graph=True)
    return result


def transpose(function, input_shape, cotangent):
    """The transpose of a function that is linear in its input."""
    return vjp(function, torch.zeros(input_shape, dtype=cotangent.dtype), cotangent)
