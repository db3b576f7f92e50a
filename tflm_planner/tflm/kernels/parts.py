"""A part of an operator, made to ask a kernel library what it would need.

    CONV_2D  data (1, 8, 8, 4), filter (64, 3, 3, 4), result (1, 8, 8, 64)
    part_of(op, axis=3, size=16):  filter (16, 3, 3, 4), result (1, 8, 8, 16)

It has the shapes of a part, but no data of its own: enough to compute figures, not to be run.
"""

from __future__ import annotations

from dataclasses import replace

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.axes import axis_map


def part_of(op: Op, axis: int, size: int) -> Op | None:
    """`op` reduced to the first `size` elements of its result along an axis; None if it cannot be
    split along that axis."""
    links = axis_map(op).links_of(axis) if len(op.outputs) == 1 else []
    if not links:
        return None
    operands = list(op.inputs)
    for link in links:
        operand = operands[link.operand]
        if operand is not None:
            low, high = link.rule.needs((0, size), (operand.shape or ())[link.axis])
            operands[link.operand] = _resize(operand, link.axis, max(high - low, 1))
    return replace(op, inputs=operands, outputs=[_resize(op.outputs[0], axis, size)])


def _resize(tensor: Tensor, axis: int, size: int) -> Tensor:
    shape = tensor.shape or ()
    return replace(tensor, shape=(*shape[:axis], size, *shape[axis + 1 :]))
