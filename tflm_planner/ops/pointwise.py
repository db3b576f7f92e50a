"""Operators that compute each element from the operands' elements at the same index.

In every kernel library examined so far, their kernels read element i before they write element i,
so the result may lie exactly on an operand of the same type and shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.model.ir import Op
from tflm_planner.ops.spec import OpSpec, Sharing, register


def _onto_operands(op: Op) -> Iterator[Sharing]:
    (result,) = op.outputs
    for operand in dict.fromkeys(op.operands()):
        same_shape = (operand.shape or ()) == (result.shape or ())
        if operand.type == result.type and same_shape and not operand.is_constant:
            yield Sharing(operand, result, distance=0, exclusive=True)


def _onto_first(op: Op) -> Iterator[Sharing]:
    (first, *_), (result,) = op.operands(), op.outputs
    return (s for s in _onto_operands(op) if s.operand is first and s.result is result)


register(OpSpec(_onto_operands, operands=2), "ADD", "SUB", "MUL")
register(
    OpSpec(_onto_first),
    "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "QUANTIZE", "SOFTMAX",
)  # fmt: skip
