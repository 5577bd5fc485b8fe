"""anchors/*: convolutions, their gradients as ops, matrix products (docs/ops.md)."""

import numpy as np

from ..inputs import uniform
from ..recorder import Case

_TOLERANCE = {"rtol": 1e-5, "atol": 2e-5}

# name: (x shape, w shape, attributes)
_CONVOLUTIONS = {
    "3x3": ([2, 4, 7, 6], [5, 4, 3, 3], {}),
    "3x3_same": ([2, 4, 7, 6], [5, 4, 3, 3], {"padding": [1, 1, 1, 1]}),
    "3x3_stride2": ([2, 4, 9, 8], [5, 4, 3, 3], {"stride": [2, 2], "padding": [1, 1, 1, 1]}),
    "3x3_stride_1_2": ([1, 3, 7, 9], [4, 3, 3, 3], {"stride": [1, 2]}),
    "3x3_rest_row": ([1, 3, 8, 8], [4, 3, 3, 3], {"stride": [2, 2]}),
    "2x2_same_asymmetric": ([1, 3, 2, 3], [3, 3, 2, 2], {"padding": [0, 0, 1, 1]}),
    "asymmetric": ([2, 3, 6, 5], [4, 3, 3, 2], {"padding": [2, 0, 1, 3]}),
    "asymmetric_stride2": ([2, 3, 7, 8], [4, 3, 3, 3], {"stride": [2, 2], "padding": [0, 1, 2, 0]}),
    "dilated": ([2, 3, 9, 8], [4, 3, 3, 3], {"padding": [2, 2, 2, 2], "dilation": [2, 2]}),
    "dilated_stride_padding": (
        [1, 3, 11, 10],
        [4, 3, 3, 2],
        {"stride": [2, 1], "padding": [3, 0, 1, 2], "dilation": [2, 3]},
    ),
    "groups": ([2, 6, 6, 6], [4, 3, 3, 3], {"padding": [1, 1, 1, 1], "groups": 2}),
    "groups_stride2": ([1, 6, 7, 7], [9, 2, 3, 3], {"stride": [2, 2], "groups": 3}),
    "depthwise": ([2, 5, 7, 7], [5, 1, 3, 3], {"padding": [1, 1, 1, 1], "groups": 5}),
    "depthwise_stride2": ([1, 5, 8, 7], [5, 1, 5, 5], {"stride": [2, 2], "padding": [2, 2, 2, 2], "groups": 5}),
    "depthwise_multiplier": ([1, 3, 6, 6], [6, 1, 3, 3], {"groups": 3}),
    "1x1": ([2, 6, 5, 4], [7, 6, 1, 1], {}),
    "1x1_stride2": ([2, 6, 5, 6], [7, 6, 1, 1], {"stride": [2, 2]}),
    "1x1_padded": ([1, 3, 3, 3], [2, 3, 1, 1], {"padding": [1, 0, 1, 2]}),
    "5x5": ([1, 2, 9, 9], [3, 2, 5, 5], {"padding": [2, 2, 2, 2]}),
    "7x7_stride2": ([1, 3, 12, 13], [4, 3, 7, 7], {"stride": [2, 2], "padding": [3, 3, 3, 3]}),
    "1x7": ([1, 3, 4, 9], [2, 3, 1, 7], {"padding": [0, 3, 0, 3]}),
    "whole_image": ([2, 3, 4, 4], [5, 3, 4, 4], {}),
    "one_pixel": ([1, 1, 1, 1], [1, 1, 1, 1], {}),
    "no_images": ([0, 3, 5, 5], [4, 3, 3, 3], {}),
    "many_channels": ([1, 37, 5, 5], [35, 37, 3, 3], {"padding": [1, 1, 1, 1]}),
    "one_channel": ([2, 1, 10, 9], [32, 1, 3, 3], {}),
}


def _convolutions():
    for name, (x_shape, w_shape, attributes) in _CONVOLUTIONS.items():
        tolerance = {"rtol": 1e-5, "atol": 1e-4} if name == "many_channels" else _TOLERANCE
        case = Case(f"anchors/conv2d_{name}", **tolerance)
        x = case.param("x", uniform(case.name + "x", x_shape, -1, 1), grad=True)
        w = case.param("w", uniform(case.name + "w", w_shape, -1, 1), grad=True)
        case.result(case.conv2d(x, w, **attributes))
        yield case

    for name in ("3x3_same", "asymmetric_stride2", "groups", "depthwise", "1x1", "2x2_same_asymmetric"):
        x_shape, w_shape, attributes = _CONVOLUTIONS[name]
        case = Case(f"anchors/conv2d_{name}_nhwc", **_TOLERANCE, note="Every rank-4 value lies in memory as NHWC.")
        x = case.param("x", uniform(case.name + "x", x_shape, -1, 1), grad=True, nhwc=True)
        w = case.param("w", uniform(case.name + "w", w_shape, -1, 1), grad=True, nhwc=True)
        case.result(case.conv2d(x, w, **attributes))
        yield case

    case = Case("anchors/conv2d_layout_change", **_TOLERANCE, note="x is NCHW, w and the result are NHWC.")
    x = case.param("x", uniform(case.name + "x", [2, 3, 5, 6], -1, 1), grad=True)
    w = case.param("w", uniform(case.name + "w", [4, 3, 3, 3], -1, 1), grad=True, nhwc=True)
    case.result(case.conv2d(x, w, padding=[1, 1, 1, 1], nhwc=True))
    yield case


def _gradient_ops():
    """The two gradient ops as forward ops, and their own gradients: closed under differentiation."""
    for name in (
        "3x3_same",
        "3x3_rest_row",
        "asymmetric_stride2",
        "dilated_stride_padding",
        "groups",
        "depthwise_stride2",
        "1x1_stride2",
    ):
        x_shape, w_shape, attributes = _CONVOLUTIONS[name]
        probe = Case("probe")
        y_shape = probe.conv2d(
            probe.param("x", np.zeros(x_shape, np.float32)),
            probe.param("w", np.zeros(w_shape, np.float32)),
            **attributes,
        ).shape

        case = Case(f"anchors/conv2d_input_grad_{name}", **_TOLERANCE)
        dy = case.param("dy", uniform(case.name + "dy", y_shape, -1, 1), grad=True)
        w = case.param("w", uniform(case.name + "w", w_shape, -1, 1), grad=True)
        case.result(case.conv2d_input_grad(dy, w, input_size=x_shape[2:], **attributes))
        yield case

        case = Case(f"anchors/conv2d_weight_grad_{name}", **_TOLERANCE)
        x = case.param("x", uniform(case.name + "x", x_shape, -1, 1), grad=True)
        dy = case.param("dy", uniform(case.name + "dy", y_shape, -1, 1), grad=True)
        case.result(case.conv2d_weight_grad(x, dy, kernel_size=w_shape[2:], **attributes))
        yield case


# name: (a shape, b shape)
_MATMULS = {
    "2d": ([3, 4], [4, 5]),
    "row": ([1, 7], [7, 1]),
    "column": ([6, 1], [1, 3]),
    "batched": ([2, 3, 4], [2, 4, 5]),
    "broadcast_b": ([2, 3, 4], [4, 5]),
    "broadcast_both": ([2, 1, 3, 4], [5, 4, 2]),
    "empty_sum": ([3, 0], [0, 2]),
    "larger": ([17, 33], [33, 19]),
}

_LINEARS = {"rank1": [7], "rank2": [4, 7], "rank3": [2, 3, 7], "no_rows": [0, 7]}


def _products():
    for name, (a_shape, b_shape) in _MATMULS.items():
        case = Case(f"anchors/matmul_{name}", **_TOLERANCE)
        a = case.param("a", uniform(case.name + "a", a_shape, -1, 1), grad=True)
        b = case.param("b", uniform(case.name + "b", b_shape, -1, 1), grad=True)
        case.result(case.matmul(a, b))
        yield case
    for name, shape in _LINEARS.items():
        case = Case(f"anchors/linear_{name}", **_TOLERANCE)
        x = case.param("x", uniform(case.name + "x", shape, -1, 1), grad=True)
        w = case.param("w", uniform(case.name + "w", [5, 7], -1, 1), grad=True)
        case.result(case.linear(x, w))
        yield case


def cases():
    yield from _convolutions()
    yield from _gradient_ops()
    yield from _products()
