"""What CMSIS-NN computes wrongly, planned or not.

Each entry was read in the sources and observed on emulated boards:

    TRANSPOSE of int8, 5 dimensions or more   CMSIS-NN refuses it, TFLM reports success, and the
                                              result is not written (TFLM's
                                              kernels/cmsis_nn/transpose.cc)
    TRANSPOSE of int8 that moves no axis      two axes are swapped, and on MVE the last two of
                                              four: the kernel checks the first ones only
    1 x n convolutions of one row             with MVE: see `single_rows`
    sums of transposed convolutions, and      see `faulty_sums`
    of some that have no bias

Planning leaves such operators as they are, except for transpositions that become right once some of
their axes are merged (`transforms.collapse_axes`). This module must not know plans.
"""

from __future__ import annotations

from datetime import date

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op
from tflm_planner.ops.window import window_of
from tflm_planner.tflm.kernels.libraries.cmsis_nn.faulty_sums import fault_of_sums
from tflm_planner.tflm.kernels.libraries.cmsis_nn.single_rows import computes_single_row
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.versions import day_of

MAX_TRANSPOSE_AXES = 4
"""Largest number of dimensions that arm_transpose_s8 supports."""
_TRANSPOSES_SINCE = date(2025, 3, 20)
"""The day on which TRANSPOSE of int8 went to CMSIS-NN (tflite-micro 392b78f2f)."""


def fault_of(op: Op, target: Target) -> str | None:
    """Why CMSIS-NN computes `op` wrongly on the target, and what to do; None if it is right."""
    data = op.inputs[0] if _is_transposed_by_cmsis_nn(op, target) else None
    shape = () if data is None else data.shape or ()
    if len(shape) > MAX_TRANSPOSE_AXES:
        return (
            "CMSIS-NN turns int8 tensors of 4 dimensions at most; TFLM leaves this one's result "
            "unwritten and reports no error, so that the model computes garbage on this target, "
            "planned or not; merge axes that stay together, or take the reference kernel"
        )
    helium = target.extension == "mve"
    if len(shape) in ((2, 4) if helium else (2,)) and min(shape[-2:]) > 1 and _keeps_order(op):
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
    return fault_of_sums(op, target)


def _is_transposed_by_cmsis_nn(op: Op, target: Target) -> bool:
    if op.kind != "TRANSPOSE" or not op.inputs or op.inputs[0] is None:
        return False
    return op.inputs[0].type_name == "int8" and day_of(target) >= _TRANSPOSES_SINCE


def _keeps_order(op: Op) -> bool:
    order = integers(op.inputs[1]) if len(op.inputs) > 1 else None
    return order is not None and list(order) == sorted(order)


def _is_wrong_row(op: Op) -> bool:
    window = window_of(op)
    if window is None or window.input[0] != 1:
        return False
    return not computes_single_row(op, window.input[1], window.output[1], window.pad[1])
