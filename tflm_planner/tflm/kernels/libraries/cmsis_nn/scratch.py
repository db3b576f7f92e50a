"""Scratch of the CMSIS-NN kernels: what their *_get_buffer_size functions return.

    extension   none: Cortex-M0+, M3       dsp: M4, M7, M33       mve: M55, M85

Read from CMSIS-NN 4ab83cc (the commit that TFLM pins) compiled with GCC, and from the CMSIS-NN
of August 2022 in the Arduino library. This module must not know where scratch is placed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.ops.window import WindowGeometry, low_paddings
from tflm_planner.support.units import align_up
from tflm_planner.tflm.kernels.libraries.cmsis_nn.persistent_allocations import (
    keeps_row_sums,
    needs_row_sums,
)
from tflm_planner.tflm.kernels.libraries.reference.persistent_allocations import runs_as_convolution
from tflm_planner.tflm.kernels.libraries.reference.scratch import lstm_gate_bytes
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.target import Target

MVE_DEPTHWISE_CHANNELS = 124
"""MVE computes so many channels of a depthwise convolution at a time."""
_MVE_SPREAD_ABOVE = 1
"""MVE runs a depthwise convolution of one channel as an ordinary one if it has more output channels
than this."""
REVERSE_ABOVE = 16
"""A transposed convolution with more input channels runs as a convolution with a reversed
filter."""


@dataclass(frozen=True, slots=True)
class _FilterWindow(WindowGeometry):
    """The window of a convolution. kernel_depth: input channels of a filter."""

    kernel_depth: int

    @property
    def column(self) -> int:
        """Elements under the window."""
        return self.kernel[0] * self.kernel[1] * self.channels[0]

    @property
    def pointwise(self) -> bool:
        """arm_nn_is_convolve_1x1."""
        small = self.kernel == (1, 1) and self.pad == (0, 0)
        return small and self.undilated and self.channels[0] == self.kernel_depth

    @property
    def row(self) -> bool:
        """arm_nn_is_convolve_1_x_n."""
        flat = self.input[0] == 1 and self.kernel[0] == 1 and self.dilation[1] == 1
        return (
            flat
            and self.stride[1] * self.channels[0] % 4 == 0
            and self.channels[0] == self.kernel_depth
        )


def _window(op: Op) -> _FilterWindow | None:
    data, weights, result, options = op.inputs[0], op.inputs[1], op.outputs[0], op.options
    if data is None or weights is None:
        return None
    shapes = [_shape_of_rank_4(t) for t in (data, weights, result)]
    if not all(map(any, shapes)):
        return None
    (batch, *image, depth), (_, kernel_h, kernel_w, kernel_depth), (_, *output, out_depth) = shapes
    stride, dilation, is_valid = options.stride, options.dilation, options.padding == VALID_PADDING
    return _FilterWindow(
        batch, (image[0], image[1]), (output[0], output[1]), (depth, out_depth),
        (kernel_h, kernel_w), stride, dilation,
        low_paddings(image, (kernel_h, kernel_w), stride, dilation, is_valid),
        kernel_depth,
    )  # fmt: skip


def _shape_of_rank_4(tensor: Tensor) -> tuple[int, int, int, int]:
    """The shape of a tensor of rank 4; zeros for others."""
    shape = tensor.shape or ()
    return (shape[0], shape[1], shape[2], shape[3]) if len(shape) == 4 else (0, 0, 0, 0)


def convolution(op: Op, target: Target) -> Iterator[int]:
    """Bytes of the buffer for input columns, of int8 and int16 convolutions."""
    window = _window(op)
    if window is None:
        return
    if element_type(op) == "int8":
        size = _convolution_s8(window, target)
    elif element_type(op) == "int16":
        size = _convolution_s16(window, target)
    else:
        return
    if size > 0:
        yield size


def _convolution_s8(window: _FilterWindow, target: Target) -> int:
    if target.is_arduino_2023:
        unit = window.stride == (1, 1)
        small = window.kernel == (1, 1) and window.pad == (0, 0)
        return 0 if small and unit and window.undilated else 4 * window.column
    if window.pointwise:
        return 0
    if target.extension != "mve":
        return 4 * align_up(window.column, 4)
    return _row_mve(window) if window.row else _column_mve(window.column)


def _column_mve(column: int) -> int:
    """Four columns of whole 16-byte lanes."""
    return 4 * align_up(column, 16)


def _row_mve(window: _FilterWindow) -> int:
    """arm_convolve_1_x_n_s8_get_buffer_size_mve."""
    total = (window.output[1] - 1) * window.stride[1] + window.kernel[1] - window.input[1]
    uneven = total % 2 if total >= 0 else -(-total % 2)
    pad, stride = window.pad[1], window.stride[1]
    right = max(1, (pad + uneven + stride - 1) // stride) if pad + uneven != 0 else 0
    left = max(1, (pad + stride - 1) // stride) if pad != 0 else 0
    middle = max(window.output[1] - (right + left), 0)
    if right + middle + left != window.output[1]:
        return _column_mve(window.column)
    taps = window.kernel[1] * window.channels[0]
    pad_left = pad * window.channels[0]
    pad_right = right * window.channels[0] if uneven else pad_left
    return max(taps + pad_left, taps - window.channels[0] + pad_right)


def _convolution_s16(window: _FilterWindow, target: Target) -> int:
    if target.is_arduino_2023:
        fast = target.extension == "dsp" and window.column < 512 and window.undilated
        return 4 * window.column if fast else 0
    return 8 * align_up(window.column, 8) if target.extension == "mve" else 4 * window.column


def depthwise(op: Op, target: Target) -> Iterator[int]:
    """Columns of int8, where the fast kernels run."""
    window = _window(op)
    if window is None:
        return
    size = 0
    if element_type(op) == "int8":
        rule = _depthwise_s4 if element_type(op, 1) == "int4" else _depthwise_s8
        size = rule(window, target)
    if size > 0:
        yield size


def _depthwise_s8(window: _FilterWindow, target: Target) -> int:
    taps = window.kernel[0] * window.kernel[1]
    mve = target.extension == "mve" and not target.is_arduino_2023
    if mve and window.channels[0] == 1 and window.channels[1] > _MVE_SPREAD_ABOVE:
        spread = replace(window, kernel_depth=1)
        return _convolution_s8(spread, target) + window.channels[1] * taps
    if not _is_optimised_depthwise(window):
        return 0
    if target.extension == "mve":
        return 4 * MVE_DEPTHWISE_CHANNELS * taps
    narrow = window.kernel == (3, 3) and max(window.pad) <= 1
    if target.extension == "none" or (narrow and not target.is_arduino_2023):
        return 0
    return 2 * window.channels[0] * taps


def _depthwise_s4(window: _FilterWindow, target: Target) -> int:
    taps = window.kernel[0] * window.kernel[1]
    if not _is_optimised_depthwise(window):
        return 0
    mve = target.extension == "mve"
    return (4 * MVE_DEPTHWISE_CHANNELS if mve else 2 * window.channels[0]) * taps


def _is_optimised_depthwise(window: _FilterWindow) -> bool:
    return window.channels[0] == window.channels[1] and window.batch == 1 and window.undilated


def average_pool(op: Op, target: Target) -> Iterator[int]:
    """Sums of a pixel, with the DSP extension."""
    if element_type(op) in ("int8", "int16") and target.extension == "dsp":
        yield 4 * (op.operands()[0].shape or (1,))[-1]


def fully_connected(op: Op, target: Target) -> Iterator[int]:
    """One scale spread over all channels, or row sums that may not be persistent."""
    int8 = element_type(op) == "int8" and element_type(op, 1) != "int4"
    if not int8 or target.is_arduino_2023:
        return
    channels = (op.outputs[0].shape or (1,))[-1]
    weights = op.operands()[1]
    if runs_as_convolution(op):
        if not weights.quantization.is_per_channel:
            yield 8 * channels  # one multiplier and one shift, spread over all channels
    elif needs_row_sums(op, target) and not keeps_row_sums(op, target):
        yield 4 * channels


def batch_matmul(op: Op, target: Target) -> Iterator[int]:
    """The output's last dimension counts as the number of row sums."""
    if element_type(op) == "int8" and target.extension == "mve":
        shape = op.outputs[0].shape or (1,)
        yield 4 * shape[-1]


def transpose_conv(op: Op, target: Target) -> Iterator[int]:
    """Rows of sums, or columns and a reversed filter."""
    kind, result = element_type(op, 2), op.outputs[0]
    weights, data = op.inputs[1], op.inputs[2]
    if kind == "int16":
        yield 8 * result.elements
        if element_type(op, 3) == "int16":
            yield 8 * op.operands()[3].elements
    if kind != "int8" or weights is None or data is None:
        return
    (_, _, width, depth), (count, kernel_h, kernel_w, _) = (
        _shape_of_rank_4(data),
        _shape_of_rank_4(weights),
    )
    stride_h, stride_w = op.options.stride
    if max(stride_h, stride_w) <= 2 and depth > REVERSE_ABOVE:
        column = kernel_h * kernel_w * depth
        yield _column_mve(column) if target.extension == "mve" else 4 * align_up(column, 4)
        yield column * count
    else:
        row_elements = ((width - 1) * stride_w + max(kernel_w, stride_h)) * count
        yield 4 * row_elements * max(kernel_h, stride_h)
        yield 0


def svdf(op: Op, target: Target) -> Iterator[int]:
    """As the reference kernel; with MVE also row sums, if they may not be persistent."""
    data, features = op.operands()[:2]
    batch, filters = (data.shape or (1,))[0], (features.shape or (1,))[0]
    yield 4 * batch * filters
    if data.type_name == "int8":
        yield 4 * batch * (op.outputs[0].shape or (1,))[-1]
        if target.extension == "mve" and target.optimized == "size":
            yield 4 * filters


def lstm(op: Op, target: Target) -> Iterator[int]:
    """Buffers of gates: three for integers, four for floats."""
    yield from (4 if element_type(op) == "float32" else 3) * [lstm_gate_bytes(op)]
