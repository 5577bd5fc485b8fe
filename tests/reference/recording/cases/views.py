"""views/*: views, gather, one_hot and the sources without randomness (docs/ops.md)."""

import numpy as np

from ..inputs import booleans, f32, integers, uniform
from ..recorder import Case

# name: (input shape, op, attributes). Each is recorded with a product behind it, so that it cannot be skipped.
_ONE_OPERAND = {
    "reshape": ([2, 3, 4], "reshape", {"shape": [4, 6]}),
    "reshape_to_rank0": ([1, 1], "reshape", {"shape": []}),
    "flatten": ([2, 3, 4, 5], "flatten", {"start_dim": 1, "end_dim": 3}),
    "flatten_middle": ([2, 3, 4, 5], "flatten", {"start_dim": 1, "end_dim": 2}),
    "flatten_rank0": ([], "flatten", {"start_dim": 0, "end_dim": 0}),
    "permute": ([2, 3, 4], "permute", {"dims": [2, 0, 1]}),
    "permute_nchw_to_nhwc": ([2, 3, 4, 5], "permute", {"dims": [0, 2, 3, 1]}),
    "squeeze": ([2, 1, 3, 1], "squeeze", {"dim": [1, 3]}),
    "unsqueeze": ([2, 3], "unsqueeze", {"dim": 1}),
    "unsqueeze_last": ([2, 3], "unsqueeze", {"dim": 2}),
    "expand": ([3, 1], "expand", {"shape": [2, 3, 4]}),
    "expand_rank0": ([], "expand", {"shape": [2, 2]}),
    "slice": ([5, 7], "slice", {"starts": [1, 0], "stops": [4, 7], "steps": [1, 1]}),
    "slice_steps": ([5, 8], "slice", {"starts": [0, 1], "stops": [5, 8], "steps": [2, 3]}),
    "slice_to_empty": ([5, 3], "slice", {"starts": [2, 0], "stops": [2, 3], "steps": [1, 1]}),
    "unslice": ([3, 2], "unslice", {"shape": [6, 5], "starts": [1, 0], "steps": [2, 3]}),
    "pad": ([2, 3], "pad", {"low": [1, 0], "high": [0, 2], "value": 0.5}),
    "pad_zero": ([2, 2, 3, 3], "pad", {"low": [0, 0, 1, 2], "high": [0, 0, 2, 0]}),
    "flip": ([3, 4], "flip", {"dims": [0, 1]}),
    "flip_one": ([2, 3, 4], "flip", {"dims": [1]}),
    "flip_none": ([3], "flip", {"dims": []}),
}


def _one_operand():
    for name, (shape, op, attributes) in _ONE_OPERAND.items():
        case = Case(f"views/{name}", rtol=1e-6, atol=1e-6)
        x = case.param("x", uniform(case.name, shape), grad=True)
        view = getattr(case, op)(x, **attributes)
        case.result(view, case.mul(view, view))
        yield case

    case = Case("views/pad_inf", rtol=0, atol=0)
    x = case.param("x", uniform(case.name, [2, 3]))
    case.result(case.pad(x, low=[0, 1], high=[1, 1], value=-np.inf), case.pad(x, low=[1, 1], high=[0, 0], value=np.nan))
    yield case

    case = Case("views/chain", note="Views of views, which become one index map.")
    x = case.param("x", uniform(case.name, [2, 3, 4]), grad=True)
    y = case.permute(x, dims=[1, 2, 0])
    y = case.slice(y, starts=[0, 1, 0], stops=[3, 4, 2], steps=[2, 1, 1])
    y = case.flip(y, dims=[1])
    y = case.pad(y, low=[1, 0, 0], high=[0, 0, 1], value=2)
    y = case.reshape(y, shape=[9, 3])
    case.result(case.exp(y))
    yield case


def _concat():
    case = Case("views/concat", note="An operand may be empty along dim.")
    a = case.param("a", uniform(case.name + "a", [2, 3]), grad=True)
    b = case.param("b", uniform(case.name + "b", [2, 0]), grad=True)
    c = case.param("c", uniform(case.name + "c", [2, 4]), grad=True)
    joined = case.concat(a, b, c, a, dim=1)
    case.result(joined, case.square(joined))
    yield case

    case = Case("views/concat_channels")
    a = case.param("a", uniform(case.name + "a", [2, 3, 4, 4]), grad=True)
    b = case.param("b", uniform(case.name + "b", [2, 5, 4, 4]), grad=True)
    case.result(case.relu(case.concat(a, b, dim=1)))
    yield case


def _bits():
    """Views of the other dtypes copy whatever is there."""
    special = f32(0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -1.5, 2, 3, 4, 5).reshape(3, 4)
    for label, values in (
        ("f32", special),
        ("i64", integers("bits", [3, 4], -(2**62), 2**62)),
        ("i32", integers("bits32", [3, 4], -(2**31), 2**31, np.int32)),
        ("i8", integers("bits8", [3, 4], -128, 128, np.int8)),
        ("u8", integers("bits8u", [3, 4], 0, 256, np.uint8)),
        ("i16", integers("bits16", [3, 4], -(2**15), 2**15, np.int16)),
        ("bool", booleans("bits", [3, 4])),
    ):
        case = Case(f"views/copies_{label}", rtol=0, atol=0)
        x = case.param("x", values)
        case.result(
            case.reshape(x, shape=[2, 6]),
            case.permute(x, dims=[1, 0]),
            case.flip(x, dims=[1]),
            case.slice(x, starts=[1, 0], stops=[3, 4], steps=[1, 2]),
            case.concat(x, x, dim=0),
            case.expand(case.unsqueeze(x, dim=0), shape=[2, 3, 4]),
            case.pad(x, low=[1, 0], high=[0, 0], value=1),
            case.unslice(x, shape=[4, 8], starts=[1, 0], steps=[1, 2]),
        )
        yield case


def _gather():
    for dtype in (np.int64, np.int32, np.int8, np.uint8, np.int16):
        case = Case(
            f"views/gather_{np.dtype(dtype).name}", rtol=2e-6, atol=2e-6, note="Indices repeat, so gradients add up."
        )
        x = case.param("x", uniform(case.name, [4, 5]), grad=True)
        index = case.param("index", integers(case.name, [4, 7], 0, 5, dtype))
        case.result(case.gather(x, index, dim=1))
        yield case

    case = Case("views/gather_fewer_rows", rtol=2e-6, atol=2e-6, note="The index is smaller than x in the other dims.")
    x = case.param("x", uniform(case.name, [4, 5, 3]), grad=True)
    index = case.param("index", integers(case.name, [6, 2, 3], 0, 4))
    case.result(case.gather(x, index, dim=0))
    yield case

    case = Case("views/gather_out_of_range", rtol=0, atol=0, note="NaN, or 0 in i64 (PyTorch raises).")
    x = case.param("x", uniform(case.name, [2, 3]))
    k = case.param("k", integers(case.name, [2, 3], 1, 100))
    index = case.param("index", np.array([[0, 3, 2, -1], [2, 1, 2**40, 0]]))
    case.result(case.gather(x, index, dim=1), case.gather(k, index, dim=1))
    yield case

    case = Case(
        "views/gather_grad", rtol=2e-6, atol=2e-6, note="The scatter of a gather's gradient, differentiated again."
    )
    g = case.param("g", uniform(case.name, [3, 6]), grad=True)
    index = case.param("index", integers(case.name, [3, 6], 0, 4))
    case.result(case.gather_grad(g, index, dim=1, shape=[3, 4]))
    yield case

    case = Case(
        "views/gather_grad_out_of_range", rtol=2e-6, atol=2e-6, note="What has no place is dropped. Values only."
    )
    g = case.param("g", uniform(case.name, [3, 6]))
    index = case.param("index", integers(case.name, [3, 6], -1, 5))
    case.result(case.gather_grad(g, index, dim=1, shape=[3, 4]))
    yield case

    case = Case(
        "views/gather_bytes", rtol=0, atol=0, note="Bytes at places that are bytes; sums of a scatter wrap as u8."
    )
    x = case.param("x", integers(case.name, [4, 300], 0, 256, np.uint8))
    index = case.param("index", integers(case.name + "index", [4, 40], 0, 256, np.uint8))
    k = case.param("k", integers(case.name + "k", [4, 40], -128, 128, np.int8))
    g = case.gather(x, index, dim=1)
    case.result(g, case.gather_grad(k, index, dim=1, shape=[4, 300]))
    case.result(case.one_hot(case.sub(index, 250), num_classes=6, dtype="u8"))
    yield case

    case = Case("views/one_hot", rtol=0, atol=0, note="Out of range gives zeros (PyTorch raises).")
    index = case.param("index", np.array([[0, 3, 2], [-1, 4, 1]]))
    case.result(*(case.one_hot(index, num_classes=4, dtype=d) for d in ("i64", "i32", "bool", "f32")))
    yield case


def _sources():
    case = Case("views/sources", rtol=0, atol=0, note="A graph without parameters.")
    case.result(
        case.full(shape=[2, 3], value=0.1),
        case.full(shape=[], value=7, dtype="i64"),
        case.full(shape=[2], value=-np.inf, dtype="f64"),
        case.constant(shape=[2, 2], data=[1, 0.1, -0.0, np.nan]),
        case.constant(shape=[3], dtype="i32", data=[1, -2, 3]),
        case.iota(shape=[4]),
        case.iota(shape=[2, 3], dim=1, dtype="f32"),
        case.iota(shape=[2, 3], dim=0, dtype="i32"),
    )
    yield case


    case = Case("views/sources_narrow", rtol=0, atol=0, note="Counting wraps.")
    case.result(
        case.full(shape=[2, 3], value=200, dtype="u8"),
        case.full(shape=[], value=-128, dtype="i8"),
        case.constant(shape=[3], dtype="i16", data=[-32768, -2, 32767]),
        case.constant(shape=[2], dtype="u8", data=[0, 255]),
        case.iota(shape=[300], dtype="u8"),
        case.iota(shape=[2, 300], dim=1, dtype="i8"),
        case.iota(shape=[3], dtype="i16"),
    )
    yield case


def cases():
    yield from _one_operand()
    yield from _concat()
    yield from _bits()
    yield from _gather()
    yield from _sources()
