"""half/*: a sample of the ops in f16 and bf16, which compute in f32 and round what they store.

Expected values are the unrounded ones in f64. The tolerance allows one rounding for single ops, and for composite ones
a rounding of each inner value, because a value that is not fused is stored.
"""

import numpy as np

from ..inputs import f32, uniform
from ..recorder import Case

_UNIT = {"f16": 2.0**-11, "bf16": 2.0**-8}


def _single_ops(dtype):
    unit = _UNIT[dtype]
    case = Case(f"half/{dtype}_elementwise", rtol=1.01 * unit, atol=1e-7)
    a = case.param("a", uniform(case.name + "a", [4, 6], -2, 2), dtype=dtype)
    b = case.param("b", uniform(case.name + "b", [6], 0.5, 3), dtype=dtype)
    case.result(
        case.add(a, b),
        case.sub(a, b),
        case.mul(a, b),
        case.div(a, b),
        case.exp(a),
        case.sqrt(b),
        case.log(b),
        case.tanh(a),
        case.sigmoid(a),
        case.maximum(a, b),
        case.add(a, 0.1),
        case.relu(a),
        case.neg(a),
    )
    yield case

    case = Case(
        f"half/{dtype}_edges",
        rtol=1.01 * unit,
        atol=2.0**-25 if dtype == "f16" else 1e-40,
        note="Overflow when stored; denormals.",
    )
    x = case.param(
        "x", f32(60000, -60000, 3e38, -3e38, 6e-8, 1e-39, 0, -0.0, np.inf, -np.inf, np.nan, 1, 300), dtype=dtype
    )
    case.result(
        case.add(x, x),
        case.mul(x, x),
        case.mul(x, 0.5),
        case.cast(x, dtype="f32"),
        case.cast(x, dtype="i32"),
        case.gt(x, 1),
        case.isinf(x),
    )
    yield case

    case = Case(f"half/{dtype}_gradient", rtol=4 * unit, atol=4 * unit)
    a = case.param("a", uniform(case.name + "a", [3, 4], -2, 2), dtype=dtype, grad=True)
    b = case.param("b", uniform(case.name + "b", [4], 0.5, 2), dtype=dtype, grad=True)
    case.result(case.tanh(case.mul(a, b)))
    yield case

    other = "bf16" if dtype == "f16" else "f16"
    case = Case(
        f"half/{dtype}_promotion", rtol=1.01 * unit, atol=1e-7, note="With f32, and with the other half type: f32."
    )
    a = case.param("a", uniform(case.name + "a", [5]), dtype=dtype)
    b = case.param("b", uniform(case.name + "b", [5]))
    c = case.param("c", uniform(case.name + "c", [5]), dtype=other)
    case.result(case.mul(a, b), case.add(a, c), case.mul(a, a))
    yield case

    case = Case(
        f"half/{dtype}_reductions", rtol=1.01 * unit, atol=unit / 4, note="Accumulated in f32: no small term is lost."
    )
    x = case.param("x", uniform(case.name, [3, 500], 0.5, 1.5), dtype=dtype)
    case.result(
        case.sum(x, dim=[1]),
        case.mean(x, dim=[1]),
        case.amax(x, dim=[0, 1]),
        case.var(x, dim=[1]),
        case.sum(case.cast(x, dtype="f32"), dim=[0, 1]),
    )
    yield case


def _anchors_and_norms(dtype):
    unit = _UNIT[dtype]
    for name, nhwc in (("nchw", False), ("nhwc", True)):
        case = Case(f"half/{dtype}_conv2d_{name}", rtol=2 * unit, atol=2 * unit)
        x = case.param("x", uniform(case.name + "x", [2, 5, 6, 6], -1, 1), dtype=dtype, grad=True, nhwc=nhwc)
        w = case.param("w", uniform(case.name + "w", [4, 5, 3, 3], -0.5, 0.5), dtype=dtype, grad=True, nhwc=nhwc)
        case.result(case.conv2d(x, w, padding=[1, 1, 1, 1]))
        yield case

    case = Case(f"half/{dtype}_matmul", rtol=2 * unit, atol=2 * unit)
    a = case.param("a", uniform(case.name + "a", [5, 33], -1, 1), dtype=dtype, grad=True)
    b = case.param("b", uniform(case.name + "b", [33, 6], -1, 1), dtype=dtype, grad=True)
    case.result(case.matmul(a, b))
    yield case

    case = Case(f"half/{dtype}_batch_norm_train", rtol=8 * unit, atol=8 * unit, note="f32 vectors beside a narrow x.")
    x = case.param("x", uniform(case.name, [4, 3, 5, 5]), dtype=dtype, grad=True)
    weight = case.param("weight", uniform(case.name + "w", [3], 0.5, 1.5), grad=True)
    bias = case.param("bias", uniform(case.name + "b", [3], -1, 1), grad=True)
    case.result(case.relu(case.batch_norm_train(x, weight, bias)))
    yield case

    case = Case(f"half/{dtype}_softmax", rtol=8 * unit, atol=4 * unit)
    x = case.param("x", uniform(case.name, [4, 9], -4, 4), dtype=dtype, grad=True)
    case.result(case.softmax(x, dim=1))
    yield case

    case = Case(f"half/{dtype}_max_pool2d", rtol=2 * unit, atol=2 * unit)
    x = case.param("x", uniform(case.name, [1, 3, 6, 6]), dtype=dtype, grad=True)
    case.result(case.max_pool2d(x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1]))
    yield case


def cases():
    for dtype in _UNIT:
        yield from _single_ops(dtype)
        yield from _anchors_and_norms(dtype)
