"""Normalisation (docs/ops.md). `weight` and `bias` are vectors or 0-d tensors, which stand for numbers."""

import torch
import torch.nn.functional as F

from .vjp import vjp


def _per_channel(vector, x):
    return vector.reshape([1, -1] + [1] * (x.dim() - 2))


def _vector(operand, channels):
    return operand.expand(channels) if operand.dim() == 0 else operand


def _batch_norm(x, mean, var, weight, bias, eps):
    # F.batch_norm has no gradient to the statistics; the formula has, and must agree with it.
    y = (x - _per_channel(mean, x)) / (_per_channel(var, x) + eps).sqrt() * _per_channel(weight, x)
    y = y + _per_channel(bias, x)
    vectors = [_vector(v.detach(), x.shape[1]) for v in (weight, bias)]
    torch.testing.assert_close(
        y.detach(), F.batch_norm(x.detach(), mean.detach(), var.detach(), *vectors, False, 0.0, eps)
    )
    return y


def _batch_norm_train(x, weight, bias, eps, correction, eps_outside):
    values = x.numel() // x.shape[1]
    channels = x.shape[1]
    if correction == 0 and not eps_outside and values > 1:
        # PyTorch 2.15 reads the gradient of one image wrongly where its strides are NHWC's but the first, or the image's are.
        x = x.contiguous()
        y = F.batch_norm(x, None, None, _vector(weight, channels), _vector(bias, channels), True, 0.0, eps)
        if y.requires_grad:
            y.register_hook(lambda g: g.contiguous())
        return y
    dims = [d for d in range(x.dim()) if d != 1]
    centred = x - x.mean(dims, keepdim=True)
    variance = centred.square().sum(dims, keepdim=True) / max(0, values - correction)
    scale = 1 / (variance.sqrt() + eps) if eps_outside else 1 / (variance + eps).sqrt()
    return centred * scale * _per_channel(weight, x) + _per_channel(bias, x)


def _batch_norm_train_input_grad(x, weight, g, **attributes):
    zero = torch.zeros((), dtype=x.dtype)
    return vjp(lambda t: _batch_norm_train(t, weight, zero, **attributes), x, g)


def _batch_norm_train_weight_grad(x, g, **attributes):
    zero = torch.zeros((), dtype=x.dtype)
    weight = torch.ones(x.shape[1], dtype=x.dtype)
    return vjp(lambda w: _batch_norm_train(x, w, zero, **attributes), weight, g)


def _layer_norm(x, weight, bias, normalized_shape, eps):
    weight = weight.expand(normalized_shape)
    bias = bias.expand(normalized_shape)
    return F.layer_norm(x, normalized_shape, weight, bias, eps)


def _group_norm(x, weight, bias, num_groups, eps):
    return F.group_norm(x, num_groups, _vector(weight, x.shape[1]), _vector(bias, x.shape[1]), eps)


def _instance_norm(x, weight, bias, eps):
    return F.instance_norm(x, None, None, _vector(weight, x.shape[1]), _vector(bias, x.shape[1]), True, 0.0, eps)


MEANING = {
    "batch_norm": _batch_norm,
    "batch_norm_train": _batch_norm_train,
    "batch_norm_train_input_grad": _batch_norm_train_input_grad,
    "batch_norm_train_weight_grad": _batch_norm_train_weight_grad,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "instance_norm": _instance_norm,
}
