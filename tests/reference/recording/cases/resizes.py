"""pools/adaptive_*, pools/upsample_*: resizing to a given size, with gradients as ops (docs/ops.md)."""

from ..inputs import uniform
from ..recorder import Case

# name: (input size, output size)
_ADAPTIVE = {
    "global": ([7, 6], [1, 1]),
    "even": ([6, 8], [3, 2]),
    "uneven": ([7, 5], [3, 4]),
    "larger": ([2, 3], [5, 3]),
    "same": ([3, 4], [3, 4]),
}
_NEAREST = {
    "twice": ([3, 4], [6, 8]),
    "uneven": ([3, 4], [7, 9]),
    "smaller": ([6, 8], [3, 5]),
    "same": ([3, 4], [3, 4]),
}
_BILINEAR = {
    "twice": ([3, 4], [6, 8]),
    "uneven": ([3, 4], [7, 5]),
    "smaller": ([7, 8], [3, 3]),
    "one_row": ([4, 3], [1, 6]),
    "from_one_pixel": ([1, 1], [3, 2]),
    "same": ([3, 4], [3, 4]),
}


def _resized(op, name, sizes, **attributes):
    input_size, output_size = sizes
    case = Case(f"pools/{op}_{name}", rtol=4e-6, atol=4e-6)
    x = case.param("x", uniform(case.name, [2, 3, *input_size]), grad=True)
    case.result(getattr(case, op)(x, output_size=output_size, **attributes))
    yield case

    case = Case(f"pools/{op}_grad_{name}", rtol=4e-6, atol=4e-6)
    dy = case.param("dy", uniform(case.name, [2, 3, *output_size]), grad=True)
    case.result(getattr(case, op + "_grad")(dy, input_size=input_size, **attributes))
    yield case


def cases():
    for name, sizes in _ADAPTIVE.items():
        yield from _resized("adaptive_avg_pool2d", name, sizes)
    for name, sizes in _NEAREST.items():
        yield from _resized("upsample_nearest2d", name, sizes)
    for name, sizes in _BILINEAR.items():
        yield from _resized("upsample_bilinear2d", name, sizes)
        yield from _resized("upsample_bilinear2d", name + "_corners", sizes, align_corners=True)
