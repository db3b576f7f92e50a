"""Sums that CMSIS-NN adds up wrongly, or writes to wrong places, planned or not.

    TRANSPOSE_CONV of int8, up to 16 channels     pad 1, stride 2: both rows of the first turn are
    or a stride above 2 (arm_transpose_conv_s8)   left out, where only one is padding
    convolution in groups, int8, no bias          the second group's bias begins at address 0 plus
    depthwise convolution on MVE of more than     a group; so does that of channels from the 125th
    124 channels, no bias
    depthwise convolution of int4                 see `packed_depthwise`

Read from CMSIS-NN 4ab83cc; all observed on emulated boards. This module must not know plans.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.ops.window import low_padding, window_of
from tflm_planner.tflm.kernels.libraries.cmsis_nn.packed_depthwise import computes_packed_depthwise
from tflm_planner.tflm.kernels.libraries.cmsis_nn.scratch import (
    MVE_DEPTHWISE_CHANNELS,
    REVERSE_ABOVE,
)
from tflm_planner.tflm.kernels.operands import dimension, element_type
from tflm_planner.tflm.target import Target

_ADD_A_BIAS = "planned or not; give it a bias of zeros"


def fault_of_sums(op: Op, target: Target) -> str | None:
    """Why CMSIS-NN computes the sums of `op` wrongly on the target, and what to do; None if it is
    right."""
    if target.is_arduino_2023:
        return None
    if op.kind == "TRANSPOSE_CONV":
        return fault_of_transposed(op)
    if not computes_packed_depthwise(op):
        return (
            "CMSIS-NN takes wrong int4 weights for an odd number of channels "
            "(arm_depthwise_conv_s4), planned or not; an even number, int8 weights, or the "
            "reference kernel, is right"
        )
    has_bias = len(op.inputs) > 2 and op.inputs[2] is not None
    if has_bias or element_type(op) != "int8":
        return None
    window = window_of(op)
    if window is None:
        return None
    if op.kind == "CONV_2D" and window.groups > 1:
        return (
            f"CMSIS-NN adds garbage to groups but the first where there is no bias, {_ADD_A_BIAS}"
        )
    blocks = op.kind == "DEPTHWISE_CONV_2D" and window.channels[0] > MVE_DEPTHWISE_CHANNELS
    single = window.channels[0] == window.channels[1] and window.undilated and window.batch == 1
    if blocks and single and target.extension == "mve":
        return (
            f"CMSIS-NN for Helium adds garbage to channels beyond the first "
            f"{MVE_DEPTHWISE_CHANNELS} where there is no bias, {_ADD_A_BIAS}"
        )
    return None


def fault_of_transposed(op: Op) -> str | None:
    """The same for a TRANSPOSE_CONV."""
    if len(op.inputs) < 3 or element_type(op, 2) != "int8" or op.options.is_absent:
        return None
    weights, data = op.inputs[1], op.inputs[2]
    if weights is None or data is None:
        return None
    if any(len(t.shape or ()) != 4 for t in (weights, data, op.outputs[0])):
        return None
    kernel_h, kernel_w = dimension(weights, 1), dimension(weights, 2)
    height, depth, rows = dimension(data, 1), dimension(data, 3), dimension(op.outputs[0], 1)
    stride_h, stride_w = op.options.stride
    if min(stride_h, stride_w) < 1 or (max(stride_h, stride_w) <= 2 and depth > REVERSE_ABOVE):
        return None
    valid = op.options.padding == VALID_PADDING
    pad = low_padding(rows, kernel_h, stride_h, 1, valid)
    if pad % stride_h or _rows_written(height, rows, kernel_h, stride_h, pad) != rows:
        return (
            "CMSIS-NN writes another number of rows than this transposed convolution has "
            "(arm_transpose_conv_s8), planned or not; another kernel height or padding, more than "
            "16 channels at a stride of 2, or the reference kernel, is right"
        )
    if stride_w > max(kernel_w, stride_h):
        return (
            "CMSIS-NN writes beyond the scratch that it asks for in this transposed convolution, "
            "whose stride in width exceeds its kernel's width and its stride in height, planned "
            "or not; a wider kernel, or the reference kernel, is right"
        )
    return None


def _rows_written(height: int, rows: int, kernel: int, stride: int, pad: int) -> int:
    """Rows of the result that its loops write."""
    turns = max(height + -(pad // stride), 0) * stride
    left_over = range(height * stride, height * stride + max(kernel - stride, 0))
    return turns + sum(pad <= row < pad + rows for row in left_over)
