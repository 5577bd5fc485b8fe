"""norms/*: batch norm in both modes and its gradient ops, layer, group and instance norm (docs/ops.md)."""

from ..inputs import uniform
from ..recorder import Case

_TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}

_SHAPES = {"nc": [6, 3], "ncl": [3, 4, 5], "nchw": [3, 4, 5, 6]}

# The four forms of batch_norm_train: biased or unbiased variance, eps inside or outside the root.
_FORMS = {
    "biased": {},
    "unbiased": {"correction": 1},
    "outside": {"eps": 1e-3, "eps_outside": True},
    "unbiased_outside": {"eps": 1e-3, "correction": 1, "eps_outside": True},
}


def _vectors(case, channels, grad=True):
    weight = case.param("weight", uniform(case.name + "weight", [channels], 0.5, 1.5), grad=grad)
    bias = case.param("bias", uniform(case.name + "bias", [channels], -1, 1), grad=grad)
    return weight, bias


def _inference():
    for name, shape in _SHAPES.items():
        case = Case(f"norms/batch_norm_{name}", **_TOLERANCE)
        x = case.param("x", uniform(case.name, shape), grad=True)
        mean = case.param("mean", uniform(case.name + "mean", [shape[1]], -1, 1), grad=True)
        var = case.param("var", uniform(case.name + "var", [shape[1]], 0.25, 2), grad=True)
        weight, bias = _vectors(case, shape[1])
        case.result(case.batch_norm(x, mean, var, weight, bias))
        yield case

    case = Case("norms/batch_norm_no_affine", **_TOLERANCE, note="Weight and bias are the numbers 1 and 0.")
    x = case.param("x", uniform(case.name, [2, 3, 4, 4]), grad=True)
    mean = case.param("mean", uniform(case.name + "mean", [3], -1, 1), grad=True)
    var = case.param("var", uniform(case.name + "var", [3], 0.25, 2), grad=True)
    case.result(case.batch_norm(x, mean, var, 1, 0, eps=0.01))
    yield case


def _training():
    for form, attributes in _FORMS.items():
        for name, shape in _SHAPES.items():
            case = Case(f"norms/batch_norm_train_{form}_{name}", **_TOLERANCE)
            x = case.param("x", uniform(case.name, shape), grad=True)
            weight, bias = _vectors(case, shape[1])
            case.result(case.batch_norm_train(x, weight, bias, **attributes))
            yield case

        case = Case(f"norms/batch_norm_train_{form}_no_affine", **_TOLERANCE)
        x = case.param("x", uniform(case.name, [2, 3, 4, 5]), grad=True)
        case.result(case.batch_norm_train(x, 1, 0, **attributes))
        yield case

        case = Case(
            f"norms/batch_norm_train_{form}_gradient_ops",
            **_TOLERANCE,
            note="The gradients as ops of their own, and dbias.",
        )
        x = case.param("x", uniform(case.name, [3, 4, 5, 3]))
        g = case.param("g", uniform(case.name + "g", [3, 4, 5, 3]))
        weight = case.param("weight", uniform(case.name + "weight", [4], 0.5, 1.5))
        case.result(
            case.batch_norm_train_input_grad(x, weight, g, **attributes),
            case.batch_norm_train_input_grad(x, 1, g, **attributes),
            case.batch_norm_train_weight_grad(x, g, **attributes),
            case.sum(g, dim=[0, 2, 3]),
        )
        yield case


def _training_edges():
    case = Case("norms/batch_norm_train_nhwc", **_TOLERANCE)
    x = case.param("x", uniform(case.name, [3, 4, 5, 6]), grad=True, nhwc=True)
    weight, bias = _vectors(case, 4)
    case.result(case.batch_norm_train(x, weight, bias))
    yield case

    case = Case(
        "norms/batch_norm_train_shifted",
        rtol=1e-4,
        atol=4e-4,
        note="Mean 1000, deviation about 1: a mean rounded to f32 is allowed, E[x^2]-E[x]^2 is not.",
    )
    x = case.param("x", uniform(case.name, [4, 3, 6, 6], 998, 1002), grad=True)
    weight, bias = _vectors(case, 3)
    case.result(case.batch_norm_train(x, weight, bias))
    yield case

    case = Case(
        "norms/batch_norm_train_one_value",
        **_TOLERANCE,
        note="One value a channel (PyTorch refuses): the bias, and no gradient to x. Correction 1: NaN.",
    )
    x = case.param("x", uniform(case.name, [1, 3]), grad=True)
    weight, bias = _vectors(case, 3)
    case.result(case.batch_norm_train(x, weight, bias))
    yield case

    case = Case("norms/batch_norm_train_one_value_unbiased", **_TOLERANCE)
    x = case.param("x", uniform(case.name, [1, 3]))
    weight, bias = _vectors(case, 3, grad=False)
    case.result(case.batch_norm_train(x, weight, bias, correction=1))
    yield case

    case = Case("norms/batch_norm_train_constant", **_TOLERANCE, note="A channel without variance: y is the bias.")
    values = uniform(case.name, [2, 3, 2, 2])
    values[:, 1] = 0.75
    x = case.param("x", values, grad=True)
    weight, bias = _vectors(case, 3)
    case.result(case.batch_norm_train(x, weight, bias))
    yield case

    case = Case(
        "norms/batch_norm_train_constant_outside", **_TOLERANCE, note="With eps_outside dx is NaN in that channel."
    )
    x = case.param("x", values, grad=True)
    weight, bias = _vectors(case, 3, grad=False)
    case.result(case.batch_norm_train(x, weight, bias, eps=1e-3, eps_outside=True))
    yield case


def _running_statistics():
    case = Case("norms/running_statistics", **_TOLERANCE, note="y and the new running mean and variance, momentum 0.1.")
    x = case.param("x", uniform(case.name, [4, 3, 5, 5], -1, 3))
    weight, bias = _vectors(case, 3, grad=False)
    running = [case.param(n, uniform(case.name + n, [3], 0.5, 1.5)) for n in ("running_mean", "running_var")]
    batch = [case.mean(x, dim=[0, 2, 3]), case.var(x, dim=[0, 2, 3], correction=1)]
    case.result(case.batch_norm_train(x, weight, bias))
    case.result(*(case.add(case.mul(r, 0.9), case.mul(b, 0.1)) for r, b in zip(running, batch)))
    yield case


def _others():
    for name, shape, normalized in (
        ("last", [3, 4, 6], [6]),
        ("two", [3, 4, 6], [4, 6]),
        ("all", [5, 3], [5, 3]),
        ("image", [2, 3, 4, 5], [3, 4, 5]),
    ):
        case = Case(f"norms/layer_norm_{name}", **_TOLERANCE)
        x = case.param("x", uniform(case.name, shape), grad=True)
        weight = case.param("weight", uniform(case.name + "weight", normalized, 0.5, 1.5), grad=True)
        bias = case.param("bias", uniform(case.name + "bias", normalized, -1, 1), grad=True)
        case.result(case.layer_norm(x, weight, bias, normalized_shape=normalized))
        yield case

    for name, shape, groups in (
        ("nchw", [2, 6, 4, 3], 3),
        ("one_group", [2, 4, 3, 3], 1),
        ("per_channel", [2, 4, 3, 3], 4),
        ("nc", [3, 6], 2),
    ):
        case = Case(f"norms/group_norm_{name}", **_TOLERANCE)
        x = case.param("x", uniform(case.name, shape), grad=True)
        weight, bias = _vectors(case, shape[1])
        case.result(case.group_norm(x, weight, bias, num_groups=groups))
        yield case

    for name, shape in (("ncl", [3, 4, 7]), ("nchw", [2, 3, 4, 5])):
        case = Case(f"norms/instance_norm_{name}", **_TOLERANCE)
        x = case.param("x", uniform(case.name, shape), grad=True)
        weight, bias = _vectors(case, shape[1])
        case.result(case.instance_norm(x, weight, bias))
        yield case

    for op, attributes in (
        ("layer_norm", {"normalized_shape": [4, 5]}),
        ("group_norm", {"num_groups": 2}),
        ("instance_norm", {}),
    ):
        case = Case(f"norms/{op}_no_affine", **_TOLERANCE)
        x = case.param("x", uniform(case.name, [2, 4, 4, 5]), grad=True)
        case.result(getattr(case, op)(x, 1, 0, eps=0.01, **attributes))
        yield case


def cases():
    yield from _inference()
    yield from _training()
    yield from _training_edges()
    yield from _running_statistics()
    yield from _others()
