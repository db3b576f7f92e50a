"""Writes a CONCATENATION of more operands than TFLM's kernel takes as several.

    h1, ..., h16 --CONCATENATION-->                 what LSTM and GRU of PyTorch give, and the last
    h1, ..., h7 --CONCATENATION--> h1:7             layers of dense blocks
    h1:7, h8, ..., h16 --CONCATENATION-->

As few as possible are joined first, and copied twice. This module must not know memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.tflm.refusals import MOST_JOINED, joins_too_many
from tflm_planner.transforms.substitutes.each import replace_each


def join_in_parts(model: Model) -> list[str]:
    """Replace them; returns a note if there were any."""
    replaced = replace_each(model, _replace)
    if not replaced:
        return []
    return [
        f"{replaced} CONCATENATION of more than {MOST_JOINED} operands, which TFLM refuses, made "
        "in parts"
    ]


def _replace(model: Model, graph: Graph, op: Op) -> bool:
    """Write one with fewer operands; False if it is another operator, or that is impossible."""
    if not joins_too_many(op) or op.options.activation:
        return False
    result, operands = op.outputs[0], op.operands()
    rank = len(result.shape or ())
    axis = op.options.axis
    if len(operands) < len(op.inputs) or not -rank <= axis < rank:
        return False
    axis %= rank
    if result.is_variable or not all(_joins(t, result, axis) for t in operands):
        return False
    if sum((t.shape or ())[axis] for t in operands) != (result.shape or ())[axis]:
        return False
    draft = Draft(model, graph)
    while len(operands) > MOST_JOINED:
        operands = [
            _joined(draft, op, part, axis) if len(part) > 1 else part[0]
            for part in parts_of(operands)
        ]
    draft.clone(op, [*operands], [result])
    draft.commit([op])
    return True


def _joins(operand: Tensor, result: Tensor, axis: int) -> bool:
    """Whether an operand can be a part of a result: equal numbers, and the same sizes elsewhere."""
    if not same_values(operand, result) or len(operand.shape or ()) != len(result.shape or ()):
        return False
    sizes = zip(operand.shape or (), result.shape or (), strict=True)
    return all(a == b for at, (a, b) in enumerate(sizes) if at != axis)


def parts_of(operands: list[Tensor]) -> Iterator[list[Tensor]]:
    """Yield the operands in parts of at most `MOST_JOINED`, the first ones together, of which as
    few as leave `MOST_JOINED` parts, if that is possible."""
    surplus, at = len(operands) - MOST_JOINED, 0
    while at < len(operands):
        size = 1 + max(0, min(surplus, MOST_JOINED - 1, len(operands) - at - 1))
        yield operands[at : at + size]
        surplus -= size - 1
        at += size


def _joined(draft: Draft, op: Op, part: list[Tensor], axis: int) -> Tensor:
    shape = list(op.outputs[0].shape or ())
    shape[axis] = sum((t.shape or ())[axis] for t in part)
    joined = draft.tensor(op.outputs[0], f"{part[0].name}:{len(part)}", tuple(shape))
    draft.clone(op, [*part], [joined])
    return joined
