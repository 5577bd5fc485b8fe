"""What PyTorch moves in a training step, beside the ledger of `fusejit-dump show`: a count, no measurement.

Eager: every kernel reads its operands and writes its results once (a batch norm reads them twice in truth); views move
nothing. Compiled: what TorchInductor itself counts of the kernels that it has made
(torch._inductor.metrics.num_bytes_accessed), calls of libraries included.

    .venv/bin/python bench/peers/moved_bytes.py resnet50 --batch 16 [--compiled]
"""

import argparse

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pytorch_contender


class Counted(TorchDispatchMode):
    """Adds up the bytes of what each op reads and writes. A result in an operand's memory is a view or written over."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, op, types, arguments=(), keywords=None):
        results = op(*arguments, **(keywords or {}))
        tensors = lambda tree: [t for t in tree_leaves(tree) if isinstance(t, torch.Tensor)]
        size = lambda t: t.numel() * t.element_size()
        operands = {t.untyped_storage()._cdata: t for t in tensors((arguments, keywords))}
        written_over = {a.name for a in op._schema.arguments if a.alias_info and a.alias_info.is_write}
        made = [t for t in tensors(results) if t.untyped_storage()._cdata not in operands]
        if written_over or made:
            self.bytes += sum(size(t) for t in operands.values()) + sum(size(t) for t in made)
            named = dict(zip((a.name for a in op._schema.arguments), arguments)) | (keywords or {})
            self.bytes += sum(size(t) for name in written_over for t in tensors(named.get(name)))
        return results


def step_of(name, batch):
    net = pytorch_contender.network(name, "ordinary")
    digits = name == "convnet"
    net = net.to(memory_format=torch.channels_last)
    x = torch.rand(batch, 1 if digits else 3, 28 if digits else 224, 28 if digits else 224)
    x = x.contiguous(memory_format=torch.channels_last)
    target = torch.zeros(batch, dtype=torch.int64)
    loss = torch.nn.functional.nll_loss if digits else torch.nn.functional.cross_entropy
    make = torch.optim.Adadelta if digits else lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)
    optimizer = make(net.parameters())

    def forward_backward(run):
        loss(run(x), target).backward()

    def update():
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return net, forward_backward, update


def eager(name, batch):
    net, forward_backward, update = step_of(name, batch)
    forward_backward(net)
    update()  # momenta are made at the first
    with Counted() as counted:
        forward_backward(net)
        update()
    return counted.bytes


def compiled(name, batch):
    import logging

    from torch._inductor import config, metrics

    config.force_disable_caches = True  # what is not compiled is not counted
    torch._logging.set_logs(inductor_metrics=True)
    logging.getLogger("torch._inductor.metrics").propagate = False

    net, forward_backward, update = step_of(name, batch)
    run = torch.compile(net)
    metrics.reset()
    forward_backward(run)
    network = metrics.num_bytes_accessed
    # The first update makes the momenta; the second is compiled anew, as all later ones run.
    step = torch.compile(update)
    step()
    forward_backward(run)
    before = metrics.num_bytes_accessed
    step()
    return network + metrics.num_bytes_accessed - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", choices=["resnet50", "mobilenet_v2", "convnet"])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--compiled", action="store_true")
    options = parser.parse_args()
    moved = (compiled if options.compiled else eager)(options.net, options.batch)
    print(f"{options.net} at {options.batch}, {'compiled' if options.compiled else 'eager'}: {moved / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
