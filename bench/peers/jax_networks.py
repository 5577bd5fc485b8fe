"""The networks in JAX without a library of layers: functions of (values, x), x as [N,H,W,C], which suits XLA here.

A network asks `values` for its parameters in the order of its layers. The first call makes them, every later one hands
them out: `values.trained` are what is trained, `values.running` the statistics of batch norms, new ones after a call in
training.
"""

import math

import jax
import jax.numpy as jnp
import numpy

WINDOW = ("NHWC", "HWIO", "NHWC")


class Values:
    def __init__(self, training, dtype, trained=None, running=None, key=None):
        self.training, self.dtype, self.key = training, dtype, key
        self.makes = trained is None
        self.trained, self.running, self.new_running = trained or [], running or [], []
        self.next_trained = self.next_running = 0
        self.random = numpy.random.default_rng(1)

    def parameter(self, shape, fan_in=None, value=None):
        if self.makes:
            bound = 1 / math.sqrt(fan_in) if fan_in else 0
            made = numpy.full(shape, value) if value is not None else self.random.uniform(-bound, bound, shape)
            self.trained.append(jnp.asarray(made, self.dtype))
        self.next_trained += 1
        return self.trained[self.next_trained - 1]

    def statistic(self, shape, value):
        if self.makes:
            self.running.append(jnp.full(shape, value, self.dtype))
        self.next_running += 1
        return self.running[self.next_running - 1]


def conv(values, x, outputs, kernel, stride=1, groups=1, padding=None):
    inputs, padding = x.shape[3] // groups, kernel // 2 if padding is None else padding
    w = values.parameter((kernel, kernel, inputs, outputs), fan_in=kernel * kernel * inputs)
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), [(padding, padding)] * 2, dimension_numbers=WINDOW, feature_group_count=groups)


def batch_norm(values, x):
    channels = x.shape[3]
    scale, shift = values.parameter((channels,), value=1), values.parameter((channels,), value=0)
    mean, var = values.statistic((channels,), 0), values.statistic((channels,), 1)
    if values.training:
        wide = x.astype(jnp.float32)
        count = x.size // channels
        now = jnp.mean(wide, (0, 1, 2)), jnp.var(wide, (0, 1, 2))
        unbiased = now[1] * (count / max(count - 1, 1))
        moved = 0.9 * mean + 0.1 * now[0], 0.9 * var + 0.1 * unbiased
        values.new_running += [value.astype(x.dtype) for value in moved]
        mean, var = now
    factor = scale * jax.lax.rsqrt(var + 1e-5)
    return (x * factor + (shift - mean * factor)).astype(x.dtype)


def plain_batch_norm(values, x):
    """Of the digits network: no affine part, unbiased variance, eps outside the root."""
    mean, var = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2), ddof=1)
    return (x - mean) / (jnp.sqrt(var) + 1e-3)


def linear(values, x, outputs):
    w = values.parameter((x.shape[1], outputs), fan_in=x.shape[1])
    return x @ w + values.parameter((outputs,), fan_in=x.shape[1])


def max_pool(x, kernel, stride, padding):
    window, strides = (1, kernel, kernel, 1), (1, stride, stride, 1)
    pads = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, pads)  # a plain -inf, or no gradient


def dropout(values, x, p):
    if not values.training:
        return x
    values.key, key = jax.random.split(values.key)
    return jnp.where(jax.random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0).astype(x.dtype)


def conv_norm(values, x, outputs, kernel, stride=1, groups=1):
    return batch_norm(values, conv(values, x, outputs, kernel, stride, groups))


def resnet(values, x, blocks, expansion):
    relu = jax.nn.relu
    x = max_pool(relu(conv_norm(values, x, 64, 7, 2)), 3, 2, 1)
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            stride = 2 if block == 0 and stage > 0 else 1
            if expansion == 1:
                y = conv_norm(values, relu(conv_norm(values, x, width, 3, stride)), width, 3)
            else:
                y = relu(conv_norm(values, x, width, 1))
                y = conv_norm(values, relu(conv_norm(values, y, width, 3, stride)), 4 * width, 1)
            same = stride == 1 and x.shape[3] == expansion * width
            x = relu(y + (x if same else conv_norm(values, x, expansion * width, 1, stride)))
    return linear(values, jnp.mean(x, (1, 2)), 1000)


def mobilenet_v2(values, x):
    relu6 = jax.nn.relu6
    x = relu6(conv_norm(values, x, 32, 3, 2))
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expansion, outputs, blocks, stride in stages:
        for block in range(blocks):
            y, width = x, x.shape[3] * expansion
            step = stride if block == 0 else 1
            if expansion > 1:
                y = relu6(conv_norm(values, y, width, 1))
            y = conv_norm(values, relu6(conv_norm(values, y, width, 3, step, width)), outputs, 1)
            x = x + y if step == 1 and x.shape[3] == outputs else y
    x = jnp.mean(relu6(conv_norm(values, x, 1280, 1)), (1, 2))
    return linear(values, dropout(values, x, 0.2), 1000)


def convnet(values, x):
    relu = jax.nn.relu
    x = relu(plain_batch_norm(values, conv(values, x, 32, 3, padding=0)))
    x = relu(plain_batch_norm(values, conv(values, x, 64, 3, padding=0)))
    x = relu(max_pool(x, 2, 2, 0))
    x = relu(dropout(values, linear(values, x.reshape(x.shape[0], -1), 128), 0.5))
    return linear(values, x, 10)


NETWORKS = {
    "resnet18": lambda values, x: resnet(values, x, [2, 2, 2, 2], 1),
    "resnet50": lambda values, x: resnet(values, x, [3, 4, 6, 3], 4),
    "mobilenet_v2": mobilenet_v2,
    "convnet": convnet,
}
