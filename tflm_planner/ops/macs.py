"""Multiply-accumulates of operators, computed from their shapes alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tflm_planner.model.ir import Op
from tflm_planner.ops.axes import axis_map, shape_of


def macs(op: Op) -> int:
    """Multiply-accumulates of one run; 0 for operators that are not sums of products."""
    if not op.outputs or len(op.inputs) < 2:
        return 0
    weights, out = shape_of(op.inputs[1]), op.outputs[0].elements
    if op.kind in ("CONV_2D", "FULLY_CONNECTED"):
        return out * math.prod(weights[1:])
    if op.kind == "DEPTHWISE_CONV_2D":
        return out * math.prod(weights[1:3])
    if op.kind == "TRANSPOSE_CONV" and len(op.inputs) > 2:
        data = op.inputs[2]
        return 0 if data is None else data.elements * math.prod(weights[:3])
    if op.kind == "BATCH_MATMUL":
        summed = [shape_of(op.inputs[operand])[axis] for operand, axis in axis_map(op).reduces]
        return out * summed[0] if summed else 0
    return 0


def total_macs(ops: Sequence[Op] | Iterator[Op]) -> int:
    """Multiply-accumulates of operators, each of which runs once."""
    return sum(macs(op) for op in ops)
