"""Reads the `.fj` text form (docs/ops.md, "Types and text") and computes it in PyTorch, in f64.

    graph = read(path.read_text())
    results = graph.compute({"x": tensor, ...})    # by the names of parameters; any PyTorch functions may follow
"""

import dataclasses
import re

import torch

from . import graph_text
from .meaning import MEANING, ROUNDED_AS_DECLARED

_HEAD = re.compile(r"graph\s+@\w+\s*\((.*?)\)\s*\{(.*)\}\s*$", re.S)
_PARAM = re.compile(r"%(\w+)\s*:\s*(\w+)\[")
_NODE = re.compile(r"%(\w+) = (\w+)\((.*?)\)(?: \{(.*)\})?(?: @\d+)? : (\w+)\[([\d,]*)\](?::nhwc)?$")
_ATTRIBUTE = re.compile(r"(\w+)=(\[[^\]]*\]|[^,]+)")


def _number(text):
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _attribute(text):
    if text.startswith("["):
        return [_number(part) for part in text[1:-1].split(",") if part.strip()]
    if text in ("true", "false"):
        return text == "true"
    return _number(text) if re.fullmatch(r"-?(\d.*|inf|nan)", text) else text


@dataclasses.dataclass
class Node:
    name: str
    op: str
    operands: list
    attributes: dict
    dtype: str
    shape: list


@dataclasses.dataclass
class Graph:
    parameters: dict  # dtypes by name
    nodes: list
    results: list  # names

    def compute(self, values):
        dtypes, values = dict(self.parameters), dict(values)
        for node in self.nodes:
            value = _compute(node, values, dtypes)
            if list(value.shape) != node.shape:
                raise ValueError(f"%{node.name}: PyTorch has {list(value.shape)} where the text says {node.shape}")
            values[node.name], dtypes[node.name] = value, node.dtype
        return [values[name] for name in self.results]


def _compute(node, values, dtypes):
    tensors = [values[o[1:]] for o in node.operands if o.startswith("%")]
    numbers_are = next((t.dtype for t in tensors if t.dtype != torch.bool), torch.float64)
    operands = [values[o[1:]] if o.startswith("%") else torch.tensor(_number(o), dtype=numbers_are) for o in node.operands]
    declared = {"source": dtypes[node.operands[0][1:]]} if node.op in ROUNDED_AS_DECLARED else {}
    return MEANING[node.op](*operands, **node.attributes, **declared)


def read(text):
    text = re.sub(r";[^\n]*", "", text)
    parameters, body = _HEAD.search(text).groups()
    nodes, results = [], []
    for line in filter(None, map(str.strip, body.splitlines())):
        if line.startswith("return "):
            results = re.findall(r"%(\w+)", line)
            continue
        name, op, operands, attributes, dtype, shape = _NODE.match(line).groups()
        given = {key: _attribute(value) for key, value in _ATTRIBUTE.findall(attributes or "")}
        nodes.append(
            Node(
                name,
                op,
                [part.strip() for part in operands.split(",") if part.strip()],
                graph_text.filled_in(op, given),
                dtype,
                [int(n) for n in shape.split(",") if n],
            )
        )
    return Graph({name: dtype for name, dtype in _PARAM.findall(parameters)}, nodes, results)
