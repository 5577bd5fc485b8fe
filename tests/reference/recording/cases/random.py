"""random/*: the words of Philox as fusejit draws them. Computed from the text of docs/ops.md, not by PyTorch."""

import numpy as np

from ..inputs import f32, uniform
from ..recorder import Case

_SEEDS = {"small": 1234, "large": 0x0123456789ABCDEF, "negative": -2, "zero": 0}


def cases():
    for name, seed in _SEEDS.items():
        case = Case(f"random/rand_{name}_seed", rtol=0, atol=0)
        s = case.param("seed", np.array(seed))
        case.result(
            case.rand(s, shape=[3, 7]),
            case.rand(s, shape=[21], stream=1),
            case.rand(s, shape=[2, 2], stream=2**33 + 1),
            case.rand(s, shape=[9], dtype="f16"),
            case.rand(s, shape=[9], dtype="bf16"),
            case.rand(s, shape=[9], dtype="f64"),
        )
        yield case

    for name, p in (("half", 0.5), ("tenth", 0.1), ("none", 0), ("all", 1)):
        case = Case(f"random/dropout_{name}", rtol=1.2e-7, atol=0)
        x = case.param("x", uniform(case.name, [4, 3, 5]), grad=True)
        s = case.param("seed", np.array(99))
        case.result(case.dropout(x, s, p=p, stream=3))
        yield case

    case = Case("random/dropout_nan", rtol=1.2e-7, atol=0, note="A dropped NaN or infinity is 0 (PyTorch gives NaN).")
    x = case.param("x", f32(*[np.nan, np.inf, -np.inf, 1] * 4))
    case.result(case.dropout(x, case.param("seed", np.array(7)), p=0.5))
    yield case

    case = Case(
        "random/dropout_nhwc", rtol=1.2e-7, atol=0, note="Elements are counted in NCHW order whatever the layout."
    )
    x = case.param("x", uniform(case.name, [2, 3, 4, 5]), grad=True, nhwc=True)
    case.result(case.dropout(x, case.param("seed", np.array(5)), p=0.3))
    yield case
