"""blocks/*: what users compose: the blocks of CNNs, forward and backward, in both layouts."""

import numpy as np

from ..inputs import f32, integers, uniform
from ..recorder import Case

_TOLERANCE = {"rtol": 4e-5, "atol": 1e-4}
_SAME = {"padding": [1, 1, 1, 1]}


def _image(case, name, shape, nhwc=False, low=-1, high=1):
    return case.param(name, uniform(case.name + name, shape, low, high), grad=True, nhwc=nhwc)


def _vector(case, name, channels, low=-1, high=1, grad=True):
    return case.param(name, uniform(case.name + name, [channels], low, high), grad=grad)


def _worked_examples():
    case = Case("blocks/conv_3x3_by_2x2", note="x = 0...8, w = ones: [[8,12],[20,24]].")
    x = case.param("x", np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3))
    w = case.param("w", np.ones([1, 1, 2, 2], dtype=np.float32))
    case.result(case.conv2d(x, w))
    yield case

    case = Case(
        "blocks/conv_gradients_3x3_by_2x2",
        note="dw = [[8,12],[20,24]] for dy = ones; dx = [[0,1,1],[2,6,4],[2,5,3]] for w = [[0,1],[2,3]].",
    )
    x = case.param("x", np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3))
    w = case.param("w", np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2))
    dy = case.param("dy", np.ones([1, 1, 2, 2], dtype=np.float32))
    case.result(case.conv2d_weight_grad(x, dy, kernel_size=[2, 2]), case.conv2d_input_grad(dy, w, input_size=[3, 3]))
    yield case

    for name, nhwc in (("nchw", False), ("nhwc", True)):
        case = Case(
            f"blocks/conv_bias_relu_same_2x2_{name}",
            **_TOLERANCE,
            note="N=1, H=2, W=3, C=3, K=3, 2x2 kernel, SAME padding: 0 before, 1 after.",
        )
        x = _image(case, "x", [1, 3, 2, 3], nhwc)
        w = _image(case, "w", [3, 3, 2, 2], nhwc)
        b = _vector(case, "b", 3)
        case.result(case.relu(case.bias_add(case.conv2d(x, w, padding=[0, 0, 1, 1]), b)))
        yield case


def _batch_norm_blocks():
    for name, nhwc in (("nchw", False), ("nhwc", True)):
        case = Case(f"blocks/batch_norm_add_relu_{name}", **_TOLERANCE, note="relu(bn(x; weight, bias) + z)")
        x, z = _image(case, "x", [4, 6, 5, 5], nhwc), _image(case, "z", [4, 6, 5, 5], nhwc)
        weight, bias = _vector(case, "weight", 6, 0.5, 1.5), _vector(case, "bias", 6)
        case.result(case.relu(case.add(case.batch_norm_train(x, weight, bias), z)))
        yield case

        case = Case(f"blocks/conv_batch_norm_inference_relu_{name}", **_TOLERANCE)
        x, w = _image(case, "x", [2, 4, 6, 6], nhwc), _image(case, "w", [5, 4, 3, 3], nhwc)
        mean, var = _vector(case, "mean", 5), _vector(case, "var", 5, 0.25, 2)
        weight, bias = _vector(case, "weight", 5, 0.5, 1.5), _vector(case, "bias", 5)
        case.result(case.relu(case.batch_norm(case.conv2d(x, w, **_SAME), mean, var, weight, bias)))
        yield case

    case = Case(
        "blocks/conv_batch_norm_layer",
        **_TOLERANCE,
        note="Convolution and batch norm without affine, unbiased variance, eps outside the root.",
    )
    x, w = _image(case, "x", [2, 3, 6, 6]), _image(case, "w", [5, 3, 3, 3])
    case.result(case.batch_norm_train(case.conv2d(x, w), 1, 0, eps=1e-3, correction=1, eps_outside=True))
    yield case


def _residual():
    for name, nhwc in (("nchw", False), ("nhwc", True)):
        case = Case(f"blocks/residual_{name}", rtol=1e-4, atol=1e-3, note="Two conv+bn, an identity path, two relu.")
        x = _image(case, "x", [2, 4, 6, 6], nhwc)
        y = x
        for i in (1, 2):
            w = _image(case, f"w{i}", [4, 4, 3, 3], nhwc)
            weight, bias = _vector(case, f"weight{i}", 4, 0.5, 1.5), _vector(case, f"bias{i}", 4)
            y = case.batch_norm_train(case.conv2d(y, w, **_SAME), weight, bias)
            y = case.relu(y) if i == 1 else y
        case.result(case.relu(case.add(y, x)))
        yield case

    case = Case(
        "blocks/residual_downsampling", rtol=1e-4, atol=1e-3, note="Stride 2, a 1x1 convolution on the other path."
    )
    x = _image(case, "x", [2, 4, 7, 7])
    w1, w2 = _image(case, "w1", [6, 4, 3, 3]), _image(case, "w2", [6, 4, 1, 1])
    main = case.batch_norm_train(
        case.conv2d(x, w1, stride=[2, 2], padding=[1, 1, 1, 1]),
        _vector(case, "weight1", 6, 0.5, 1.5),
        _vector(case, "bias1", 6),
    )
    side = case.batch_norm_train(
        case.conv2d(x, w2, stride=[2, 2]), _vector(case, "weight2", 6, 0.5, 1.5), _vector(case, "bias2", 6)
    )
    case.result(case.relu(case.add(main, side)))
    yield case


def _stem():
    for name, nhwc in (("nchw", False), ("nhwc", True)):
        case = Case(
            f"blocks/stem_{name}",
            rtol=1e-8,
            atol=1e-8,
            note="In f64: a stem, an overlapping pool, a block with a join, and an unbiased variance beside the batch's.",
        )

        def parameter(key, shape, nhwc=False, low=-1, high=1):
            return case.param(key, uniform(case.name + key, shape, low, high).astype(np.float64), grad=True, nhwc=nhwc)

        x = parameter("x", [2, 3, 18, 18], nhwc)
        y = case.conv2d(x, parameter("w0", [8, 3, 7, 7]), stride=[2, 2], padding=[3, 3, 3, 3])
        unbiased = case.var(y, dim=[0, 2, 3], correction=1)
        y = case.batch_norm_train(y, parameter("weight0", [8], low=0.5, high=1.5), parameter("bias0", [8]))
        y = case.max_pool2d(case.relu(y), kernel_size=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1])
        z = case.conv2d(y, parameter("w1", [8, 8, 3, 3]), **_SAME)
        z = case.batch_norm_train(z, parameter("weight1", [8], low=0.5, high=1.5), parameter("bias1", [8]))
        case.result(case.relu(case.add(z, y)), unbiased)
        yield case


def _mobile():
    case = Case("blocks/depthwise_separable", rtol=1e-4, atol=1e-3, note="1x1, depthwise 3x3, 1x1, as in MobileNetV2.")
    x = _image(case, "x", [2, 4, 6, 6])
    y = case.conv2d(x, _image(case, "expand", [8, 4, 1, 1]))
    y = case.relu6(case.bias_add(y, _vector(case, "expand_bias", 8)))
    y = case.conv2d(y, _image(case, "depthwise", [8, 1, 3, 3]), padding=[1, 1, 1, 1], groups=8)
    y = case.hardswish(case.bias_add(y, _vector(case, "depthwise_bias", 8)))
    y = case.conv2d(y, _image(case, "project", [4, 8, 1, 1]))
    case.result(case.add(y, x))
    yield case

    case = Case("blocks/squeeze_excitation", **_TOLERANCE)
    x = _image(case, "x", [2, 6, 5, 4])
    s = case.mean(x, dim=[2, 3])
    s = case.silu(case.add(case.linear(s, _image(case, "reduce", [3, 6])), _vector(case, "reduce_bias", 3)))
    s = case.sigmoid(case.add(case.linear(s, _image(case, "restore", [6, 3])), _vector(case, "restore_bias", 6)))
    case.result(case.mul(x, case.reshape(s, shape=[2, 6, 1, 1])))
    yield case

    case = Case("blocks/concat_upsample", **_TOLERANCE, note="A step up of a U-Net.")
    low, skip = _image(case, "low", [1, 4, 3, 3]), _image(case, "skip", [1, 3, 6, 6])
    joined = case.concat(case.upsample_nearest2d(low, output_size=[6, 6]), skip, dim=1)
    case.result(case.gelu(case.conv2d(joined, _image(case, "w", [5, 7, 3, 3]), **_SAME)))
    yield case


def _classifier():
    case = Case("blocks/classifier", rtol=1e-4, atol=1e-4, note="From the last feature map to the loss.")
    x = _image(case, "x", [4, 6, 4, 4])
    w, b = _image(case, "w", [5, 6]), _vector(case, "b", 5)
    target = case.param("target", integers(case.name, [4], 0, 5))
    y = case.flatten(case.adaptive_avg_pool2d(case.relu(x), output_size=[1, 1]), start_dim=1, end_dim=3)
    case.result(case.cross_entropy(case.add(case.linear(y, w), b), target))
    yield case

    case = Case("blocks/pool_relu_linear", rtol=1e-4, atol=1e-4, note="The tail of the MNIST network in small.")
    x = _image(case, "x", [3, 4, 6, 6])
    w1, b1, w2, b2 = (
        _image(case, "w1", [7, 36]),
        _vector(case, "b1", 7),
        _image(case, "w2", [5, 7]),
        _vector(case, "b2", 5),
    )
    target = case.param("target", integers(case.name, [3], 0, 5))
    y = case.relu(case.max_pool2d(x, kernel_size=[2, 2], stride=[2, 2]))
    y = case.add(case.linear(case.flatten(y, start_dim=1, end_dim=3), w1), b1)
    y = case.dropout(y, case.param("seed", np.array(11)), p=0.5)
    y = case.add(case.linear(case.relu(y), w2), b2)
    case.result(case.nll_loss(case.log_softmax(y, dim=1), target))
    yield case

    case = Case("blocks/attention", **_TOLERANCE, note="softmax(q k^T / 2) v")
    q, k, v = (_image(case, n, [2, 3, 5, 4]) for n in "qkv")
    scores = case.mul(case.matmul(q, case.permute(k, dims=[0, 1, 3, 2])), 0.5)
    case.result(case.matmul(case.softmax(scores, dim=3), v))
    yield case


def _mask_edges():
    case = Case(
        "blocks/relu_in_a_padded_convolution",
        **_TOLERANCE,
        note="relu(x + b) with b > 0 before a padded convolution: the halo is 0, not relu(b).",
    )
    x, w, b = _image(case, "x", [1, 3, 5, 5]), _image(case, "w", [4, 3, 3, 3]), case.param("b", f32(2, 3, 4), grad=True)
    case.result(case.conv2d(case.relu(case.bias_add(x, b)), w, **_SAME))
    yield case


def cases():
    yield from _worked_examples()
    yield from _batch_norm_blocks()
    yield from _residual()
    yield from _stem()
    yield from _mobile()
    yield from _classifier()
    yield from _mask_edges()
