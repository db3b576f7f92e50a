"""What the target's TFLM is known not to run, whatever the size of the arena.

    element types     CONV_2D of float32 and int8     `element_types`
    number of axes    STRIDED_SLICE of five axes      its Prepare fails
    variables         READ_VARIABLE without a value   it copies nothing, and leaves rubbish

Only what is known is refused: an operator that TFLM does not know is not judged. This module must
not know plans.
"""

from __future__ import annotations

from collections.abc import Iterable

from tflm_planner.model.ir import Op
from tflm_planner.tflm.element_types import refusal
from tflm_planner.tflm.targets import Target

MOST_AXES = {
    "BROADCAST_TO": 5,
    "L2_NORMALIZATION": 4,
    "SLICE": 5,
    "STRIDED_SLICE": 4,
    "TRANSPOSE": 5,
}
"""Axes of operands and results above which Prepare fails. All other operators that the converter
makes of tensors of five or six axes ran on the wheel. Source: tensorflow/lite/micro/kernels of
tflite-micro 90b983c, tried on the wheel by `tests/tflm/test_what_cannot_run`."""
_FEWER_AXES = (
    "merge axes that lie side by side, by a RESHAPE before and behind it, or leave it to the "
    "application"
)
_FREEZE = (
    "its weights are not in the file. Freeze the function's variables before it is converted "
    "(convert_variables_to_constants_v2)"
)


def cannot_run(ops: Iterable[Op], target: Target) -> list[str]:
    """The operators that the target's TFLM cannot run: one message for each reason, with the first
    operator that has it, its number, and what to do."""
    ops = list(ops)
    variables = _Variables(ops)
    labels_by_reason: dict[str, list[str]] = {}
    for number, op in enumerate(ops):
        reasons = (refusal(op, target), _of_axes(op), variables.refusal(op))
        for reason in filter(None, reasons):
            labels_by_reason.setdefault(reason, []).append(f"{op.label} (number {number})")
    return [
        f"{places[0]}{f' and {len(places) - 1} more' if places[1:] else ''}: {reason}"
        for reason, places in labels_by_reason.items()
    ]


def _of_axes(op: Op) -> str | None:
    """The reason why an operator has too many axes for its kernel; None if it has not."""
    most = MOST_AXES.get(op.kind)
    tensors = (*op.inputs[:1], *op.outputs)
    axes = max((len(t.shape) for t in tensors if t is not None and t.shape), default=0)
    if most is None or axes <= most:
        return None
    return f"{op.kind} of {axes} axes: TFLM's kernel takes {most} at most; {_FEWER_AXES}"


class _Variables:
    """The resource variables of a model that an operator writes."""

    def __init__(self, ops: list[Op]) -> None:
        written = [_variable(op) for op in ops if op.kind == "ASSIGN_VARIABLE"]
        self._written = {*written}

    def refusal(self, op: Op) -> str | None:
        """The reason why an operator reads nothing; None if it reads no variable, or one that has
        a value, or may have."""
        if op.kind != "READ_VARIABLE" or None in self._written:
            return None
        variable = _variable(op)
        if variable is None or variable in self._written:
            return None
        return f"READ_VARIABLE of a variable that no operator writes: {_FREEZE}"


def _variable(op: Op) -> tuple[bytes | None, bytes | None] | None:
    """Container and name of the variable that an operator reads or writes; None if its handle
    comes from elsewhere, as from a caller."""
    handle = op.inputs[0] if op.inputs else None
    maker = None if handle is None else handle.producer
    return maker.options.variable if maker is not None and maker.kind == "VAR_HANDLE" else None
