"""Depthwise convolutions of int4 that CMSIS-NN computes wrong.

    arm_depthwise_conv_s4, for a dilation, several images or a depth multiplier:

    weights, 3 channels    |0 0|0 1|1 1|2 2|2 -|      tap 1 begins in the middle of a byte
                            tap 0^ tap 1^

With an odd number of channels it counts half bytes from the first tap that lies inside of the
image, as if no tap had been left out before, and with a multiplier it counts too few. So results
at the border are wrong, or all are. An even number of channels is right, and so is
arm_depthwise_conv_s4_opt, which computes all else. Read from CMSIS-NN 4ab83cc, observed on emulated
boards. This module must not know tiles.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.ops.window import Window, window_of
from tflm_planner.tflm.kernels.operands import element_type


def computes_packed_depthwise(op: Op) -> bool:
    """Whether CMSIS-NN, where it reads packed int4, computes `op` right. True for all but int4
    depthwise convolutions."""
    window = window_of(op)
    return window is None or computes_part(op, window.batch, window.channels[0])


def computes_part(op: Op, batch: int, channels: int) -> bool:
    """Whether CMSIS-NN computes `batch` images and `channels` input channels of `op` right. Some of
    their rows or columns have padding only if `op` has."""
    if op.kind != "DEPTHWISE_CONV_2D" or channels % 2 == 0 or element_type(op, 1) != "int4":
        return True
    window = window_of(op)
    if window is None or window.kernel == (1, 1):
        return True
    multiplied = window.channels[1] > window.channels[0]
    if batch == 1 and window.undilated and not multiplied:
        return True
    return not multiplied and not _has_padding(window)


def _has_padding(window: Window) -> bool:
    for axis in (0, 1):
        reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1
        last = (window.output[axis] - 1) * window.stride[axis] - window.pad[axis] + reach
        if window.pad[axis] > 0 or last > window.input[axis]:
            return True
    return False
