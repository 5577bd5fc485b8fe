"""elementwise/edges_*: forward values at zeros, denormals, the ends of the range, infinities and NaN.

The tolerance is 4 ulp of f32, and 4 of its smallest denormals. Overflow to infinity is that of f32.
"""

import numpy as np

from ..inputs import EDGES, PAIR_EDGES, all_pairs, booleans, f32, without
from ..recorder import Case

_TIGHT = {"rtol": 4.8e-7, "atol": 6e-45}

# One parameter a group, so that a group is one kernel's worth of work.
_UNARY = {
    "signs": ["neg", "abs", "sign", "square", "reciprocal"],
    "exp": ["exp", "exp2", "expm1"],
    "log": ["log", "log2", "log10", "log1p"],
    "saturating": ["tanh", "sigmoid", "erf", "erfc"],
    "trig": ["sin", "cos"],
    "rounding": ["floor", "ceil", "trunc", "round"],
    "classify": ["isnan", "isinf", "isfinite", "logical_not"],
}

_BINARY = {
    "arithmetic": ["add", "sub", "mul", "div"],
    "division": ["floor_divide", "remainder", "fmod"],
    "power": ["pow"],
    "extremes": ["maximum", "minimum"],
    "compare": ["eq", "ne", "lt", "le", "gt", "ge"],
    "logic": ["logical_and", "logical_or", "logical_xor"],
}


def _unary():
    for group, ops in _UNARY.items():
        case = Case(f"elementwise/edges_{group}", **_TIGHT)
        x = case.param("x", EDGES)
        case.result(*(getattr(case, op)(x) for op in ops))
        yield case
    case = Case("elementwise/edges_roots", **_TIGHT, note="rsqrt(-0) is left out: PyTorch gives -inf.")
    x = case.param("x", EDGES)
    y = case.param("y", without(EDGES, (EDGES == 0) & np.signbit(EDGES)))
    case.result(case.sqrt(x), case.rsqrt(y))
    yield case


def _binary():
    for group, ops in _BINARY.items():
        case = Case(f"elementwise/edges_{group}", **_TIGHT)
        a, b = all_pairs(PAIR_EDGES)
        a, b = case.param("a", a), case.param("b", b)
        case.result(*(getattr(case, op)(a, b) for op in ops))
        yield case


def _clamp_and_where():
    case = Case("elementwise/edges_clamp", rtol=0, atol=0, note="The last result has min > max, which gives max.")
    x = case.param("x", EDGES)
    case.result(
        case.clamp(x, min=-1.5, max=2.5), case.clamp(x, min=0), case.clamp(x, max=0.25), case.clamp(x, min=2, max=-1)
    )
    yield case

    case = Case("elementwise/edges_where", rtol=0, atol=0, note="The side that was not chosen holds NaN and inf.")
    c = case.param("c", booleans("edges_where", EDGES.shape))
    x = case.param("x", EDGES)
    case.result(case.where(c, x, 1), case.where(c, 0.5, x), case.where(c, x, case.neg(x)))
    yield case


def _casts():
    large = f32(
        2147483648.0,
        -2147483648.0,
        2147483520.0,
        9.223372036854775807e18,
        -9.3e18,
        65504.0,
        65519.0,
        65520.0,
        6e-8,
        2.9e-8,
        3.0e-8,
        1.00048828125,
        1.00146484375,
        1.00390625,
        1.01171875,
        3.3961775e38,
    )
    case = Case("elementwise/edges_cast_f32", rtol=0, atol=0, note="To integers: toward zero, saturating, NaN to 0.")
    x = case.param("x", np.concatenate([EDGES, large]))
    case.result(*(case.cast(x, dtype=d) for d in ("bool", "i32", "i64", "f16", "bf16", "f64")))
    yield case

    case = Case(
        "elementwise/edges_cast_f64",
        rtol=0,
        atol=0,
        note="Rounded once: through f32 the first two would become 1 in f16 and bf16.",
    )
    x = case.param(
        "x",
        np.array(
            [
                1 + 2**-11 + 2**-40,
                1 + 2**-8 + 2**-40,
                1 + 2**-24,
                1 + 2**-24 + 2**-50,
                1e300,
                -1e300,
                1e-320,
                1e-40,
                3.4028235677973366e38,
                3.402823567e38,
                2.0**31,
                2.0**63,
                -(2.0**63),
                0.1,
                1 / 3,
                -0.0,
                np.inf,
                -np.inf,
                np.nan,
            ]
        ),
    )
    case.result(*(case.cast(x, dtype=d) for d in ("bool", "i32", "i64", "f16", "bf16", "f32")))
    yield case

    case = Case("elementwise/edges_cast_i64", rtol=0, atol=0)
    x = case.param(
        "x",
        np.array(
            [
                0,
                1,
                -1,
                2049,
                2051,
                65519,
                65520,
                257,
                259,
                16777217,
                16777219,
                2**31 - 1,
                2**31,
                -(2**31),
                2**32 + 5,
                2**53 + 1,
                2**62 + 2**38 + 1,
                2**63 - 1,
                -(2**63),
            ],
            dtype=np.int64,
        ),
    )
    case.result(*(case.cast(x, dtype=d) for d in ("bool", "i32", "f16", "bf16", "f32", "f64")))
    yield case

    bytes_ = f32(127, 127.9, 128, 129, 200.5, 254.99, 255, 255.5, 256, 300, 32767.5, 32768, 65535, 65536, 1e9)
    floats = np.concatenate([EDGES, bytes_, -bytes_, f32(-0.99, 0.99)])
    narrow = ("i8", "u8", "i16")
    case = Case(
        "elementwise/edges_cast_to_narrow", rtol=0, atol=0, note="Floats saturate, NaN is 0; integers and bools wrap."
    )
    for x in (
        case.param("f32", floats),
        case.param("f16", floats[np.abs(floats) < 60000], dtype="f16"),
        case.param("bf16", floats, dtype="bf16"),
        case.param("f64", floats.astype(np.float64)),
        case.param("bool", np.array([False, True])),
        case.param("i32", np.array([0, -1, 127, 128, -129, 255, 256, 65535, 2**31 - 1, -(2**31)], dtype=np.int32)),
        case.param("i64", np.array([0, -1, 128, 2**31, 2**32 + 200, 2**63 - 1, -(2**63), -(2**40) - 3])),
    ):
        case.result(*(case.cast(x, dtype=d) for d in narrow))
    yield case

    case = Case(
        "elementwise/edges_cast_of_narrow",
        rtol=0,
        atol=0,
        note="The last ones: u8 through f32 to i8 saturates, where u8 to i8 wraps.",
    )
    bytes_of = {
        "i8": np.arange(-128, 128).astype(np.int8),
        "u8": np.arange(256).astype(np.uint8),
        "i16": np.array([0, 1, -1, 127, 128, -129, 255, 257, 2047, 2049, 2051, 2**15 - 1, -(2**15)], dtype=np.int16),
    }
    for name, array in bytes_of.items():
        x = case.param(name, array)
        others = [d for d in ("bool", *narrow, "i32", "i64", "f16", "bf16", "f32", "f64") if d != name]
        case.result(*(case.cast(x, dtype=d) for d in others))
        case.result(*(case.cast(case.cast(x, dtype="f32"), dtype=d) for d in narrow if d != name))
    yield case

    case = Case("elementwise/edges_cast_bool", rtol=0, atol=0)
    x = case.param("x", np.array([False, True]))
    case.result(*(case.cast(x, dtype=d) for d in ("i32", "i64", "f16", "bf16", "f32", "f64")))
    yield case


def _functions_f64():
    """The functions that have a spelling of their own in f64; 4 ulp of f64, and 1 more for PyTorch's own error."""
    case = Case("elementwise/edges_functions_f64", rtol=1.2e-15, atol=3e-323)
    points = np.array(
        [
            0.0,
            1e-310,
            1e-20,
            1e-3,
            0.3,
            0.5,
            0.999,
            1.0,
            1.7,
            2.5,
            3.7,
            10.25,
            50.5,
            300.0,
            700.0,
            1e5,
            1e22,
            1e300,
            np.inf,
        ]
    )
    positive = case.param("p", points)
    x = case.param("x", np.concatenate([points, -points, [np.nan]]))
    case.result(*(getattr(case, op)(positive) for op in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt")))
    case.result(
        *(getattr(case, op)(x) for op in ("exp", "exp2", "expm1", "tanh", "sigmoid", "erf", "erfc", "sin", "cos"))
    )
    yield case


def _composite():
    finite = np.isfinite(EDGES)
    for op in ("relu", "relu6", "leaky_relu", "elu", "selu", "softplus", "hardsigmoid"):
        case = Case(f"composite/edges_{op}", rtol=1e-6, atol=1e-30)
        case.result(getattr(case, op)(case.param("x", EDGES)))
        yield case
    for op in ("gelu", "silu", "mish", "hardswish"):
        case = Case(
            f"composite/edges_{op}",
            rtol=2e-6,
            atol=1e-6,
            note="-inf is left out: NaN and 0 are both right. So is the largest number: an inner product may overflow.",
        )
        left_out = (~finite & (EDGES < 0)) | (finite & (np.abs(EDGES) > 1e37))
        case.result(getattr(case, op)(case.param("x", without(EDGES, left_out))))
        yield case


def cases():
    yield from _unary()
    yield from _binary()
    yield from _clamp_and_where()
    yield from _casts()
    yield from _functions_f64()
    yield from _composite()
