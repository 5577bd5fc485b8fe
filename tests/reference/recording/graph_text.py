"""Spells numbers, attributes and types of the `.fj` text form (docs/ops.md, "Types and text").

`ROW_ATTRIBUTES` holds the attributes of each op in row order with their defaults. Every attribute is written, defaults
included, which is the canonical form that fusejit itself prints. `REQUIRED` marks an attribute without a default.
"""

import math

REQUIRED = object()

_ALL_DIMS = {"dim": REQUIRED, "keepdim": False}
_CONV = {"stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1]}
_MAX_POOL = {"kernel_size": REQUIRED, "stride": REQUIRED, "padding": [0, 0, 0, 0], "dilation": [1, 1]}
_TAP = {"kernel_size": REQUIRED, "stride": REQUIRED, "padding": [0, 0, 0, 0]}
_AVG_POOL = {"kernel_size": REQUIRED, "stride": REQUIRED, "padding": [0, 0, 0, 0], "count_include_pad": True}
_BATCH_NORM_TRAIN = {"eps": 1e-5, "correction": 0, "eps_outside": False}

ROW_ATTRIBUTES = {
    "clamp": {"min": -math.inf, "max": math.inf},
    "cast": {"dtype": REQUIRED},
    "leaky_relu": {"negative_slope": 0.01},
    "elu": {"alpha": 1},
    "gelu": {"approximate": "none"},
    "softplus": {"beta": 1, "threshold": 20},
    "softmax": {"dim": REQUIRED},
    "log_softmax": {"dim": REQUIRED},
    "dropout": {"p": 0.5, "stream": 0},
    "batch_norm": {"eps": 1e-5},
    "batch_norm_train": _BATCH_NORM_TRAIN,
    "batch_norm_train_input_grad": _BATCH_NORM_TRAIN,
    "batch_norm_train_weight_grad": _BATCH_NORM_TRAIN,
    "layer_norm": {"normalized_shape": REQUIRED, "eps": 1e-5},
    "group_norm": {"num_groups": REQUIRED, "eps": 1e-5},
    "instance_norm": {"eps": 1e-5},
    "nll_loss": {"reduction": "mean", "ignore_index": -100},
    "cross_entropy": {"reduction": "mean", "ignore_index": -100, "label_smoothing": 0},
    "mse_loss": {"reduction": "mean"},
    "l1_loss": {"reduction": "mean"},
    "smooth_l1_loss": {"reduction": "mean", "beta": 1},
    "binary_cross_entropy_with_logits": {"reduction": "mean"},
    "sum": _ALL_DIMS,
    "mean": _ALL_DIMS,
    "prod": _ALL_DIMS,
    "amax": _ALL_DIMS,
    "amin": _ALL_DIMS,
    "any": _ALL_DIMS,
    "all": _ALL_DIMS,
    "var": {"dim": REQUIRED, "correction": 1, "keepdim": False},
    "argmax": _ALL_DIMS,
    "argmin": _ALL_DIMS,
    "reshape": {"shape": REQUIRED},
    "flatten": {"start_dim": 0, "end_dim": -1},
    "permute": {"dims": REQUIRED},
    "squeeze": {"dim": REQUIRED},
    "unsqueeze": {"dim": REQUIRED},
    "expand": {"shape": REQUIRED},
    "slice": {"starts": REQUIRED, "stops": REQUIRED, "steps": REQUIRED},
    "unslice": {"shape": REQUIRED, "starts": REQUIRED, "steps": REQUIRED},
    "pad": {"low": REQUIRED, "high": REQUIRED, "value": 0},
    "concat": {"dim": REQUIRED},
    "flip": {"dims": REQUIRED},
    "gather": {"dim": REQUIRED},
    "gather_grad": {"dim": REQUIRED, "shape": REQUIRED},
    "one_hot": {"num_classes": REQUIRED, "dtype": "i64"},
    "conv2d": {**_CONV, "groups": 1},
    "conv2d_input_grad": {"input_size": REQUIRED, **_CONV, "groups": 1},
    "conv2d_weight_grad": {"kernel_size": REQUIRED, **_CONV, "groups": 1},
    "max_pool2d": _MAX_POOL,
    "max_pool2d_grad": _MAX_POOL,
    "max_pool2d_tap": _TAP,
    "max_pool2d_tap_grad": {"input_size": REQUIRED, **_TAP},
    "avg_pool2d": _AVG_POOL,
    "avg_pool2d_grad": {"input_size": REQUIRED, **_AVG_POOL},
    "adaptive_avg_pool2d": {"output_size": REQUIRED},
    "adaptive_avg_pool2d_grad": {"input_size": REQUIRED},
    "upsample_nearest2d": {"output_size": REQUIRED},
    "upsample_nearest2d_grad": {"input_size": REQUIRED},
    "upsample_bilinear2d": {"output_size": REQUIRED, "align_corners": False},
    "upsample_bilinear2d_grad": {"input_size": REQUIRED, "align_corners": False},
    "rand": {"shape": REQUIRED, "stream": 0, "dtype": "f32"},
    "full": {"shape": REQUIRED, "value": REQUIRED, "dtype": "f32"},
    "constant": {"shape": REQUIRED, "dtype": "f32", "data": REQUIRED},
    "iota": {"shape": REQUIRED, "dim": 0, "dtype": "i64"},
}


def filled_in(op, given):
    """The attributes of `op` in row order: those given, else their defaults."""
    row = ROW_ATTRIBUTES.get(op, {})
    unknown = set(given) - set(row)
    if unknown:
        raise ValueError(f"{op} has no attribute {sorted(unknown)}")
    attributes = {name: given.get(name, default) for name, default in row.items()}
    missing = [name for name, value in attributes.items() if value is REQUIRED]
    if missing:
        raise ValueError(f"{op} needs {missing}")
    return attributes


def number(value):
    """`3`, `0.1`, `1e-05`, `-0.0`, `inf`: the shortest spelling that reads back as the same double."""
    if isinstance(value, int):
        return str(value)
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0"
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:
        return str(int(value))
    return repr(float(value))


def attribute(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(number(v) for v in value) + "]"
    return number(value)


def type_of(dtype, shape, nhwc=False):
    return f"{dtype}[{','.join(str(d) for d in shape)}]" + (":nhwc" if nhwc else "")


def node(name, op, operands, attributes, type_text):
    braces = ""
    if attributes:
        braces = " {" + ", ".join(f"{k}={attribute(v)}" for k, v in attributes.items()) + "}"
    return f"  %{name} = {op}({', '.join(operands)}){braces} : {type_text}"
