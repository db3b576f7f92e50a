"""How often the body of a WHILE runs, if the graph determines it.

    condition: LESS(i, limit), or LESS(limit, i) for a falling counter
    body:      i' = ADD(i, step)
    caller:    i starts at a constant

This module must not know costs.
"""

from __future__ import annotations

import numpy as np

from tflm_planner.model.ir import Graph, Op, Tensor
from tflm_planner.model.options import BODY, CONDITION

MOST_TURNS = 1_000_000
_INTEGERS = {"int32": "<i4", "int64": "<i8"}


def turns(op: Op) -> int | None:
    """How often the body of a counting WHILE runs; None if it does not count as drawn above."""
    conditions, bodies = op.graphs.get(CONDITION), op.graphs.get(BODY)
    if not conditions or not bodies or len(conditions[0].outputs) != 1:
        return None
    condition, body = conditions[0], bodies[0]
    test = condition.outputs[0].producer
    if test is None or test.kind != "LESS" or len(test.operands()) != 2:
        return None
    low, high = test.operands()
    falling = _position(condition, low) is None
    counter, limit = (high, low) if falling else (low, high)
    at = _position(condition, counter)
    if at is None or at >= min(len(op.inputs), len(body.outputs), len(body.inputs)):
        return None
    first, last = _scalar(op.inputs[at]), _scalar(limit)
    step = _step(body.inputs[at], body.outputs[at])
    if first is None or last is None or not step or (step < 0) is not falling:
        return None
    return min(max(0, -(-(last - first) // step)), MOST_TURNS)


def _position(graph: Graph, tensor: Tensor) -> int | None:
    return next((i for i, t in enumerate(graph.inputs) if t is tensor), None)


def _step(before: Tensor, after: Tensor) -> int | None:
    op = after.producer
    if op is None or op.kind != "ADD" or len(op.operands()) != 2:
        return None
    x, y = op.operands()
    return _scalar(y) if x is before else _scalar(x) if y is before else None


def _scalar(tensor: Tensor | None) -> int | None:
    if tensor is None or tensor.buffer.data is None or tensor.elements != 1:
        return None
    dtype = _INTEGERS.get(tensor.type_name)
    return None if dtype is None else int(np.frombuffer(bytes(tensor.buffer.data), dtype)[0])
