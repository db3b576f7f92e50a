"""Terms of an operator that computes every element alike, from the elements that broadcasting pairs
with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES, Residues, add
from tflm_planner.ops.terms.parameters import all_of
from tflm_planner.ops.terms.values import InexpressibleError, Values


def mixed_alike(call: OpCall) -> Values:
    """Mix each operand by its index, add them up, and mix the sum."""
    name = all_of(call.op, (*call.op.inputs, *call.op.outputs))
    return mixed_as(call, name, call.operands, call.shape)


def mixed_as(
    call: OpCall,
    name: tuple[object, ...],
    operands: Sequence[Values | None],
    shape: tuple[int, ...],
) -> Values:
    """What an operator whose key is `name`, as `parameters.all_of` makes it, makes of these
    operands."""
    together: Residues | None = None
    if len(operands) == 1 and operands[0] is not None:
        return call.mix(call.symbols.elements(operands[0]), *name).reshape(shape)
    for i, values in enumerate(operands):
        if values is not None:
            mixed = call.mix(call.symbols.elements(values), "operand", i, *name).data
            mixed = mixed.reshape(LANES, *(1 for _ in range(len(shape) - mixed.ndim + 1)),
                                  *mixed.shape[1:])  # fmt: skip
            together = mixed if together is None else add(together, mixed)
    if together is None or not _fits(together.shape[1:], shape):
        raise InexpressibleError(f"{call.op.label} has operands of other shapes than its result")
    return call.mix(np.broadcast_to(together, (LANES, *shape)), *name)


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(shape) == len(target) and all(
        a in (1, b) for a, b in zip(shape, target, strict=True)
    )
