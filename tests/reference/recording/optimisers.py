"""optim/*.npz: 20 steps of each optimiser on a linear least-squares problem with two parameters.

p0 is a 4x3 weight and p1 a bias of 3. Each gradient is that of the loss at the parameters of that moment, rounded to
f32 before PyTorch and the file get it, so a test feeds exactly what PyTorch saw and compares parameters alone.
"""

import numpy as np
import torch

from .inputs import uniform
from .npz import version_numbers, write_npz

STEPS = 20


class _Problem:
    def __init__(self):
        self.x = torch.tensor(uniform("optim x", [8, 4]).astype(np.float64))
        self.t = torch.tensor(uniform("optim t", [8, 3]).astype(np.float64))
        shapes = ([4, 3], [3])
        self.params = [torch.tensor(uniform(f"optim p{i}", s, -1, 1).astype(np.float64)) for i, s in enumerate(shapes)]
        for p in self.params:
            p.requires_grad_()

    def fill_gradients(self):
        loss = (self.x @ self.params[0] + self.params[1] - self.t).square().mean() * 4
        for p, g in zip(self.params, torch.autograd.grad(loss, self.params)):
            p.grad = torch.tensor(g.numpy().astype(np.float32).astype(np.float64))


def _recorded(optimiser, hyper, scheduler=None, max_norm=None):
    """The arrays of one run. `optimiser` and `scheduler` make the PyTorch objects."""
    problem = _Problem()
    steps = optimiser(problem.params)
    schedule = scheduler(steps) if scheduler else None
    arrays = {f"p{i}.init": p.detach().numpy().astype(np.float32) for i, p in enumerate(problem.params)}
    rows = {f"p{i}.{what}": [] for i in range(2) for what in ("grad", "after")}
    rows["lr.used"] = []
    if max_norm is not None:
        rows.update({"p0.clipped": [], "p1.clipped": [], "total_norm": []})
    for _ in range(STEPS):
        problem.fill_gradients()
        for i, p in enumerate(problem.params):
            rows[f"p{i}.grad"].append(p.grad.numpy().astype(np.float32))
        if max_norm is not None:
            rows["total_norm"].append(torch.nn.utils.clip_grad_norm_(problem.params, max_norm).item())
            for i, p in enumerate(problem.params):
                rows[f"p{i}.clipped"].append(p.grad.numpy().copy())
        rows["lr.used"].append(steps.param_groups[0]["lr"])
        steps.step()
        if schedule:
            schedule.step()
        for i, p in enumerate(problem.params):
            rows[f"p{i}.after"].append(p.detach().numpy().copy())
    arrays.update({name: np.array(values) for name, values in rows.items()})
    arrays.update({name: np.array(value) for name, value in hyper.items()})
    if max_norm is not None:
        arrays["max_norm"] = np.array(max_norm)
    arrays["torch_version"] = version_numbers(torch.__version__)
    return arrays


# name: (PyTorch's class, its arguments). Arguments are stored in the file as 0-d arrays under PyTorch's names; Adam's
# pair of betas as beta1 and beta2.
_PLAIN = {
    "sgd": ("SGD", {"lr": 0.05}),
    "sgd_momentum": ("SGD", {"lr": 0.05, "momentum": 0.9}),
    "sgd_nesterov": ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "sgd_dampening": ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.5}),
    "sgd_weight_decay": ("SGD", {"lr": 0.05, "weight_decay": 0.1}),
    "sgd_momentum_weight_decay": ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}),
    "adam": ("Adam", {"lr": 0.05, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}),
    "adam_weight_decay": ("Adam", {"lr": 0.05, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.1}),
    "adamw": ("AdamW", {"lr": 0.05, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.1}),
    "adadelta": ("Adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6}),
    "adadelta_weight_decay": ("Adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1}),
}


def _optimiser(kind, hyper):
    arguments = {k: v for k, v in hyper.items() if not k.startswith("beta")}
    if "beta1" in hyper:
        arguments["betas"] = (hyper["beta1"], hyper["beta2"])
    return lambda params: getattr(torch.optim, kind)(params, **arguments)


def _step_lr(step_size, gamma):
    return lambda optimiser: torch.optim.lr_scheduler.StepLR(optimiser, step_size, gamma)


def record(folder):
    folder.mkdir(exist_ok=True)
    runs = {name: _recorded(_optimiser(kind, hyper), hyper) for name, (kind, hyper) in _PLAIN.items()}
    for name, kind, hyper, step_size in (
        ("sgd_step_lr", "SGD", {"lr": 0.1}, 4),
        ("adadelta_step_lr", "Adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6}, 1),
    ):
        schedule = {"step_size": step_size, "gamma": 0.7}
        runs[name] = _recorded(_optimiser(kind, hyper), {**hyper, **schedule}, _step_lr(**schedule))
    # The gradients fall from above the limit to below it, where clipping must do nothing.
    for name, hyper in (("sgd_clip_norm", {"lr": 0.05}), ("sgd_momentum_clip_norm", {"lr": 0.05, "momentum": 0.9})):
        runs[name] = _recorded(_optimiser("SGD", hyper), hyper, max_norm=2.0)
    for name, arrays in runs.items():
        write_npz(folder / f"{name}.npz", arrays)
    print(f"{len(runs)} optimisers")
