"""losses/*: every loss with every reduction (docs/ops.md)."""

import numpy as np

from ..inputs import f32, integers, uniform
from ..recorder import Case

_TOLERANCE = {"rtol": 4e-6, "atol": 4e-6}
_REDUCTIONS = ("mean", "sum", "none")


def _classes(case, shape, dtype=np.int64, ignored=None):
    target_shape = [shape[0], *shape[2:]]
    target = integers(case.name + "target", target_shape, 0, shape[1], dtype)
    if ignored is not None:
        target.reshape(-1)[::3] = ignored
    return case.param("target", target)


def _class_losses():
    for op in ("nll_loss", "cross_entropy"):
        for reduction in _REDUCTIONS:
            for name, shape in (("nc", [6, 5]), ("nchw", [2, 4, 3, 3])):
                case = Case(f"losses/{op}_{reduction}_{name}", **_TOLERANCE)
                x = case.param("x", uniform(case.name, shape, -3, 3), grad=True)
                case.result(getattr(case, op)(x, _classes(case, shape), reduction=reduction))
                yield case
            case = Case(f"losses/{op}_{reduction}_ignored", **_TOLERANCE, note="Every third target is ignored.")
            x = case.param("x", uniform(case.name, [7, 5], -3, 3), grad=True)
            target = _classes(case, [7, 5], np.int32, ignored=2)
            case.result(getattr(case, op)(x, target, reduction=reduction, ignore_index=2))
            yield case

        case = Case(f"losses/{op}_bytes", **_TOLERANCE, note="Targets are bytes, and there are more classes than bytes.")
        x = case.param("x", uniform(case.name, [6, 300], -3, 3), grad=True)
        target = case.param("target", np.array([0, 255, 128, 7, 255, 43], dtype=np.uint8))
        case.result(getattr(case, op)(x, target), getattr(case, op)(x, target, ignore_index=255))
        yield case

        case = Case(f"losses/{op}_default_ignored", **_TOLERANCE, note="ignore_index is -100.")
        x = case.param("x", uniform(case.name, [6, 4], -3, 3), grad=True)
        case.result(getattr(case, op)(x, _classes(case, [6, 4], ignored=-100)))
        yield case

        case = Case(f"losses/{op}_all_ignored", **_TOLERANCE, note="The mean of nothing is NaN, the sum 0.")
        x = case.param("x", uniform(case.name, [3, 4], -3, 3))
        target = case.param("target", np.full([3], -100))
        case.result(*(getattr(case, op)(x, target, reduction=r) for r in _REDUCTIONS))
        yield case

    case = Case("losses/nll_loss_out_of_range", **_TOLERANCE, note="NaN at such a target (PyTorch raises).")
    x = case.param("x", uniform(case.name, [5, 3], -3, 3))
    target = case.param("target", np.array([0, 3, -1, 2, -100]))
    case.result(case.nll_loss(x, target, reduction="none"))
    yield case


def _label_smoothing():
    for reduction in _REDUCTIONS:
        case = Case(f"losses/cross_entropy_{reduction}_smoothed", **_TOLERANCE)
        x = case.param("x", uniform(case.name, [6, 5], -3, 3), grad=True)
        target = _classes(case, [6, 5], ignored=-100)
        case.result(case.cross_entropy(x, target, reduction=reduction, label_smoothing=0.1))
        yield case

    case = Case("losses/cross_entropy_smoothed_nchw", **_TOLERANCE)
    x = case.param("x", uniform(case.name, [2, 4, 3, 2], -3, 3), grad=True)
    target = _classes(case, [2, 4, 3, 2], ignored=1)
    case.result(case.cross_entropy(x, target, ignore_index=1, label_smoothing=0.25))
    yield case

    case = Case("losses/cross_entropy_large", **_TOLERANCE, note="Logits of 1000: no overflow.")
    x = case.param("x", np.array([[1000, 0, -1000], [-1000, -1000, -999], [1e30, 0, 0]], dtype=np.float32), grad=True)
    target = case.param("target", np.array([0, 1, 0]))
    case.result(case.cross_entropy(x, target), case.cross_entropy(x, target, reduction="none"))
    yield case


_PAIRED = {
    "mse_loss": [("", {})],
    "l1_loss": [("", {})],
    "smooth_l1_loss": [("", {}), ("_beta", {"beta": 0.5}), ("_beta0", {"beta": 0})],
    "binary_cross_entropy_with_logits": [("", {})],
}


def _paired_losses():
    for op, variants in _PAIRED.items():
        low = 0 if op == "binary_cross_entropy_with_logits" else -3
        for suffix, attributes in variants:
            for reduction in _REDUCTIONS:
                case = Case(f"losses/{op}_{reduction}{suffix}", **_TOLERANCE)
                x = case.param("x", uniform(case.name, [4, 5], -3, 3), grad=True)
                t = case.param("t", uniform(case.name + "t", [4, 5], low, 1), grad=True)
                case.result(getattr(case, op)(x, t, reduction=reduction, **attributes))
                yield case
        case = Case(f"losses/{op}_broadcast", **_TOLERANCE, note="x and t broadcast against each other.")
        x = case.param("x", uniform(case.name, [4, 1, 3], -3, 3), grad=True)
        t = case.param("t", uniform(case.name + "t", [5, 1], low, 1), grad=True)
        case.result(getattr(case, op)(x, t))
        yield case


def _kinks():
    case = Case("losses/kinks", **_TOLERANCE, note="Equal x and t; a distance of exactly beta.")
    x = case.param("x", f32(1, 2, -1, 0.5, -3, 4), grad=True)
    t = case.param("t", f32(1, 1, 0, 0, -3, 2))
    case.result(
        case.l1_loss(x, t, reduction="none"),
        case.smooth_l1_loss(x, t, reduction="none"),
        case.smooth_l1_loss(x, t, reduction="none", beta=2),
    )
    yield case

    case = Case("losses/binary_cross_entropy_with_logits_large", **_TOLERANCE, note="Logits of 1000: no overflow.")
    x = case.param("x", f32(1000, -1000, 100, -100, 0, 30, 1e-10), grad=True)
    t = case.param("t", f32(0, 1, 1, 0, 0.5, 0.25, 1), grad=True)
    case.result(case.binary_cross_entropy_with_logits(x, t, reduction="none"))
    yield case


def cases():
    yield from _class_losses()
    yield from _label_smoothing()
    yield from _paired_losses()
    yield from _kinks()
