"""JAX as a contender of bench/cpu.py: one jitted step, with its arguments donated in training. What XLA compiles is
kept in the folder BENCH_CACHE."""

import argparse
import os

import jax
import jax.numpy as jnp
import numpy

import jax_networks
import protocol

DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}


def sgd(parameters, gradients, state):
    state = [0.9 * m + g for m, g in zip(state[0], gradients)]
    return [p - (0.01 * m).astype(p.dtype) for p, m in zip(parameters, state)], [state]


def adadelta(parameters, gradients, state):
    squares = [0.9 * s + 0.1 * g * g for s, g in zip(state[0], gradients)]
    updates = [g * jnp.sqrt(d + 1e-6) / jnp.sqrt(s + 1e-6) for g, s, d in zip(gradients, squares, state[1])]
    deltas = [0.9 * d + 0.1 * u * u for d, u in zip(state[1], updates)]
    return [p - u for p, u in zip(parameters, updates)], [squares, deltas]


def train_step(network, made, update, states, x, target):
    def loss_of(trained, running, key):
        values = jax_networks.Values(True, x.dtype, trained, running, key)
        scores = jax.nn.log_softmax(network(values, x).astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(scores, target[:, None], 1)), values.new_running

    def whole(trained, running, state, key):
        (loss, running), gradients = jax.value_and_grad(loss_of, has_aux=True)(trained, running, key)
        trained, state = update(trained, gradients, state)
        return loss, trained, running, state

    jitted = jax.jit(whole, donate_argnums=(0, 1, 2))
    held = [made.trained, made.running, [[jnp.zeros_like(p) for p in made.trained] for _ in range(states)]]
    count = 0

    def step(part):
        nonlocal held, count
        count += 1
        loss, *held = jitted(*held, jax.random.key(count))
        jax.block_until_ready(held)
        return float(loss)

    return step


def serve_step(network, made, x):
    forward = jax.jit(lambda t, r, x: network(jax_networks.Values(False, x.dtype, t, r), x))

    def step(part):
        forward(made.trained, made.running, x).block_until_ready()

    return step


def main():
    options = protocol.options(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    if options.mode == "layers":
        raise SystemExit("JAX is measured by whole networks")
    if cache := os.environ.get("BENCH_CACHE"):
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    held_before = protocol.resident_mib("VmRSS")
    network, convnet, dtype = jax_networks.NETWORKS[options.net], options.net == "convnet", DTYPES[options.dtype]
    shape = (28, 28, 1) if convnet else (options.size, options.size, 3)
    random = numpy.random.default_rng(1)
    made = jax_networks.Values(False, dtype)
    # Parameters are made by one call on a single image.
    network(made, jnp.zeros((1, *shape), dtype))
    x = jnp.asarray(random.standard_normal((options.batch, *shape), numpy.float32), dtype)
    if options.mode == "serve":
        step = serve_step(network, made, x)
    else:
        target = jnp.arange(options.batch) % (10 if convnet else 1000)
        update, states = (adadelta, 2) if convnet else (sgd, 1)
        step = train_step(network, made, update, states, x, target)
    protocol.serve(f"JAX {jax.__version__}", step, held_before)


if __name__ == "__main__":
    main()
