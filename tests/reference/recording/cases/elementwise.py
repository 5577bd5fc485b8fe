"""elementwise/*: values and gradients at ordinary points and at kinks; integers; numbers as operands; broadcasting.

Every op of a group has parameters of its own, so that a wrong gradient names its op.
"""

import numpy as np

from ..inputs import all_pairs, booleans, f32, integers, uniform
from ..recorder import Case

_REAL = (-3.0, 3.0)
_POSITIVE = (0.1, 3.0)

# group: {op: range of x}
_UNARY = {
    "signs": {"neg": _REAL, "abs": _REAL, "sign": _REAL, "square": _REAL, "reciprocal": _POSITIVE},
    "roots": {"sqrt": _POSITIVE, "rsqrt": _POSITIVE},
    "exp": {"exp": _REAL, "exp2": _REAL, "expm1": _REAL},
    "log": {"log": _POSITIVE, "log2": _POSITIVE, "log10": _POSITIVE, "log1p": _POSITIVE},
    "saturating": {"tanh": _REAL, "sigmoid": (-8, 8), "erf": _REAL, "erfc": _REAL},
    "trig": {"sin": (-30, 30), "cos": (-30, 30)},
    "rounding": {"floor": _REAL, "ceil": _REAL, "trunc": _REAL, "round": _REAL},
}

_BINARY = {
    "arithmetic": {"add": _REAL, "sub": _REAL, "mul": _REAL, "div": _POSITIVE},
    "division": {"floor_divide": _POSITIVE, "remainder": _POSITIVE, "fmod": _POSITIVE},
    "extremes": {"maximum": _REAL, "minimum": _REAL},
}


def _unary():
    for group, ops in _UNARY.items():
        case = Case(f"elementwise/{group}", rtol=2e-6, atol=1e-6)
        for op, (low, high) in ops.items():
            x = case.param(f"{op}_x", uniform(f"{group}{op}", [3, 5], low, high), grad=True)
            case.result(getattr(case, op)(x))
        yield case


def _binary():
    for group, ops in _BINARY.items():
        case = Case(f"elementwise/{group}", rtol=2e-6, atol=1e-6, note="b is broadcast along the rows of a.")
        for op, (low, high) in ops.items():
            a = case.param(f"{op}_a", uniform(f"{group}{op}a", [4, 6], -3, 3), grad=True)
            b = case.param(f"{op}_b", uniform(f"{group}{op}b", [6], low, high), grad=True)
            case.result(getattr(case, op)(a, b))
        yield case

    case = Case("elementwise/power", rtol=4e-6, atol=1e-6)
    a = case.param("a", uniform("power a", [4, 6], 0.1, 3), grad=True)
    b = case.param("b", uniform("power b", [4, 1], -2, 3), grad=True)
    x = case.param("x", uniform("power x", [5], -2, 2), grad=True)
    case.result(case.pow(a, b), case.pow(x, 2), case.pow(x, 3), case.pow(2, x))
    yield case


def _kinks():
    case = Case(
        "elementwise/kink_power", note="b = 0 and a = 0: the gradient is 0 where the formula says 0 by infinity."
    )
    a = case.param("a", f32(0, 0, 0, 0, 2, -2, 3), grad=True)
    b = case.param("b", f32(0, 1, 2, 3, 0, 0, 0))
    c = case.param("c", f32(0, 0, 0, 0, 2, 1, 3))
    d = case.param("d", f32(0, 1, 2, 0.5, 0, -1, 2), grad=True)
    case.result(case.pow(a, b), case.pow(c, d))
    yield case

    case = Case("elementwise/kink_extremes", note="A tie gives half to each side.")
    a = case.param("a", f32(1, 2, 3, -0.5, 0, np.inf), grad=True)
    b = case.param("b", f32(1, 3, 2, -0.5, 0, 1), grad=True)
    case.result(case.maximum(a, b), case.minimum(a, b))
    yield case

    case = Case("elementwise/kink_abs")
    case.result(case.abs(case.param("x", f32(0, -0.0, 1, -1, np.inf, -np.inf), grad=True)))
    yield case

    case = Case("elementwise/clamp", note="The bounds themselves are left out: PyTorch 2.15 gives 0 there.")
    x = case.param("x", f32(-3, -1.25, -1, -0.5, 0, 0.5, 2, 2.25, 2.75, 4, np.inf, -np.inf, np.nan), grad=True)
    case.result(
        case.clamp(x, min=-1.5, max=2.5),
        case.clamp(x, min=0.25),
        case.clamp(x, max=0.25),
        case.clamp(x, min=2.5, max=-1.5),
    )
    yield case

    case = Case("elementwise/where", note="NaN on the side that was not chosen stays out of value and gradient.")
    c = case.param("c", np.array([True, False, True, False, True]))
    a = case.param("a", f32(1, np.nan, 2, np.inf, -3), grad=True)
    b = case.param("b", f32(np.nan, 4, -np.inf, 5, 6), grad=True)
    case.result(case.where(c, a, b), case.where(c, case.exp(a), case.mul(b, b)))
    yield case

    case = Case("elementwise/where_broadcast")
    c = case.param("c", booleans("where_broadcast", [3, 1]))
    a = case.param("a", uniform("where_broadcast a", [4]), grad=True)
    b = case.param("b", uniform("where_broadcast b", [2, 3, 4]), grad=True)
    case.result(case.where(c, a, b))
    yield case


def _structure():
    case = Case("elementwise/broadcast", note="Gradients of broadcast operands are sums over the broadcast dims.")
    a = case.param("a", uniform("broadcast a", [2, 1, 4, 1]), grad=True)
    b = case.param("b", uniform("broadcast b", [3, 1, 5]), grad=True)
    c = case.param("c", uniform("broadcast c", []), grad=True)
    case.result(case.mul(case.add(a, b), c))
    yield case

    case = Case("elementwise/empty")
    a = case.param("a", uniform("empty a", [0, 3]), grad=True)
    b = case.param("b", uniform("empty b", [1, 3]), grad=True)
    case.result(case.mul(a, b))
    yield case

    case = Case("elementwise/numbers", note="Numbers as operands, on either side.")
    x = case.param("x", uniform("numbers", [7], 0.5, 3), grad=True)
    case.result(
        case.add(x, 0.1),
        case.sub(1, x),
        case.mul(x, -0.3),
        case.div(1, x),
        case.div(x, 3),
        case.maximum(x, 1.7),
        case.minimum(2, x),
        case.remainder(x, 0.7),
        case.where(case.gt(x, 1.5), x, 0),
    )
    yield case

    case = Case("elementwise/detach", note="x * detach(x) has the gradient of a product with a constant.")
    x = case.param("x", uniform("detach", [6]), grad=True)
    case.result(case.mul(x, case.detach(x)))
    yield case

    case = Case("elementwise/promotion", note="f32 with f64 is f64; the gradient goes back to f32.")
    a = case.param("a", uniform("promotion a", [5]), grad=True)
    b = case.param("b", uniform("promotion b", [5]).astype(np.float64) / 3, grad=True)
    case.result(case.mul(a, b))
    yield case

    case = Case("elementwise/cast_gradient", rtol=1e-6, atol=1e-6)
    x = case.param("x", uniform("cast_gradient", [9]), grad=True)
    rounded = case.cast(case.cast(x, dtype="f16"), dtype="f32")
    case.result(case.mul(rounded, x))
    yield case


_I32 = np.array([0, 1, -1, 2, -2, 3, -3, 7, -7, 31, 65536, 2**31 - 1, -(2**31)], dtype=np.int32)
_I64 = np.array([0, 1, -1, 2, -2, 5, -5, 63, 2**32, 2**63 - 1, -(2**63)], dtype=np.int64)
_NARROW = {
    "i8": np.array([0, 1, -1, 2, -2, 3, -3, 7, -7, 11, 16, 31, 64, 127, -127, -128], dtype=np.int8),
    "u8": np.array([0, 1, 2, 3, 7, 11, 16, 31, 64, 127, 128, 129, 200, 254, 255], dtype=np.uint8),
    "i16": np.array([0, 1, -1, 2, -2, 3, -3, 7, -7, 127, -129, 181, 256, 2**15 - 1, -(2**15)], dtype=np.int16),
}


def _integers():
    arithmetic = ("add", "sub", "mul", "floor_divide", "remainder", "fmod", "maximum", "minimum")
    for name, values in (("i32", _I32), ("i64", _I64)):
        case = Case(
            f"elementwise/integers_{name}",
            rtol=0,
            atol=0,
            note="Wraps; by 0 gives 0; MIN by -1 gives MIN, 0, 0 (PyTorch raises or traps).",
        )
        a, b = all_pairs(values)
        a, b = case.param("a", a), case.param("b", b)
        x = case.param("x", values)
        case.result(*(getattr(case, op)(a, b) for op in arithmetic))
        case.result(*(getattr(case, op)(a, b) for op in ("bitwise_and", "bitwise_or", "bitwise_xor", "eq", "lt")))
        case.result(*(getattr(case, op)(x) for op in ("neg", "abs", "sign", "square", "bitwise_not", "floor", "round")))
        case.result(
            case.clamp(x, min=-3, max=40),
            case.relu(x),
            case.add(x, 5),
            case.mul(-3, x),
            case.logical_not(x),
            case.isfinite(x),
            case.isnan(x),
        )
        yield case

    for name, values in _NARROW.items():
        case = Case(
            f"elementwise/integers_{name}",
            rtol=0,
            atol=0,
            note="Every op's result wraps, also between the ops of a chain. Division by 0 gives 0 (PyTorch raises).",
        )
        a, b = all_pairs(values)
        a, b = case.param("a", a), case.param("b", b)
        x = case.param("x", values)
        case.result(*(getattr(case, op)(a, b) for op in arithmetic + ("pow",)))
        case.result(*(getattr(case, op)(a, b) for op in ("bitwise_and", "bitwise_or", "bitwise_xor")))
        case.result(*(getattr(case, op)(a, b) for op in ("eq", "ne", "lt", "le", "gt", "ge")))
        case.result(*(getattr(case, op)(a, b) for op in ("logical_and", "logical_or", "logical_xor")))
        case.result(*(getattr(case, op)(x) for op in ("neg", "abs", "sign", "square", "bitwise_not", "floor", "round")))
        case.result(*(getattr(case, op)(x) for op in ("ceil", "trunc", "relu", "logical_not", "isfinite", "isnan")))
        case.result(
            case.clamp(x, min=3, max=100),
            case.clamp(x, min=5),
            case.add(x, 100),
            case.sub(3, x),
            case.mul(3, x),
            case.where(case.gt(x, 4), x, 7),
        )
        # What a chain in wider registers would get wrong: each op reads the wrapped result of the one before.
        total = case.add(a, b)
        case.result(
            case.floor_divide(total, 2),
            case.lt(total, a),
            case.maximum(case.mul(a, b), a),
            case.abs(case.neg(x)),
            case.remainder(case.square(a), 7),
            case.cast(case.add(x, x), dtype="f32"),
            case.cast(case.sub(a, b), dtype="i64"),
            case.eq(case.bitwise_not(x), case.sub(0, x)),
        )
        yield case

    case = Case("elementwise/integers_narrow_mixed", rtol=0, atol=0, note="u8 with i8 is i16, else the wider one.")
    pairs = [(a, b) for a in _NARROW for b in _NARROW if a != b]
    wide = {"i32": _I32, "i64": _I64}
    values = {**_NARROW, **wide}
    given = {name: case.param(name, array[:, None]) for name, array in values.items()}
    rows = {name: case.param("r" + name, array) for name, array in values.items()}
    for a, b in pairs + [(a, b) for a in _NARROW for b in wide]:
        case.result(*(getattr(case, op)(given[a], rows[b]) for op in ("sub", "mul", "lt", "bitwise_or")))
    yield case

    case = Case("elementwise/integers_power", rtol=0, atol=0)
    a, b = all_pairs(np.array([-3, -2, -1, 0, 1, 2, 3, 10, 46341, 65537], dtype=np.int32))
    case.result(case.pow(case.param("a", a), case.param("b", b)))
    yield case

    case = Case("elementwise/integers_mixed", rtol=0, atol=0, note="i32 with i64 is i64.")
    a = case.param("a", integers("mixed a", [3, 4], -(2**31), 2**31, np.int32))
    b = case.param("b", integers("mixed b", [4], -(2**40), 2**40))
    case.result(case.add(a, b), case.mul(a, b), case.ge(a, b), case.bitwise_xor(b, a))
    yield case

    case = Case("elementwise/booleans", rtol=0, atol=0)
    a, b = all_pairs(np.array([False, True]))
    a, b = case.param("a", a), case.param("b", b)
    case.result(
        *(
            getattr(case, op)(a, b)
            for op in (
                "maximum",
                "minimum",
                "logical_and",
                "logical_or",
                "logical_xor",
                "bitwise_and",
                "bitwise_or",
                "bitwise_xor",
                "eq",
                "ne",
                "lt",
                "le",
                "gt",
                "ge",
            )
        )
    )
    case.result(case.logical_not(a), case.bitwise_not(a), case.isnan(a), case.isinf(a), case.isfinite(a))
    yield case

    case = Case("elementwise/logic_of_mixed_kinds", rtol=0, atol=0)
    a = case.param("a", f32(0, -0.0, 1, np.nan, 0))
    b = case.param("b", np.array([0, 3, 0, 0, -1], dtype=np.int32))
    case.result(case.logical_and(a, b), case.logical_or(a, b), case.logical_xor(a, b))
    yield case


def cases():
    yield from _unary()
    yield from _binary()
    yield from _kinks()
    yield from _structure()
    yield from _integers()
