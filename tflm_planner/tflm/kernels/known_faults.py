"""Kernels of a target that compute an operator wrong, planned or not.

Runtimes on this machine have other kernels, so that no comparison here can show it; the user
finds a model that is right on the desk and wrong on the board. Each entry was read in the sources
and seen on emulated boards:

    TRANSPOSE of int8, 5 dimensions or more   CMSIS-NN: refused inside, reported as done, and never
                                              written (TFLM's kernels/cmsis_nn/transpose.cc)
    TRANSPOSE of int8 that turns nothing      CMSIS-NN swaps two axes, and on MVE the last two of
                                              four: it looks at the first ones only
    1 x n convolutions of one row             CMSIS-NN, MVE: see `single_rows`

Planning keeps such operators as they are, but for transpositions whose axes can be merged out of
sight (`transforms.collapse_axes`). It must not know plans.
"""

from __future__ import annotations

from collections.abc import Iterable

from tflm_planner.model.ir import Op
from tflm_planner.ops.constants import integers
from tflm_planner.ops.window import window_of
from tflm_planner.tflm.kernels.single_rows import is_right_alone
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import can

MOST_TURNED = 4
"""Dimensions that arm_transpose_s8 knows."""


def known_faults(ops: Iterable[Op], target: Target) -> list[str]:
    """What `target` computes wrong, why, and what to do: each reason once, with the first of its
    operators."""
    found: dict[str, list[str]] = {}
    for op in ops:
        if (reason := _why_wrong(op, target)) is not None:
            found.setdefault(reason, []).append(op.label)
    return [
        f"{labels[0]}{f' and {len(labels) - 1} more' if labels[1:] else ''}: {reason}"
        for reason, labels in found.items()
    ]


def _why_wrong(op: Op, target: Target) -> str | None:
    if target.kernels != "cmsis-nn":
        return None
    turned = op.inputs[0] if _turns_by_cmsis_nn(op, target) else None
    shape = () if turned is None else turned.shape or ()
    if len(shape) > MOST_TURNED:
        return (
            "CMSIS-NN turns int8 tensors of 4 dimensions at most; TFLM leaves this one's result "
            "unwritten and reports no error, so that the model computes garbage on this target, "
            "planned or not; merge axes that stay together, or take the reference kernel"
        )
    helium = target.extension == "mve"
    if len(shape) in ((2, 4) if helium else (2,)) and min(shape[-2:]) > 1 and _turns_nothing(op):
        return (
            "it turns nothing, where CMSIS-NN swaps the last two axes (arm_transpose_s8), planned "
            "or not; leave it out"
        )
    if helium and _is_wrong_row(op):
        return (
            "CMSIS-NN for Helium computes this 1 x n convolution of one row wrong "
            "(arm_convolve_1_x_n_s8), planned or not; another padding or stride, or the reference "
            "kernel, is right"
        )
    return None


def _turns_by_cmsis_nn(op: Op, target: Target) -> bool:
    if op.kind != "TRANSPOSE" or not op.inputs or op.inputs[0] is None:
        return False
    return op.inputs[0].type_name == "int8" and can(target, "turns_by_cmsis_nn")


def _turns_nothing(op: Op) -> bool:
    order = integers(op.inputs[1]) if len(op.inputs) > 1 else None
    return order is not None and list(order) == sorted(order)


def _is_wrong_row(op: Op) -> bool:
    window = window_of(op)
    if window is None or window.input[0] != 1:
        return False
    return not is_right_alone(op, window.input[1], window.output[1], window.pad[1])
