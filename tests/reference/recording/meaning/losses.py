"""Losses (docs/ops.md)."""

import torch
import torch.nn.functional as F


def _nll_loss(logp, target, reduction, ignore_index):
    target = target.long()
    outside = ((target < 0) | (target >= logp.shape[1])) & (target != ignore_index)
    if not outside.any():
        return F.nll_loss(logp, target, reduction=reduction, ignore_index=ignore_index)
    if reduction != "none":
        raise ValueError("a target outside the classes is recorded with reduction=none alone")
    # PyTorch raises; fusejit gives NaN.
    loss = F.nll_loss(logp, torch.where(outside, 0, target), reduction="none", ignore_index=ignore_index)
    return torch.where(outside, torch.nan, loss)


def _cross_entropy(x, target, reduction, ignore_index, label_smoothing):
    return F.cross_entropy(
        x, target.long(), reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing
    )


def _broadcast(function):
    return lambda x, t, **attributes: function(*torch.broadcast_tensors(x, t), **attributes)


MEANING = {
    "nll_loss": _nll_loss,
    "cross_entropy": _cross_entropy,
    "mse_loss": _broadcast(F.mse_loss),
    "l1_loss": _broadcast(F.l1_loss),
    "smooth_l1_loss": _broadcast(F.smooth_l1_loss),
    "binary_cross_entropy_with_logits": _broadcast(F.binary_cross_entropy_with_logits),
}
