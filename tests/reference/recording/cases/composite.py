"""composite/*: activations, softmax, bias_add (docs/ops.md), with their gradients at the kinks."""

import numpy as np

from ..inputs import f32, uniform
from ..recorder import Case

_ORDINARY = uniform("activations", [24], -8.0, 8.0)

# op: [(suffix, attributes, points beside the ordinary ones)]
_ACTIVATIONS = {
    "relu": [("", {}, (0, -0.0, np.inf, -np.inf, np.nan))],
    "relu6": [("", {}, (0, 6, 5.5, np.inf, -np.inf, np.nan))],
    "leaky_relu": [("", {}, (0, np.inf, -np.inf, np.nan)), ("_steep", {"negative_slope": 0.25}, (0,))],
    "elu": [("", {}, (0, -100, np.inf, -np.inf)), ("_alpha", {"alpha": 0.5}, (0,))],
    "selu": [("", {}, (0, -100, np.inf, -np.inf))],
    "gelu": [("", {}, (0, 20, -20)), ("_tanh", {"approximate": "tanh"}, (0, 20, -20))],
    "silu": [("", {}, (0, 100, -100))],
    "mish": [("", {}, (0, 50, -50))],
    "softplus": [
        ("", {}, (0, 20, 20.5, -100, np.inf, -np.inf)),
        ("_beta", {"beta": 2.5, "threshold": 10}, (0, 4.5, 100, -100)),
    ],
    "hardsigmoid": [("", {}, (-3, 3, 0, np.inf, -np.inf))],
    "hardswish": [("", {}, (-3, 3, 0, np.inf, np.nan))],
}


def _activations():
    for op, variants in _ACTIVATIONS.items():
        for suffix, attributes, points in variants:
            case = Case(f"composite/{op}{suffix}", rtol=2e-6, atol=2e-6)
            x = case.param("x", np.concatenate([_ORDINARY, f32(*points)]), grad=True)
            case.result(getattr(case, op)(x, **attributes))
            yield case


def _softmax():
    for op in ("softmax", "log_softmax"):
        for dim, shape in ((0, [5]), (1, [4, 7]), (1, [2, 5, 3, 3]), (2, [2, 3, 33]), (0, [6, 2, 2])):
            name = f"composite/{op}_{'x'.join(map(str, shape))}_dim{dim}"
            case = Case(name, rtol=4e-6, atol=2e-6)
            case.result(getattr(case, op)(case.param("x", uniform(name, shape, -6, 6), grad=True), dim=dim))
            yield case
        case = Case(
            f"composite/{op}_edges",
            rtol=4e-6,
            atol=1e-6,
            note="Rows: large; huge; some -inf; all -inf; one +inf; one NaN; equal; one value dominates.",
        )
        rows = np.array(
            [
                [1000, 1001, 999, 1000],
                [1e30, -1e30, 0, 1e30],
                [-np.inf, 1, 2, -np.inf],
                [-np.inf] * 4,
                [1, np.inf, 2, 3],
                [1, np.nan, 2, 3],
                [5, 5, 5, 5],
                [-200, 0, -90, -1],
            ],
            dtype=np.float32,
        )
        case.result(getattr(case, op)(case.param("x", rows), dim=1))
        yield case


def _bias_add():
    for shape in ([4, 3], [2, 3, 5], [2, 3, 4, 4]):
        case = Case(f"composite/bias_add_rank{len(shape)}", rtol=2e-6, atol=2e-6)
        x = case.param("x", uniform(case.name, shape), grad=True)
        b = case.param("b", uniform(case.name + "b", [3]), grad=True)
        case.result(case.bias_add(x, b))
        yield case


def cases():
    yield from _activations()
    yield from _softmax()
    yield from _bias_add()
