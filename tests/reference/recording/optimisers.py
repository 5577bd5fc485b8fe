"""optim/*.npz: 20 steps of each optimiser on a linear least-squares problem with two parameters; schedules.npz: rates of
schedules; averaged_model.npz: averages of values.

p0 is a 4x3 weight and p1 a bias of 3. Each gradient is that of the loss at the parameters of that moment, rounded to
f32 before PyTorch and the file get it, so a test feeds exactly what PyTorch saw and compares parameters alone.
"""

import numpy as np
import torch

from .inputs import uniform
from .npz import version_numbers, write_npz

STEPS = 20


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2: not in PyTorch."""

    def __init__(self, params, lr, betas, weight_decay=0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})
        self.m = [torch.zeros_like(p) for p in self.param_groups[0]["params"]]

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        (beta1, beta2), lr = group["betas"], group["lr"]
        for p, m in zip(group["params"], self.m):
            update = beta1 * m + (1 - beta1) * p.grad
            assert update.abs().min() > 1e-5, "a sign that f32 may see the other way round"
            p -= lr * (torch.sign(update) + group["weight_decay"] * p)
            m.copy_(beta2 * m + (1 - beta2) * p.grad)


class LAMB(torch.optim.Optimizer):
    """You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2 with phi(z) = z: not in PyTorch."""

    def __init__(self, params, lr, betas, eps, weight_decay=0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.m, self.v = ([torch.zeros_like(p) for p in self.param_groups[0]["params"]] for _ in range(2))
        self.t = 0

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        beta1, beta2 = group["betas"]
        self.t += 1
        for p, m, v in zip(group["params"], self.m, self.v):
            m.copy_(beta1 * m + (1 - beta1) * p.grad)
            v.copy_(beta2 * v + (1 - beta2) * p.grad**2)
            m_hat, v_hat = m / (1 - beta1**self.t), v / (1 - beta2**self.t)
            update = m_hat / (v_hat.sqrt() + group["eps"]) + group["weight_decay"] * p
            p_norm, u_norm = p.norm(), update.norm()
            ratio = p_norm / u_norm if p_norm > 0 and u_norm > 0 else 1.0
            p -= group["lr"] * ratio * update


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


# name: (PyTorch's class or one of the above, its arguments). Arguments are stored in the file as 0-d arrays under PyTorch's names; Adam's
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
    "adam_amsgrad": ("Adam", {"lr": 0.05, "beta1": 0.9, "beta2": 0.9, "eps": 1e-8, "amsgrad": True}),
    "adamw_amsgrad": (
        "AdamW",
        {"lr": 0.05, "beta1": 0.8, "beta2": 0.9, "eps": 1e-6, "weight_decay": 0.1, "amsgrad": True},
    ),
    "rmsprop": ("RMSprop", {"lr": 0.01, "alpha": 0.99, "eps": 1e-8}),
    "rmsprop_weight_decay": ("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 1e-6, "weight_decay": 0.1}),
    "rmsprop_momentum": ("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 1e-8, "momentum": 0.9}),
    "rmsprop_centered": ("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 1e-4, "centered": True}),
    "rmsprop_centered_momentum": (
        "RMSprop",
        {"lr": 0.01, "alpha": 0.9, "eps": 1e-4, "momentum": 0.5, "centered": True},
    ),
    "lion": (Lion, {"lr": 0.01, "beta1": 0.9, "beta2": 0.99}),
    "lion_weight_decay": (Lion, {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.5}),
    "lamb": (LAMB, {"lr": 0.02, "beta1": 0.9, "beta2": 0.999, "eps": 1e-6}),
    "lamb_weight_decay": (LAMB, {"lr": 0.02, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.3}),
    "adadelta": ("Adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6}),
    "adadelta_weight_decay": ("Adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1}),
}


def _optimiser(kind, hyper):
    arguments = {k: v for k, v in hyper.items() if not k.startswith("beta")}
    if "beta1" in hyper:
        arguments["betas"] = (hyper["beta1"], hyper["beta2"])
    made = getattr(torch.optim, kind) if isinstance(kind, str) else kind
    return lambda params: made(params, **arguments)


def _step_lr(step_size, gamma):
    return lambda optimiser: torch.optim.lr_scheduler.StepLR(optimiser, step_size, gamma)


def _schedules():
    """name: (optimiser with groups at 0.1 and 0.02, what makes the schedule, calls of step()). Those of OneCycleLR end a call early: the
    last one runs past its end, to rates below 0."""
    s = torch.optim.lr_scheduler
    sgd = lambda groups: torch.optim.SGD(groups, momentum=0.9)  # noqa: E731
    return {
        "lambda": (sgd, lambda o: s.LambdaLR(o, lambda t: 1 / (1 + t)), 12),
        "step": (sgd, lambda o: s.StepLR(o, 3, 0.7), 12),
        "multi_step": (sgd, lambda o: s.MultiStepLR(o, [8, 2, 5, 5], 0.3), 12),
        "exponential": (sgd, lambda o: s.ExponentialLR(o, 0.9), 12),
        "cosine": (sgd, lambda o: s.CosineAnnealingLR(o, 5), 23),
        "cosine_eta_min": (sgd, lambda o: s.CosineAnnealingLR(o, 8, eta_min=0.01), 20),
        "linear": (sgd, lambda o: s.LinearLR(o), 12),
        "linear_down": (sgd, lambda o: s.LinearLR(o, start_factor=1.0, end_factor=0.1, total_iters=7), 12),
        "one_cycle": (sgd, lambda o: s.OneCycleLR(o, [0.5, 0.2], total_steps=20), 19),
        "one_cycle_adam": (torch.optim.Adam, lambda o: s.OneCycleLR(o, 0.3, total_steps=17, pct_start=0.45), 16),
        "one_cycle_linear": (
            torch.optim.Adadelta,
            lambda o: s.OneCycleLR(
                o, 0.3, total_steps=15, anneal_strategy="linear", cycle_momentum=False, div_factor=10,
                final_div_factor=100
            ),
            14,
        ),
        "one_cycle_three_phase": (
            sgd,
            lambda o: s.OneCycleLR(
                o, 0.3, total_steps=21, pct_start=0.4, three_phase=True, base_momentum=0.8, max_momentum=0.9
            ),
            20,
        ),
        "sequential": (
            sgd,
            lambda o: s.SequentialLR(
                o,
                [
                    s.LinearLR(o, start_factor=0.25, total_iters=4),
                    s.CosineAnnealingLR(o, 6, eta_min=0.001),
                    s.ExponentialLR(o, 0.5),
                ],
                [4, 10],
            ),
            16,
        ),
        "chained": (
            sgd,
            lambda o: s.ChainedScheduler([s.LinearLR(o, start_factor=0.5, total_iters=4), s.ExponentialLR(o, 0.9)]),
            12,
        ),
        "chained_three": (
            sgd,
            lambda o: s.ChainedScheduler(
                [s.StepLR(o, 5, 0.5), s.MultiStepLR(o, [3, 7], 0.1), s.CosineAnnealingLR(o, 10)]
            ),
            10,
        ),
    }


def _record_schedules(path):
    """<name>.lr [calls + 1, 2] and, where there is one, <name>.momentum: before the first call of step(), then after
    each."""
    arrays = {}
    for name, (optimiser, make, calls) in _schedules().items():
        groups = [{"params": [torch.zeros(1, requires_grad=True)], "lr": lr} for lr in (0.1, 0.02)]
        o = optimiser(groups)
        schedule = make(o)
        rows = {"lr": [], "momentum": []}

        def note():
            rows["lr"].append([g["lr"] for g in o.param_groups])
            rows["momentum"].append([g["betas"][0] if "betas" in g else g.get("momentum", 0) for g in o.param_groups])

        note()
        for _ in range(calls):
            o.step()
            schedule.step()
            note()
        arrays[f"{name}.lr"] = np.array(rows["lr"])
        if "betas" in o.defaults or "momentum" in o.defaults:
            arrays[f"{name}.momentum"] = np.array(rows["momentum"])
    arrays["torch_version"] = version_numbers(torch.__version__)
    write_npz(path, arrays)
    return len(_schedules())


def _plateaus():
    """name: (settings of ReduceLROnPlateau, metrics)."""
    falling = [1.0, 0.9, 0.9, 0.8999, 0.95, 0.9, 0.7, 0.71, 0.72, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7]
    rising = [0.1, 0.2, 0.2, 0.21, 0.22, 0.35, 0.35, 0.36, 0.35, 0.1, 0.36, 0.36, 0.37, 0.47, 0.5, 0.5, 0.5]
    return {
        "defaults": ({}, [1.0] * 25),
        "patience": ({"factor": 0.5, "patience": 2}, falling),
        "cooldown": ({"factor": 0.5, "patience": 1, "cooldown": 3}, falling),
        "relative": ({"factor": 0.3, "patience": 1, "threshold": 0.1}, falling),
        "absolute": ({"factor": 0.3, "patience": 1, "threshold": 0.15, "threshold_mode": "abs"}, falling),
        "max": ({"mode": "max", "factor": 0.7, "patience": 0, "threshold": 0.1}, rising),
        "max_absolute": (
            {"mode": "max", "factor": 0.7, "patience": 0, "threshold": 0.1, "threshold_mode": "abs"},
            rising,
        ),
        "min_lr": ({"factor": 0.1, "patience": 0, "min_lr": 0.005}, [1.0] * 8),
        "eps": ({"factor": 0.5, "patience": 0, "eps": 0.006}, [1.0] * 8),
        "below_zero": ({"factor": 0.5, "patience": 0}, [-1.0, -1.00005, -1.1, -1.1, -1.2]),
        "not_a_number": ({"factor": 0.5, "patience": 0}, [1.0, float("nan"), 0.5, float("inf"), float("nan")]),
    }


def _record_plateaus(path):
    """<name>.metric [calls], <name>.lr [calls,2]: after each call, of groups that begin at 0.1 and 0.02."""
    arrays = {}
    for name, (settings, metrics) in _plateaus().items():
        groups = [{"params": [torch.zeros(1, requires_grad=True)], "lr": lr} for lr in (0.1, 0.02)]
        o = torch.optim.SGD(groups)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(o, **settings)
        rates = []
        for metric in metrics:
            schedule.step(metric)
            rates.append([g["lr"] for g in o.param_groups])
        arrays[f"{name}.metric"], arrays[f"{name}.lr"] = np.array(metrics), np.array(rates)
    arrays["torch_version"] = version_numbers(torch.__version__)
    write_npz(path, arrays)
    return len(_plateaus())


def _record_averages(path):
    """value.<name> [10,3]: of a batch norm's parameters and running statistics; <form>.<name> [10,3]: what AveragedModel
    has of them after each."""
    swa = torch.optim.swa_utils
    forms = {
        "ema": dict(multi_avg_fn=swa.get_ema_multi_avg_fn(0.9)),
        "ema_buffers": dict(multi_avg_fn=swa.get_ema_multi_avg_fn(0.75), use_buffers=True),
        "swa": {},
        "swa_buffers": dict(use_buffers=True),
    }
    names = ("weight", "bias", "running_mean", "running_var")
    values = {n: uniform(f"averages {n}", [10, 3], 0.5, 2) for n in names}
    arrays = {f"value.{n}": v for n, v in values.items()}
    for form, arguments in forms.items():
        model = torch.nn.BatchNorm2d(3).double()
        average = swa.AveragedModel(model, **arguments)
        rows = {n: [] for n in names}
        for i in range(10):
            with torch.no_grad():
                for n in names:
                    getattr(model, n).copy_(torch.tensor(values[n][i]))
            average.update_parameters(model)
            for n in names:
                rows[n].append(getattr(average.module, n).detach().numpy().copy())
        arrays.update({f"{form}.{n}": np.array(v) for n, v in rows.items()})
    arrays["torch_version"] = version_numbers(torch.__version__)
    write_npz(path, arrays)
    return len(forms)


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
    schedules = _record_schedules(folder.parent / "schedules.npz") + _record_plateaus(folder.parent / "plateaus.npz")
    averages = _record_averages(folder.parent / "averaged_model.npz")
    print(f"{len(runs)} optimisers, {schedules} schedules, {averages} averages")
