"""One reference case: a graph is recorded as `.fj` text while PyTorch computes it in f64.

    case = Case("elementwise/exp", rtol=1e-6)
    x = case.param("x", uniform("x", [4]), grad=True)
    case.result(case.exp(x))
    case.write(folder)

Parameters hold f32 (or narrower) values exactly; PyTorch sees them as f64, so what is expected is the exact answer but
for f64 rounding, and the tolerance of the comparison is fusejit's own.
"""

import functools

import numpy as np
import torch

from . import graph_text
from .inputs import from_bf16_bits, to_bf16_bits, uniform
from .meaning import MEANING, ROUNDED_AS_DECLARED, SAME_DTYPE_AS_FIRST
from .npz import version_numbers, write_npz

FLOATS = ("f16", "bf16", "f32", "f64")
_TORCH_NAME = {
    torch.bool: "bool",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
}
_NUMPY_NAME = {"float16": "f16", "float32": "f32", "float64": "f64"}
_NUMPY_NAME.update({str(dtype).removeprefix("torch."): name for dtype, name in _TORCH_NAME.items()})
_NUMPY_TYPE = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
# The first magnitude that a store in this dtype rounds to infinity: the largest number and half a unit more.
_OVERFLOW = {"f16": 65520.0, "bf16": float(2**128 - 2**119), "f32": float(2**128 - 2**103), "f64": np.inf}


class Value:
    def __init__(self, name, tensor, dtype, nhwc):
        self.name, self.tensor, self.dtype, self.nhwc = name, tensor, dtype, nhwc

    @property
    def shape(self):
        return list(self.tensor.shape)


class Case:
    def __init__(self, name, rtol=1e-6, atol=1e-6, note=""):
        self.name, self.rtol, self.atol, self.note = name, rtol, atol, note
        self.ops, self._lines, self._params, self._results = [], [], [], []
        self._inputs, self._by_grad = {}, []

    def param(self, name, array, grad=False, dtype=None, nhwc=False):
        """A parameter. `dtype` is needed for f16 and bf16 alone, to which f32 values are rounded first."""
        array = np.asarray(array)
        dtype = dtype or _NUMPY_NAME[array.dtype.name]
        if dtype == "bf16":
            self._inputs[name + ".bf16"] = to_bf16_bits(array)
            array = from_bf16_bits(self._inputs[name + ".bf16"])
        else:
            array = array.astype(_NUMPY_TYPE[dtype]) if dtype in FLOATS else array
            self._inputs[name] = array
        tensor = torch.tensor(array.astype(np.float64) if dtype in FLOATS else array)
        tensor.requires_grad_(grad)
        value = Value(name, tensor, dtype, nhwc)
        self._params.append(value)
        if grad:
            self._by_grad.append(value)
        return value

    def __getattr__(self, op):
        if op not in MEANING:
            raise AttributeError(op)
        return functools.partial(self._record, op)

    def _record(self, op, *operands, nhwc=None, **given):
        attributes = graph_text.filled_in(op, given)
        values = [v for v in operands if isinstance(v, Value)]
        # The condition of a `where` says nothing about its numbers.
        dtypes = [v.tensor.dtype for v in values]
        dtype_of_numbers = next((d for d in dtypes if d != torch.bool), *dtypes[:1]) if dtypes else None
        tensors = [v.tensor if isinstance(v, Value) else _as_tensor(v, dtype_of_numbers) for v in operands]
        declared = {"source": values[0].dtype} if op in ROUNDED_AS_DECLARED else {}
        tensor = MEANING[op](*tensors, **attributes, **declared)
        dtype = _result_dtype(op, tensor, values, attributes)
        if nhwc is None:
            nhwc = tensor.dim() == 4 and any(v.nhwc for v in values)
        value = Value(str(len(self._lines)), tensor, dtype, nhwc)
        spelled = ["%" + v.name if isinstance(v, Value) else graph_text.number(v) for v in operands]
        self._lines.append(
            graph_text.node(value.name, op, spelled, attributes, graph_text.type_of(dtype, value.shape, nhwc))
        )
        if op not in self.ops:
            self.ops.append(op)
        return value

    def result(self, *values):
        self._results.extend(values)

    def text(self):
        params = ", ".join(f"%{p.name}: {graph_text.type_of(p.dtype, p.shape, p.nhwc)}" for p in self._params)
        note = "".join(f"; {line}\n" for line in self.note.splitlines())
        body = "\n".join(self._lines)
        returned = ", ".join("%" + r.name for r in self._results)
        graph_name = self.name.replace("/", "_").replace("-", "_")
        return f"{note}graph @{graph_name}({params}) {{\n{body}\n  return {returned}\n}}\n"

    def expected(self):
        """The arrays of the results, then of the gradients. Adds the cotangents to the inputs."""
        arrays = {f"out{i}": _expected_array(r.tensor, r.dtype) for i, r in enumerate(self._results)}
        if self._by_grad:
            arrays.update(self._gradients())
        return arrays

    def _gradients(self):
        outputs, cotangents = [], []
        for i, result in enumerate(self._results):
            if result.dtype not in FLOATS:
                continue
            cotangent = self._cotangent(f"d_out{i}", result)
            if result.tensor.requires_grad:
                outputs.append(result.tensor)
                cotangents.append(cotangent)
        wanted = [p.tensor for p in self._by_grad]
        if not outputs:
            grads = [torch.zeros_like(t) for t in wanted]
        else:
            grads = torch.autograd.grad(outputs, wanted, cotangents, allow_unused=True)
            grads = [torch.zeros_like(t) if g is None else g for g, t in zip(grads, wanted)]
        return {f"d_{p.name}": _expected_array(g, p.dtype) for p, g in zip(self._by_grad, grads)}

    def _cotangent(self, name, result):
        # At least ½ in magnitude, so that a cotangent that went missing shows.
        drawn = uniform(self.name + name, result.shape, -1.0, 1.0)
        array = (drawn + np.where(drawn < 0, -0.5, 0.5)).astype(np.float32)
        if result.dtype == "bf16":
            self._inputs[name + ".bf16"] = to_bf16_bits(array)
            array = from_bf16_bits(self._inputs[name + ".bf16"])
        else:
            array = array.astype(_NUMPY_TYPE[result.dtype])
            self._inputs[name] = array
        return torch.tensor(array.astype(np.float64))

    def write(self, root):
        """Writes the three files below `root` and returns the manifest's entry."""
        expected = self.expected()
        expected["torch_version"] = version_numbers(torch.__version__)
        path = root / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(path.name + ".fj").write_text(self.text(), encoding="ascii")
        if self._inputs:
            write_npz(path.with_name(path.name + ".in.npz"), self._inputs)
        write_npz(path.with_name(path.name + ".out.npz"), expected)
        return {
            "graph": self.name + ".fj",
            "inputs": self.name + ".in.npz" if self._inputs else None,
            "expected": self.name + ".out.npz",
            "grad": [p.name for p in self._by_grad],
            "rtol": self.rtol,
            "atol": self.atol,
            "ops": self.ops,
        }


def _as_tensor(number, dtype):
    """A number operand: rounded to the compute type, which is f32 wherever these cases use one."""
    if dtype == torch.float64:
        return torch.tensor(float(np.float32(number)), dtype=torch.float64)
    return torch.tensor(number, dtype=dtype or torch.float64)


def _result_dtype(op, tensor, values, attributes):
    if tensor.dtype in _TORCH_NAME:
        return _TORCH_NAME[tensor.dtype]
    if "dtype" in attributes:
        return attributes["dtype"]
    floats = [v.dtype for v in values if v.dtype in FLOATS]
    if op == "batch_norm_train_weight_grad":
        return "f64" if floats[0] == "f64" else "f32"
    if op in SAME_DTYPE_AS_FIRST or len(set(floats)) == 1:
        return floats[0]
    return "f64" if "f64" in floats else "f32"


def _expected_array(tensor, dtype):
    array = tensor.detach().numpy()
    if dtype not in FLOATS:
        return array
    too_large = np.abs(array) >= _OVERFLOW[dtype]
    return np.where(too_large, np.copysign(np.inf, array), array)
