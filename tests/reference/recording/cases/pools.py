"""pools/*: max and average pooling and their gradients as ops (docs/ops.md).

Left out, because PyTorch and docs/ops.md differ or one is silent: the gradient of a window with two NaN, of a padded
window that holds -inf only, and an average of a window that lies in the padding.
"""

import numpy as np

from ..inputs import uniform
from ..recorder import Case

_INF = np.inf

# name: (x shape, attributes)
_MAX_POOLS = {
    "2x2": ([2, 3, 6, 8], {"kernel_size": [2, 2], "stride": [2, 2]}),
    "2x2_rest_row": ([1, 2, 5, 7], {"kernel_size": [2, 2], "stride": [2, 2]}),
    "3x3_stride2_padded": ([2, 3, 7, 8], {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1, 1, 1]}),
    "3x3_overlapping": ([1, 2, 6, 6], {"kernel_size": [3, 3], "stride": [1, 1]}),
    "asymmetric_padding": ([1, 2, 6, 5], {"kernel_size": [3, 3], "stride": [2, 2], "padding": [0, 2, 1, 0]}),
    "dilated": ([1, 2, 9, 9], {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0, 1, 0], "dilation": [2, 3]}),
    "gaps_between_windows": ([1, 2, 7, 7], {"kernel_size": [2, 2], "stride": [3, 3]}),
    "1x1_stride2": ([1, 2, 5, 5], {"kernel_size": [1, 1], "stride": [2, 2]}),
    "rectangular": ([1, 2, 6, 7], {"kernel_size": [1, 3], "stride": [2, 2], "padding": [0, 1, 0, 1]}),
}

_AVG_POOLS = {
    "2x2": ([2, 3, 6, 8], {"kernel_size": [2, 2], "stride": [2, 2]}),
    "3x3_overlapping": ([1, 2, 6, 6], {"kernel_size": [3, 3], "stride": [1, 1]}),
    "padded": ([1, 2, 7, 8], {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1, 1, 1]}),
    "padded_inside_only": (
        [1, 2, 7, 8],
        {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1, 1, 1], "count_include_pad": False},
    ),
    "asymmetric": ([1, 2, 6, 5], {"kernel_size": [3, 2], "stride": [2, 2], "padding": [0, 1, 2, 0]}),
    "asymmetric_inside_only": (
        [1, 2, 6, 5],
        {"kernel_size": [3, 2], "stride": [2, 2], "padding": [0, 1, 2, 0], "count_include_pad": False},
    ),
    "gaps_between_windows": ([1, 2, 7, 7], {"kernel_size": [2, 2], "stride": [3, 3]}),
}


def _output_shape(op, shape, attributes):
    probe = Case("probe")
    return getattr(probe, op)(probe.param("x", np.zeros(shape, np.float32)), **attributes).shape


def _pools(op, table, linear):
    for name, (shape, attributes) in table.items():
        case = Case(f"pools/{op}_{name}", rtol=2e-6, atol=2e-6)
        x = case.param("x", uniform(case.name, shape), grad=True)
        case.result(getattr(case, op)(x, **attributes))
        yield case

        case = Case(f"pools/{op}_grad_{name}", rtol=2e-6, atol=2e-6)
        dy_values = uniform(case.name + "dy", _output_shape(op, shape, attributes))
        if linear:
            dy = case.param("dy", dy_values, grad=True)
            case.result(case.avg_pool2d_grad(dy, input_size=shape[2:], **attributes))
        else:
            # Differentiable in dy, but a back end may refuse to: forward alone.
            x = case.param("x", uniform(case.name, shape))
            dy = case.param("dy", dy_values)
            case.result(case.max_pool2d_grad(x, dy, **attributes))
        yield case


def _max_pool_edges():
    case = Case("pools/max_pool2d_ties", note="The first maximum in row-major order takes the whole gradient.")
    x = case.param("x", np.round(uniform(case.name, [2, 2, 6, 6], -1, 1)), grad=True)
    case.result(
        case.max_pool2d(x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1]),
        case.max_pool2d(x, kernel_size=[2, 2], stride=[2, 2]),
    )
    yield case

    case = Case("pools/max_pool2d_infinities", note="-inf at the edge of x beside padding; +inf inside.")
    values = uniform(case.name, [1, 1, 5, 6])
    values[0, 0, 0, 0], values[0, 0, 0, 1], values[0, 0, 4, 5], values[0, 0, 2, 3] = -_INF, -_INF, -_INF, _INF
    x = case.param("x", values, grad=True)
    case.result(case.max_pool2d(x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1]))
    yield case

    case = Case("pools/max_pool2d_all_negative_infinity", rtol=0, atol=0, note="Values only.")
    x = case.param("x", np.full([1, 1, 4, 4], -_INF, dtype=np.float32))
    case.result(
        case.max_pool2d(x, kernel_size=[2, 2], stride=[2, 2]),
        case.max_pool2d(x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1]),
    )
    yield case

    case = Case("pools/max_pool2d_nan", note="NaN wins, also over +inf; here at most one a window.")
    values = uniform(case.name, [1, 2, 6, 6])
    values[0, 0, 1, 1], values[0, 1, 4, 2], values[0, 1, 5, 3] = np.nan, np.nan, _INF
    x = case.param("x", values, grad=True)
    case.result(case.max_pool2d(x, kernel_size=[2, 2], stride=[2, 2]))
    yield case

    for op, shape in (("max_pool2d", [2, 3, 6, 7]), ("avg_pool2d", [2, 3, 6, 7])):
        case = Case(f"pools/{op}_nhwc", rtol=2e-6, atol=2e-6)
        x = case.param("x", uniform(case.name, shape), grad=True, nhwc=True)
        case.result(getattr(case, op)(x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1]))
        yield case


def _taps():
    for name, (shape, attributes) in _MAX_POOLS.items():
        if "dilation" in attributes:
            continue
        case = Case(f"pools/max_pool2d_tap_{name}", rtol=2e-6, atol=2e-6)
        x = case.param("x", uniform(case.name, shape))
        dy = case.param("dy", uniform(case.name + "dy", _output_shape("max_pool2d", shape, attributes)))
        tap = case.max_pool2d_tap(x, case.max_pool2d(x, **attributes), **attributes)
        case.result(tap, case.max_pool2d_tap_grad(dy, tap, input_size=shape[2:], **attributes))
        yield case


def cases():
    yield from _taps()
    yield from _pools("max_pool2d", _MAX_POOLS, linear=False)
    yield from _pools("avg_pool2d", _AVG_POOLS, linear=True)
    yield from _max_pool_edges()
