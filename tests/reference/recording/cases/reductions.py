"""reductions/*: every reduction over every kind of dims (docs/ops.md)."""

import numpy as np

from ..inputs import booleans, f32, integers, uniform
from ..recorder import Case

_DIMS = {"last": [2], "first": [0], "middle": [1], "outer": [0, 2], "all": [0, 1, 2]}


def _floats():
    for op in ("sum", "mean", "prod", "amax", "amin", "var"):
        low, high = (0.5, 1.5) if op == "prod" else (-2.0, 2.0)
        for label, dims in _DIMS.items():
            case = Case(f"reductions/{op}_{label}", rtol=4e-6, atol=4e-6)
            x = case.param("x", uniform(case.name, [3, 4, 5], low, high), grad=True)
            case.result(getattr(case, op)(x, dim=dims), getattr(case, op)(x, dim=dims, keepdim=True))
            yield case

    case = Case(
        "reductions/per_channel", rtol=1e-5, atol=1e-5, note="The reductions of a batch norm, over dims 0, 2, 3."
    )
    x = case.param("x", uniform(case.name, [4, 3, 9, 11]), grad=True)
    case.result(
        case.sum(x, dim=[0, 2, 3]),
        case.mean(x, dim=[0, 2, 3]),
        case.var(x, dim=[0, 2, 3], correction=0),
        case.var(x, dim=[0, 2, 3], correction=1),
    )
    yield case

    case = Case(
        "reductions/long_row", rtol=4e-6, atol=1e-3, note="5000 values of mean 1: a sum that a plain f32 chain keeps."
    )
    x = case.param("x", uniform(case.name, [2, 5000], 0.5, 1.5), grad=True)
    case.result(case.sum(x, dim=[1]), case.mean(x, dim=[1]), case.var(x, dim=[1]), case.amax(x, dim=[1]))
    yield case

    case = Case("reductions/rank0", note="dim=[] of a value without dims is the value.")
    x = case.param("x", uniform(case.name, []), grad=True)
    case.result(case.sum(x, dim=[]), case.mean(x, dim=[]))
    yield case


def _var():
    for correction in (0, 1, 2):
        case = Case(f"reductions/var_correction{correction}", rtol=4e-6, atol=4e-6)
        x = case.param("x", uniform(case.name, [4, 6]), grad=True)
        case.result(case.var(x, dim=[1], correction=correction))
        yield case

    case = Case(
        "reductions/var_shifted",
        rtol=1e-4,
        atol=0,
        note="Mean 1000, deviation 1: E[x^2]-E[x]^2 in f32 would be wrong in the second digit.",
    )
    x = case.param("x", uniform(case.name, [2, 257], 998.0, 1002.0))
    case.result(case.var(x, dim=[1]), case.var(x, dim=[1], correction=0))
    yield case

    case = Case("reductions/var_one_value", note="One value: correction 1 gives NaN, correction 0 gives 0.")
    x = case.param("x", uniform(case.name, [3, 1]))
    case.result(case.var(x, dim=[1]), case.var(x, dim=[1], correction=0))
    yield case


def _edges():
    special = np.array(
        [
            [1, np.nan, 3, 2],
            [np.inf, 1, 2, 3],
            [-np.inf, 1, 2, 3],
            [np.inf, -np.inf, 0, 1],
            [-0.0, 0.0, 0.0, -0.0],
            [np.nan, np.inf, np.nan, 0],
        ],
        dtype=np.float32,
    )
    case = Case(
        "reductions/special_values", rtol=1e-6, atol=1e-6, note="NaN wins in amax and amin; any and all count it."
    )
    x = case.param("x", special)
    case.result(*(getattr(case, op)(x, dim=[1]) for op in ("sum", "mean", "prod", "amax", "amin", "any", "all", "var")))
    yield case

    case = Case("reductions/argmax_special_values", rtol=0, atol=0, note="The first of equals; the first NaN wins.")
    x = case.param("x", special)
    case.result(case.argmax(x, dim=1), case.argmin(x, dim=1))
    yield case

    for op in ("amax", "amin"):
        case = Case(f"reductions/{op}_ties", note="The gradient is shared evenly by the ties.")
        x = case.param("x", np.array([[1, 3, 3, 2], [-1, -1, -1, -1], [0, -0.0, -5, 5]], dtype=np.float32), grad=True)
        case.result(getattr(case, op)(x, dim=[1]), getattr(case, op)(x, dim=[0, 1]))
        yield case

    case = Case("reductions/prod_zeros", note="No, one and two zeros in a row.")
    x = case.param("x", np.array([[2, 3, 4], [2, 0, 4], [0, 3, 0]], dtype=np.float32), grad=True)
    case.result(case.prod(x, dim=[1]), case.prod(x, dim=[0]))
    yield case

    case = Case("reductions/empty", note="Reduced dims of size 0, then a kept one.")
    x = case.param("x", np.zeros([3, 0], dtype=np.float32), grad=True)
    case.result(
        case.sum(x, dim=[1]),
        case.mean(x, dim=[1]),
        case.prod(x, dim=[1]),
        case.any(x, dim=[1]),
        case.all(x, dim=[1]),
        case.sum(x, dim=[0]),
        case.amax(x, dim=[0]),
    )
    yield case


def _other_dtypes():
    for label, values in (
        ("i32", integers("reduce i32", [3, 5], -40000, 40000, np.int32)),
        ("i64", integers("reduce i64", [3, 5], -(2**33), 2**33)),
        ("i8", integers("reduce i8", [3, 70], -128, 128, np.int8)),
        ("u8", integers("reduce u8", [3, 70], 0, 256, np.uint8)),
        ("i16", integers("reduce i16", [3, 70], -(2**15), 2**15, np.int16)),
        ("bool", booleans("reduce bool", [3, 5])),
    ):
        case = Case(
            f"reductions/of_{label}", rtol=0, atol=0, note="Sums and products of integers and bools are i64, and wrap."
        )
        x = case.param("x", values)
        case.result(
            *(
                getattr(case, op)(x, dim=dims)
                for op in ("sum", "prod", "amax", "amin", "any", "all")
                for dims in ([1], [0, 1])
            )
        )
        case.result(case.argmax(x, dim=0), case.argmin(x, dim=1, keepdim=True))
        yield case

    case = Case("reductions/argmax", rtol=0, atol=0)
    x = case.param("x", np.round(uniform(case.name, [3, 4, 5]) * 2) / 2)
    case.result(*(case.argmax(x, dim=d) for d in range(3)), case.argmin(x, dim=1), case.argmin(x, dim=2, keepdim=True))
    yield case

    case = Case("reductions/any_all", rtol=0, atol=0)
    x = case.param("x", f32(0, 0, -0.0, 0, 1, 0, np.nan, 0, 0, 2, 3, 4).reshape(4, 3))
    case.result(case.any(x, dim=[1]), case.all(x, dim=[1]), case.any(x, dim=[0, 1]), case.all(x, dim=[0], keepdim=True))
    yield case


def cases():
    yield from _floats()
    yield from _var()
    yield from _edges()
    yield from _other_dtypes()
