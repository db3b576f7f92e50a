"""WHILE: its results start as copies of its operands and end as the outputs of its body.

A copy is skipped if its source and destination lie at the same address. `tflm.control_flow` says
which tensors inside the called graphs can also lie there.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.options import BODY
from tflm_planner.ops.spec import OpSpec, Sharing, register


def steady(op: Op, variable: int) -> bool:
    """Whether the body of a WHILE returns a variable unchanged."""
    bodies = op.graphs.get(BODY, [])
    if len(bodies) != 1 or max(variable, 0) >= min(len(bodies[0].inputs), len(bodies[0].outputs)):
        return False
    return bodies[0].inputs[variable] is bodies[0].outputs[variable]


def _sharings_of_loop(op: Op) -> Iterator[Sharing]:
    for i, (operand, result) in enumerate(zip(op.inputs, op.outputs, strict=False)):
        if operand is not None and not operand.is_constant and _alike(operand, result):
            yield Sharing(operand, result, 0, exclusive=False, same_bytes=steady(op, i))


def _alike(a: Tensor, b: Tensor) -> bool:
    return a.type == b.type and a.nbytes == b.nbytes


register(OpSpec(_sharings_of_loop, many_results=True), "WHILE")
