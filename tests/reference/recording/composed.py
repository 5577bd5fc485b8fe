"""composed.npz: what PyTorch computes for the functions of fusejit/composed.h, the sequences and places of fusejit/tensor.h
and pools with ceil_mode.

Of each case: inputs `<case>.in0`, ..., results `<case>.out0`, ... in f64 (integers and booleans as they are) from exactly
those inputs, cotangents `<case>.d_out0`, ... of float results, and the gradients `<case>.d_in0`, ... of float inputs.
"""

import numpy as np
import torch
import torch.nn.functional as F

from .inputs import booleans, integers, uniform
from .npz import version_numbers, write_npz


def _row(name, *shape):
    return uniform(f"composed {name}", list(shape))


def _places(name, shape, low, high):
    return integers(f"composed {name}", list(shape), low, high)


_INF = float("inf")
_A, _B, _C = _row("a", 2, 3, 4), _row("b", 2, 4, 5), _row("c", 5, 3)
_SQUARE = _row("square", 3, 3)
_LIST, _OTHER = _row("list", 7), _row("other", 7)
_WHOLE = _places("whole", (3, 4), -9, 9)
_IMAGES = _row("images", 2, 3, 4, 5)
_GRID = uniform("composed grid", [2, 3, 4, 2], -1.3, 1.3)
_WITH_ZEROS = np.where(booleans("composed zeros", [4, 5]), uniform("composed zeros of", [4, 5]), 0).astype(np.float32)
_WITH_ZEROS[1] = 0  # a row of zeros: where the norm has a kink, its gradient is 0
_EQUAL_ROW = _row("equal row", 3, 4)
_EQUAL_ROW[1] = 0.5
_MASK = booleans("composed mask", [2, 1, 4])
_SPECIAL = np.array([1, np.nan, -_INF, 0, _INF, np.nan, -1], dtype=np.float32)
_SEQUENCE = _row("sequence", 2, 4, 9)
_ONE = _row("one", 1)
_ZEROS = np.array([0.0, -0.0, -1, 0.0, -0.0, 1], dtype=np.float32)
_CELL = _row("cell", 2, 3, 1, 1)
_ODD, _EVEN = _row("odd image", 2, 3, 7, 5), _row("even image", 2, 3, 6, 8)
# The centres of cells, their edges, the image's edges and beyond; halves of cells for the nearest one.
_CORNERS = np.array([-1, 1, 0, 0.5, -0.5, 0.8, -2, 1.25], dtype=np.float32)
_POINTS = np.stack([np.tile(_CORNERS, 2), np.tile(_CORNERS[::-1], 2)], 1).reshape(2, 2, 4, 2)


def _empty(*shape):
    return np.zeros(shape, dtype=np.float32)


def _no_places(*shape):
    return np.zeros(shape, dtype=np.int64)


def _std(x, **options):
    return torch.std(x, **options)


def _einsum(equation, *operands):
    return lambda *x: torch.einsum(equation, *x), operands


# name: (function of tensors, inputs).
CASES = {
    "stack_first": (lambda x, y: torch.stack([x, y]), (_LIST, _OTHER)),
    "stack_last": (lambda x, y: torch.stack([x, y], -1), (_A, _A)),
    "stack_kinds": (lambda x, y: torch.stack([x, y], 1), (_row("kinds", 3, 4), _WHOLE)),
    "split": (lambda x: torch.split(x, 3), (_LIST,)),
    "split_sizes": (lambda x: torch.split(x, [1, 0, 3], -1), (_A,)),
    "chunk": (lambda x: torch.chunk(x, 3), (_LIST,)),
    "unbind": (lambda x: torch.unbind(x, 1), (_A,)),
    "diagonal": (lambda x: torch.diagonal(x), (_SQUARE,)),
    "diagonal_above": (lambda x: torch.diagonal(x, 1, -1, 0), (_A,)),
    "diagonal_below": (lambda x: torch.diagonal(x, -1, 1, 2), (_A,)),
    "tril": (lambda x: torch.tril(x), (_A,)),
    "tril_below": (lambda x: torch.tril(x, -1), (_A,)),
    "triu": (lambda x: torch.triu(x, 2), (_A,)),
    "triu_whole": (lambda x: torch.triu(x), (_WHOLE,)),
    "index_select": (lambda x, i: torch.index_select(x, -1, i), (_A, _places("select", (6,), 0, 4))),
    "take": (lambda x, i: torch.take(x, i), (_A, _places("take", (2, 3), -24, 24))),
    "masked_fill": (lambda x, m: x.masked_fill(m, -3), (_A, _MASK)),
    "scatter_add": (
        lambda x, i, s: x.scatter_add(1, i, s),
        (_A, _places("scatter", (2, 5, 2), 0, 3), _row("src", 2, 5, 2)),
    ),
    "sort": (lambda x: torch.sort(x), (_A,)),
    "sort_equal": (lambda x: torch.sort(x, dim=0, descending=True, stable=True), (_places("equal", (12, 2), 0, 4),)),
    "sort_special": (lambda x: torch.sort(x, stable=True), (_SPECIAL,)),
    "sort_special_descending": (lambda x: torch.sort(x, descending=True, stable=True), (_SPECIAL,)),
    "argsort": (lambda x: torch.argsort(x, 1), (_A,)),
    "argsort_bool": (lambda x: torch.argsort(x, stable=True), (_MASK,)),
    "topk": (lambda x: torch.topk(x, 2), (_A,)),
    "topk_smallest": (lambda x: torch.topk(x, 3, 1, largest=False), (_A,)),
    "norm": (lambda x: torch.norm(x), (_A,)),
    "norm_rows": (lambda x: torch.norm(x, dim=1, keepdim=True), (_WITH_ZEROS,)),
    "norm_1": (lambda x: torch.norm(x, 1, dim=(0, -1)), (_A,)),
    "norm_inf": (lambda x: torch.norm(x, _INF, dim=-1), (_A,)),
    "std": (lambda x: _std(x), (_A,)),
    "std_rows": (lambda x: _std(x, dim=1, correction=0, keepdim=True), (_EQUAL_ROW,)),
    "logsumexp": (lambda x: torch.logsumexp(x * 100, (0, 2)), (_A,)),
    "logsumexp_keepdim": (lambda x: torch.logsumexp(x, -1, True), (_A,)),
    "cumsum": (lambda x: torch.cumsum(x, 0), (_LIST,)),
    "cumsum_middle": (lambda x: torch.cumsum(x, -2), (_A,)),
    "cumsum_whole": (lambda x: torch.cumsum(x, 1), (_WHOLE,)),
    "cumsum_bool": (lambda x: torch.cumsum(x, 2), (_MASK,)),
    "outer": (lambda x, y: torch.outer(x, y), (_LIST, _row("outer", 3))),
    "dot": (lambda x, y: torch.dot(x, y), (_LIST, _OTHER)),
    "einsum_matrix": _einsum("ij,kj->ik", _SQUARE, _C),
    "einsum_batch": _einsum("bij,bjk->bik", _A, _B),
    "einsum_turned": _einsum("bij,bjk->kib", _A, _B),
    "einsum_two_sums": _einsum("bij,bij->i", _A, _row("a2", 2, 3, 4)),
    "einsum_vector": _einsum("bij,j->bi", _A, _row("vector", 4)),
    "einsum_outer": _einsum("i,j", _LIST, _row("outer", 3)),
    "einsum_alone": _einsum("bij,k->ik", _A, _LIST),
    "einsum_trace": _einsum("ii", _SQUARE),
    "einsum_diagonal": _einsum("iji->ij", _row("iji", 3, 2, 3)),
    "einsum_permute": _einsum("ba", _row("ba", 2, 3)),
    "einsum_ellipsis": _einsum("...ij,...jk->...ik", _A, _row("wide", 1, 4, 2)),
    "einsum_ellipsis_more": _einsum("i...,...", _row("left", 3, 2, 4), _row("right", 5, 1, 4)),
    "einsum_ellipsis_summed": _einsum("...i->i", _A),
    "einsum_repeats": _einsum("ij,ij->ij", _row("one", 1, 4), _row("many", 3, 4)),
    "einsum_repeats_summed": _einsum("ij,kj->ik", _row("one", 3, 1), _row("many", 2, 4)),
    "einsum_three": _einsum("ij,bjk,kl->bil", _SQUARE, _A, _row("last", 4, 2)),
    "einsum_capitals": _einsum("bA,Ac", _row("bA", 2, 3), _row("Ac", 3, 4)),
    "einsum_whole": _einsum("ij,kj->ik", _WHOLE, _places("whole too", (2, 4), -9, 9)),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b), (_SEQUENCE, _row("w", 6, 4, 3), _row("bias", 6))),
    "conv1d_stride": (
        lambda x, w: F.conv1d(x, w, stride=2, padding=2, dilation=3, groups=2),
        (_SEQUENCE, _row("w in groups", 6, 2, 3)),
    ),
    "conv1d_same": (lambda x, w: F.conv1d(x, w, padding="same"), (_SEQUENCE, _row("even", 2, 4, 4))),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (_row("channels", 2, 8, 2, 3),)),
    "pixel_shuffle_one": (lambda x: F.pixel_shuffle(x, 3), (_row("one image", 9, 2, 1),)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), (_row("cells", 2, 3, 4, 2),)),
    "interpolate_nearest": (lambda x: F.interpolate(x, scale_factor=2), (_IMAGES,)),
    "interpolate_size": (lambda x: F.interpolate(x, size=(7, 3), mode="bilinear"), (_IMAGES,)),
    "interpolate_corners": (
        lambda x: F.interpolate(x, scale_factor=(1.6, 2.5), mode="bilinear", align_corners=True),
        (_IMAGES,),
    ),
    "interpolate_half": (lambda x: F.interpolate(x, scale_factor=(0.5, 1.2), mode="bilinear"), (_IMAGES,)),
    "interpolate_odd": (lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"), (_IMAGES,)),
    "interpolate_factor": (lambda x: F.interpolate(x, scale_factor=(1.3, 1.7), mode="bilinear"), (_IMAGES,)),
    "interpolate_factor_nearest": (lambda x: F.interpolate(x, scale_factor=(1.3, 1.7)), (_IMAGES,)),
    "interpolate_area": (lambda x: F.interpolate(x, scale_factor=(0.7, 0.7), mode="area"), (_IMAGES,)),
    "at": (lambda x: x[-1], (_A,)),
    "at_twice": (lambda x: x[1][2], (_A,)),
    "max_ceil": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (_EVEN,)),
    "max_ceil_odd": (lambda x: F.max_pool2d(x, (2, 3), (3, 4), ceil_mode=True), (_ODD,)),
    "max_ceil_pads": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (_EVEN,)),
    "max_ceil_dilated": (lambda x: F.max_pool2d(x, 2, 3, 1, 2, ceil_mode=True), (_ODD,)),
    # A window that would begin in the padding on the right is none; one that is larger than the image is one.
    "max_ceil_none": (lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True), (_row("4x4", 1, 2, 4, 4),)),
    "max_ceil_larger": (lambda x: F.max_pool2d(x, 4, 3, ceil_mode=True), (_row("2x3", 1, 2, 2, 3),)),
    "average_ceil": (lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True), (_EVEN,)),
    "average_ceil_odd": (lambda x: F.avg_pool2d(x, (2, 3), (3, 4), ceil_mode=True), (_ODD,)),
    "average_ceil_pads": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (_EVEN,)),
    "average_ceil_pads_odd": (lambda x: F.avg_pool2d(x, 4, (3, 2), (2, 1), ceil_mode=True), (_ODD,)),
    "average_ceil_inside": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        (_EVEN,),
    ),
    "average_ceil_none": (lambda x: F.avg_pool2d(x, 2, 3, 1, ceil_mode=True), (_row("4x4", 1, 2, 4, 4),)),
    "average_ceil_larger": (lambda x: F.avg_pool2d(x, 4, 3, 1, ceil_mode=True), (_row("1x2", 1, 2, 1, 2),)),
    "adaptive_max": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), (_EVEN,)),
    "adaptive_max_one": (lambda x: F.adaptive_max_pool2d(x, 1), (_ODD,)),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), (_IMAGES, _GRID)),
    "grid_sample_corners": (lambda x, g: F.grid_sample(x, g, align_corners=True), (_IMAGES, _GRID)),
    "grid_sample_border": (
        lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=False),
        (_IMAGES, _GRID),
    ),
    "grid_sample_nearest": (
        lambda x, g: F.grid_sample(x, g, mode="nearest", align_corners=False),
        (_IMAGES, _GRID),
    ),
    # Edges: extents of 1 and 0, k of the whole extent, negative axes, ties, infinities and NaN, points on cells.
    "edge_stack_alone": (lambda x: torch.stack([x], -2), (_A,)),
    "edge_stack_scalars": (lambda x, y: torch.stack([x, y]), (_row("scalar"), _row("scalar too"))),
    "edge_split_beyond": (lambda x: torch.split(x, 9, -1), (_A,)),
    "edge_chunk_beyond": (lambda x: torch.chunk(x, 9, -2), (_A,)),
    "edge_unbind_one": (lambda x: torch.unbind(x, -1), (_row("column", 3, 1),)),
    "edge_diagonal_row": (lambda x: torch.diagonal(x, 2, -2, -1), (_row("flat", 2, 1, 4),)),
    "edge_tril_row": (lambda x: torch.tril(x, 1), (_row("flat", 2, 1, 4),)),
    "edge_triu_nan": (lambda x: torch.triu(x, 1), (np.full((3, 3), np.nan, dtype=np.float32),)),
    "edge_index_select_none": (lambda x, i: torch.index_select(x, 1, i), (_A, _no_places(0))),
    "edge_index_select_one": (lambda x, i: torch.index_select(x, -2, i), (_row("flat", 2, 1, 4), _no_places(3))),
    "edge_take_none": (lambda x, i: torch.take(x, i), (_A, _no_places(2, 0))),
    "edge_take_ends": (lambda x, i: torch.take(x, i), (_A, np.array([-24, 23, 0, -1]))),
    "edge_masked_fill_scalar": (lambda x, m: x.masked_fill(m, _INF), (_row("scalar"), np.array(True))),
    "edge_scatter_add_none": (lambda x, i, s: x.scatter_add(0, i, s), (_A, _no_places(0, 3, 4), _empty(0, 3, 4))),
    "edge_scatter_add_same": (lambda x, i, s: x.scatter_add(-1, i, s), (_A, _no_places(2, 3, 4), _A)),
    "edge_sort_one": (lambda x: torch.sort(x, 1), (_row("flat", 2, 1, 4),)),
    "edge_sort_zeros": (lambda x: torch.sort(x, stable=True), (_ZEROS,)),
    "edge_sort_zeros_descending": (lambda x: torch.sort(x, dim=-1, descending=True, stable=True), (_ZEROS,)),
    "edge_sort_none": (lambda x: torch.sort(x, 0), (_empty(0, 3),)),
    "edge_argsort_ties": (lambda x: torch.argsort(x, dim=-2, descending=True, stable=True), (_places("ties", (9, 3), 0, 3),)),
    "edge_topk_whole": (lambda x: torch.topk(x, 3, -2), (_A,)),
    "edge_topk_special": (lambda x: torch.topk(x, 3)[0], (_SPECIAL,)),
    "edge_topk_special_smallest": (lambda x: torch.topk(x, 5, largest=False)[0], (_SPECIAL,)),
    "edge_topk_one": (lambda x: torch.topk(x, 1), (_ONE,)),
    "edge_norm_none": (lambda x: torch.norm(x, dim=0), (_empty(0, 3),)),
    "edge_norm_special": (lambda x: torch.norm(x, dim=0), (_SPECIAL[[0, 2, 4]],)),
    "edge_norm_inf_nan": (lambda x: torch.norm(x.detach(), _INF), (_SPECIAL,)),  # sign(NaN) differs
    "edge_norm_inf_ties": (lambda x: torch.norm(x, _INF, dim=0), (np.array([[2, 1], [-2, 0.5]], dtype=np.float32),)),
    "edge_norm_1_zero": (lambda x: torch.norm(x, 1, dim=-1), (_WITH_ZEROS,)),
    "edge_std_one": (lambda x: _std(x), (_ONE,)),
    "edge_logsumexp_special": (lambda x: torch.logsumexp(x, 0), (_SPECIAL[[0, 2, 3]],)),
    "edge_logsumexp_nan": (lambda x: torch.logsumexp(x, 0), (_SPECIAL,)),
    "edge_logsumexp_one": (lambda x: torch.logsumexp(x, -2), (_row("flat", 2, 1, 4),)),
    "edge_cumsum_one": (lambda x: torch.cumsum(x, 1), (_row("flat", 2, 1, 4),)),
    "edge_cumsum_special": (lambda x: torch.cumsum(x, 0), (np.array([1, _INF, 2, -_INF, 3], dtype=np.float32),)),
    "edge_cumsum_none": (lambda x: torch.cumsum(x, -1), (_empty(2, 0),)),
    "edge_dot_none": (lambda x, y: torch.dot(x, y), (_empty(0), _empty(0))),
    "edge_outer_one": (lambda x, y: torch.outer(x, y), (_ONE, _LIST)),
    "edge_einsum_scalars": _einsum(",->", _row("scalar"), _row("scalar too")),
    "edge_einsum_none": _einsum("ij,jk->ik", _empty(2, 0), _empty(0, 3)),
    "edge_einsum_everything": _einsum("bij->", _A),
    "edge_conv1d_one": (lambda x, w: F.conv1d(x, w, padding=1), (_row("short", 2, 3, 1), _row("w of 3", 4, 3, 3))),
    "edge_conv1d_stride": (lambda x, w: F.conv1d(x, w, stride=11), (_SEQUENCE, _row("w of 2", 1, 4, 2))),
    "edge_pixel_shuffle_alone": (lambda x: F.pixel_shuffle(x, 1), (_IMAGES,)),
    "edge_interpolate_of_one": (lambda x: F.interpolate(x, size=(3, 2), mode="bilinear"), (_CELL,)),
    "edge_interpolate_to_one": (
        lambda x: F.interpolate(x, size=(1, 1), mode="bilinear", align_corners=True),
        (_IMAGES,),
    ),
    # The last row lies behind the centre of the last cell.
    "edge_interpolate_factor": (
        lambda x: F.interpolate(x, scale_factor=(1.3, 1.5), mode="bilinear"),
        (_row("rows", 1, 2, 7, 3),),
    ),
    "edge_interpolate_area_larger": (lambda x: F.interpolate(x, size=(7, 9), mode="area"), (_IMAGES,)),
    "edge_interpolate_same": (lambda x: F.interpolate(x, scale_factor=1, mode="bilinear"), (_IMAGES,)),
    "edge_grid_sample_cell": (lambda x, g: F.grid_sample(x, g, align_corners=False), (_CELL, _GRID)),
    "edge_grid_sample_cell_corners": (
        lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True),
        (_CELL, _GRID),
    ),
    "edge_grid_sample_points": (lambda x, g: F.grid_sample(x, g, align_corners=True), (_IMAGES, _POINTS)),
    "edge_grid_sample_points_nearest": (
        lambda x, g: F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=False),
        (_row("even", 2, 3, 4, 4), _POINTS),
    ),
    "arange": (lambda: torch.arange(-3, 8, 4), ()),
    "arange_down": (lambda: torch.arange(2.5, -1, -0.7, dtype=torch.float64), ()),
    "linspace": (lambda: torch.linspace(-1, 2.2, 9, dtype=torch.float64), ()),
    "linspace_one": (lambda: torch.linspace(3, 5, 1, dtype=torch.float64), ()),
    "linspace_whole": (lambda: torch.linspace(0, 10, 7, dtype=torch.int64), ()),
}


def _recorded(name, function, inputs):
    arrays = {f"{name}.in{i}": x for i, x in enumerate(inputs)}
    tensors = [torch.tensor(x.astype(np.float64) if x.dtype == np.float32 else x) for x in inputs]
    for t in tensors:
        t.requires_grad_(t.is_floating_point())
    results = function(*tensors)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    differentiable, cotangents = [], []
    for i, y in enumerate(results):
        arrays[f"{name}.out{i}"] = y.detach().numpy()
        if y.requires_grad:
            cotangent = uniform(f"{name} d_out{i}", list(y.shape))
            arrays[f"{name}.d_out{i}"] = cotangent
            differentiable.append(y)
            cotangents.append(torch.tensor(cotangent.astype(np.float64)))
    wanted = [t for t in tensors if t.requires_grad]
    gradients = iter(torch.autograd.grad(differentiable, wanted, cotangents) if differentiable else ())
    for i, t in enumerate(tensors):
        if t.requires_grad and differentiable:
            arrays[f"{name}.d_in{i}"] = next(gradients).numpy()
    return arrays


def record(path):
    arrays = {}
    for name, (function, inputs) in CASES.items():
        arrays.update(_recorded(name, function, inputs))
    arrays["torch_version"] = version_numbers(torch.__version__)
    write_npz(path, arrays)
    print(f"{len(CASES)} composed functions")
