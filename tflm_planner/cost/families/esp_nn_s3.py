"""Which loops ESP-NN's vector kernels run on an ESP32-S3, as counts of loop bodies.

    conv        row by row of the window, 16 products at once; weights are summed at every call,
                rows that are no multiple of a vector and inputs with padding are copied first
    window      rows shorter than a vector: the filter and then each window are copied
    pointwise   1x1: eight pixels at once, transposed so that each lane has one pixel
    depthwise   16 channels at once; or 8, on copies of input and filter as int16
    dense       16 products at once; weights are summed for every row
    add, mul    eight elements at once

What a call does to its whole filter is what a tile in rows pays again: it counts as `weight`.
Read from espressif/esp-nn d45b843 (1.2.3); what a body costs stands in data/instructions_read.toml.
Other operators, types and dilated windows run as TFLM's reference kernels do; so, here, do pools
and SOFTMAX, which run seldom. This module must not know constants.
"""

from __future__ import annotations

from collections.abc import Callable

from tflm_planner.cost.case import Case
from tflm_planner.cost.families.base import KernelFamily
from tflm_planner.cost.families.reference import REFERENCE
from tflm_planner.cost.kinds import Counts, Work
from tflm_planner.cost.windows import WindowCounts, window_counts
from tflm_planner.support.units import align_up
from tflm_planner.tflm.kernels.libraries.esp_nn.scratch import ConvShape, copies_windows

_LANES = 16
_HALF = 8
"""Pixels, or int16 channels, that a kernel handles at a time."""


def _work(case: Case) -> Work | None:
    """What ESP-NN's own kernel does for a case; None where the reference kernel runs."""
    weights = case.operand(1)
    if case.data.type != "int8" or (weights and weights.type != "int8"):
        return None
    return _KERNELS[case.kind](case)


def _conv(case: Case) -> Work | None:
    w = window_counts(case)
    if w is None or not w.undilated or w.groups > 1:
        return None
    shape, macs = _shape_of(w), w.pixels * w.column * w.channels[1]
    if shape.pointwise:
        name = "s3_pointwise" if shape.depth % _HALF == 0 else "s3_pointwise_any"
        return Work(name, _pointwise(w), macs, typed=False)
    if copies_windows(shape):
        return Work("s3_window", _window(w), macs, typed=False)
    return Work("s3_conv", _rows(w, shape), macs, typed=False)


def _shape_of(w: WindowCounts) -> ConvShape:
    multiplier = max(1, w.channels[1] // max(1, w.channels[0]))
    return ConvShape(
        w.input, w.output, w.kernel, w.stride, w.pad, w.channels[0], w.channels[1], multiplier
    )


def _pointwise(w: WindowCounts) -> Counts:
    """Eight pixels at a time, then one by one; the filter is not copied."""
    pixels, (depth, channels) = w.input[0] * w.input[1], w.channels
    eights, odd = w.batch * (pixels // _HALF), w.batch * (pixels % _HALF)
    steps, rest = divmod(depth, _HALF)
    return {
        "eight": eights, "turn": eights * steps, "eight_output": eights * channels,
        "eight_step": eights * channels * steps, "odd_output": odd * channels,
        "odd_step": odd * channels * (steps if rest == 0 else 0),
        "mac": channels * (eights * _HALF * rest + (odd * depth if rest else 0)),
    }  # fmt: skip


def _window(w: WindowCounts) -> Counts:
    """Copying and summing the filters, then copying the windows."""
    outputs = w.pixels * w.channels[1]
    return {
        "weight": w.batch * w.channels[1] * w.column, "filter": w.batch * w.channels[1],
        "pixel": w.pixels, "window_row": w.pixels * w.kernel[0], "window": w.pixels * w.column,
        "output": outputs, "step_16": outputs * (align_up(w.column, _LANES) // _LANES),
    }  # fmt: skip


def _rows(w: WindowCounts, shape: ConvShape) -> Counts:
    """Summing the filters and, if needed, copying them; padding the inputs; then the products."""
    row = max(w.kernel[1] * w.channels[0], 1)
    rows, steps = w.channels[1] * w.kernel[0], align_up(row, _LANES) // _LANES - 1
    is_copied = row % _LANES != 0
    outputs = w.pixels * w.channels[1]
    return {
        "weight": w.batch * rows * align_up(row, _LANES), "filter": w.batch * w.channels[1],
        "copied_row": w.batch * rows * is_copied, "copied_weight": w.batch * rows * row * is_copied,
        **_padded(w, shape), "pixel": w.pixels, "output": outputs, "row": outputs * w.kernel[0],
        "step_32": outputs * w.kernel[0] * (steps // 2),
        "step_16": outputs * w.kernel[0] * (steps % 2),
    }  # fmt: skip


def _padded(w: WindowCounts, shape: ConvShape) -> Counts:
    """Copying the input element by element into a padded one, if windows reach beyond it."""
    beyond = max(shape.beyond[0], 0), max(shape.beyond[1], 0)
    margins = (2 * w.pad[0], 2 * w.pad[1]) if any(w.pad) else beyond
    if not any(margins):
        return {}
    elements = shape.elements_with((0, 0), w.channels[0])
    filled = shape.elements_with(margins, w.channels[0])
    return {"copied": w.batch * elements, "filled": w.batch * filled}


def _depthwise(case: Case) -> Work | None:
    w = window_counts(case)
    if w is None or not w.undilated or w.channels[1] % max(1, w.channels[0]):
        return None
    shape, macs = _shape_of(w), w.pixels * w.taps * w.channels[1]
    if shape.multiplier == 1 and w.kernel == (3, 3) and w.channels[0] % _HALF == 0:
        if w.channels[0] % _LANES == 0 and w.pad in ((0, 0), (1, 1)):
            return Work("s3_depthwise_3x3", _sixteen(w, shape, w.channels[0]), macs, typed=False)
        if w.channels[0] > _HALF:
            return Work("s3_depthwise_3x3", _widened_channels(w, shape), macs, typed=False)
    if shape.multiplier % 4 == 0 or (shape.multiplier == 1 and w.channels[0] > 3):
        return Work("s3_depthwise_s16", _eight(w), macs, typed=False)
    return None


def _sixteen(w: WindowCounts, shape: ConvShape, depth: int) -> Counts:
    """3x3, sixteen channels at a time; the filter is copied at every call."""
    groups = w.batch * depth // _LANES
    return {
        "weight": w.batch * w.taps * depth, "group": groups, "line": groups * w.output[0],
        **_padded(w, shape), "output_16": w.pixels * depth // _LANES,
    }  # fmt: skip


def _widened_channels(w: WindowCounts, shape: ConvShape) -> Counts:
    """The same for other multiples of eight: pixel by pixel, channels are added to the input before
    and removed from the result after."""
    depth = align_up(w.channels[0], _LANES)
    pixels_in = w.batch * w.input[0] * w.input[1]
    return {
        **_sixteen(w, shape, depth), "copied": 0,
        "filled": pixels_in * depth, "moved_pixel": pixels_in + w.pixels,
        "moved": (pixels_in + w.pixels) * w.channels[0],
    }  # fmt: skip


def _eight(w: WindowCounts) -> Counts:
    """Eight results at a time, with filter and input as int16; the number of channels is rounded up
    to eight by copying element by element, unless each channel has several results."""
    (depth, channels), elements = w.channels, w.batch * w.input[0] * w.input[1] * w.channels[0]
    fills = channels > depth or channels % _HALF == 0
    eights = align_up(channels, _HALF) // _HALF
    return {
        "weight": w.batch * w.taps * channels, "widened": elements,
        "placed": 0 if fills else elements + w.pixels * depth,
        "output_8": w.pixels * eights, "row_8": w.rows_inside * eights, "tap_8": w.inside * eights,
    }  # fmt: skip


def _dense(case: Case) -> Work | None:
    weights = case.operand(1)
    if weights is None or len(weights.shape) != 2:
        return None
    out, column = weights.shape
    rows = case.data.elements // max(1, column)
    counts = {
        "weight": rows * out * column, "output": rows * out, "row": rows,
        "step_16": rows * out * (column // _LANES), "mac": rows * out * (column % _LANES),
    }  # fmt: skip
    return Work("s3_dense", counts, rows * out * column, typed=False)


def _elementwise(case: Case) -> Work | None:
    n = case.result.elements
    if any(t is None or t.elements != n for t in case.inputs[:2]):
        return None
    name = f"s3_{case.kind.lower()}"
    return Work(name, {"eight": n // _HALF, "odd": n % _HALF}, 0, typed=False)


_KERNELS: dict[str, Callable[[Case], Work | None]] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
    "ADD": _elementwise,
    "MUL": _elementwise,
}
PIE_S3 = KernelFamily("pie-s3", dict.fromkeys(_KERNELS, _work), REFERENCE)
"""ESP-NN on an ESP32-S3."""
