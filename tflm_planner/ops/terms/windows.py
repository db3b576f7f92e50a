"""Terms of operators that slide a window: convolutions and pools.

    CONV_2D            sum of weight * (x - zero point), mixed by scales, bias, activation
    MAX_POOL_2D        sum of mixed x (a set: the order does not matter), mixed
    AVERAGE_POOL_2D    sum of x, mixed by their number
    either, of 1x1     x itself: integers are copied

Positions outside of the image add 0 to a sum, so that SAME padding, PAD with the zero point, and
extra rows that are cut off give the same terms. In a maximum, the least number of the type adds 0.
The order of float sums matters, so every place in the window has its own factors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.options import SAME_PADDING
from tflm_planner.ops.terms import field, mixing
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.maxima import maximum, parts_of
from tflm_planner.ops.terms.parameters import is_float, quantisation
from tflm_planner.ops.terms.sums import channel_keys, factors
from tflm_planner.ops.terms.values import Values
from tflm_planner.ops.window import Window, picked_stride, sliding_window

_MOST_BYTES = 1 << 22
"""Bytes of windows that are laid out side by side at a time."""
_CACHED = 1 << 16
"""Elements of a result that are computed at a time, so that they fit a core's cache."""


def _plain_window(call: OpCall) -> Window | None:
    """The window of an operator whose types are summed here; else None."""
    window = sliding_window(call.op)
    return window if _is_plain(call) else None


def convolution(call: OpCall) -> list[Values] | None:
    """CONV_2D, also grouped."""
    window = _plain_window(call)
    if window is None:
        return None
    words = channel_keys(call, 0, 1, 2)
    if words is None:
        return None
    image = _pad(call.centred_elements(0), window)
    weights = factors(call, 1, 3)  # ([lanes,] Co, Kh, Kw, Ci / groups)
    outputs, inputs = (c // window.groups for c in reversed(window.channels))
    shares = [
        _product(
            window,
            image[..., g * inputs : (g + 1) * inputs],
            weights[..., g * outputs : (g + 1) * outputs, :, :, :],
        )
        for g in range(window.groups)
    ]
    return [call.mix_by(np.concatenate(shares, -1), words)]


def _is_plain(call: OpCall) -> bool:
    """Whether operand and filter have types whose sums are computed here. The filter's zero point
    must be 0, because kernels ignore it."""
    kinds = call.tensor(0).type_name, call.tensor(1).type_name
    return kinds == ("float32", "float32") or (
        kinds[0] in ("int8", "int16")
        and kinds[1] in ("int8", "int4")
        and not any(call.tensor(1).quantization.zero_points)
    )


def _product(window: Window, image: Residues, weights: npt.NDArray[Any]) -> Residues:
    """Sums of products of all windows and all filters of one group."""
    per_lane = weights.ndim == 5
    count = weights.shape[-4]
    flat = weights.reshape(*((LANES, count) if per_lane else (count,)), -1).swapaxes(-1, -2)
    rows, columns = window.output
    inner = flat.shape[-2]
    step = max(_MOST_BYTES // (LANES * window.batch * columns * inner * 8), 1)
    sums = np.empty((LANES, window.batch, rows, columns, count), np.uint32)
    for start in range(0, rows, step):
        lines = _lay_out(window, image, start, min(start + step, rows))
        shape = lines.shape[:-1]
        products = (
            field.times(lines.reshape(LANES, -1, inner), flat)
            if per_lane
            else field.times_integers(lines.reshape(-1, inner), flat)
        )
        sums[:, :, start : start + step] = products.reshape(*shape, count)
    return sums


def _lay_out(window: Window, image: Residues, start: int, stop: int) -> Residues:
    """The windows of rows [start, stop) of the result, each flattened into one row."""
    taps = [tap[:, :, start:stop] for _, tap in _taps(window, image)]
    return taps[0] if len(taps) == 1 else np.concatenate(taps, -1)


def _pad(image: Residues, window: Window) -> Residues:
    """The image padded with zeros as far as windows reach."""
    ends: list[tuple[int, int]] = []
    for axis in (0, 1):
        reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1
        last = (window.output[axis] - 1) * window.stride[axis] + reach
        low = window.pad[axis]
        ends.append((low, max(last - low - window.input[axis], 0)))
    if not any(map(any, ends)):
        return image
    lanes, batch, height, width, channels = image.shape
    (top, bottom), (left, right) = ends
    room = lanes, batch, top + height + bottom, left + width + right, channels
    padded = np.zeros(room, image.dtype)  # `np.pad` is slow for a few rows
    padded[:, :, top : top + height, left : left + width] = image
    return padded


def _taps(window: Window, image: npt.NDArray[Any]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Yield, for each place of the window, its index and the image elements that every output pixel
    reads there."""
    (rows, columns), (down, across) = window.output, window.stride
    for i in range(window.kernel[0]):
        for j in range(window.kernel[1]):
            y, x = i * window.dilation[0], j * window.dilation[1]
            yield (
                i * window.kernel[1] + j,
                image[
                    :, :,
                    y : y + (rows - 1) * down + 1 : down,
                    x : x + (columns - 1) * across + 1 : across,
                ],
            )  # fmt: skip


def depthwise(call: OpCall) -> list[Values] | None:
    """DEPTHWISE_CONV_2D: every channel separately, repeated by the depth multiplier."""
    window = _plain_window(call)
    if window is None:
        return None
    words = channel_keys(call, 0, 1, 2)
    if words is None:
        return None
    image = _pad(call.centred_elements(0), window)
    times = window.channels[1] // window.channels[0]
    weights = factors(call, 1, 2)  # ([lanes,] 1, Kh, Kw, Co)
    flat = weights.reshape(*weights.shape[:-4], -1, window.channels[1])
    sums = np.empty((LANES, window.batch, *window.output, window.channels[1]), np.uint32)
    step = max(_CACHED // (LANES * window.batch * window.output[1] * window.channels[1]), 1)
    for start in range(0, window.output[0], step):
        stop = min(start + step, window.output[0])
        lines = _lines(window, image, start, stop)
        if times > 1:
            lines = np.repeat(lines, times, -1)
        part = replace(window, output=(stop - start, window.output[1]))
        sums[:, :, start:stop] = _weigh(part, lines, flat)
    return [call.mix_by(sums, words)]


def _lines(window: Window, image: Residues, start: int, stop: int) -> Residues:
    """The rows of an image that rows [start, stop) of the result read."""
    reach = (window.kernel[0] - 1) * window.dilation[0] + 1
    down = window.stride[0]
    return image[:, :, start * down : (stop - 1) * down + reach]


def _weigh(window: Window, lines: Residues, weights: npt.NDArray[Any]) -> Residues:
    """Weighted sums over all places of the window, with separate weights for each channel."""
    shape = LANES, window.batch, *window.output, window.channels[1]
    if weights.ndim == 3:
        sums = np.zeros(shape, np.int64)
        for place, tap in _taps(window, lines):
            sums += field.multiply(tap, weights[:, place].reshape(LANES, 1, 1, 1, -1))
        return field.residues_of(sums)
    return field.weighted_sum(
        (tap for _, tap in _taps(window, lines.astype(np.float64))), weights, shape
    )


def average_pool(call: OpCall) -> list[Values] | None:
    """AVERAGE_POOL_2D: the sum of the elements inside the image, mixed by their number."""
    window, data = sliding_window(call.op), call.tensor(0)
    if window is None:
        return None
    if (picked := _picked(call)) is not None:
        return picked
    image = _pad(call.elements(0), window)
    inside = np.pad(np.ones((1, 1, *window.input, 1), np.int64), _like(image, window))
    sums = np.zeros((LANES, window.batch, *window.output, window.channels[1]), np.int64)
    count = np.zeros((1, 1, *window.output, 1), np.int64)
    for (place, tap), (_, there) in zip(_taps(window, image), _taps(window, inside), strict=True):
        sums += tap if not is_float(data) else field.multiply(tap, _factor(call, place))
        count += there
    words = mixing.keys(mixing.key("average", *_ends(call)), count[0, 0])
    return [call.mix_by(field.residues_of(sums), words)]


def _picked(call: OpCall) -> list[Values] | None:
    """The pixels that a pool with a window of one pixel copies; None for other pools."""
    stride = picked_stride(call.op)
    if stride is None:
        return None
    rows, columns = (slice(None, None, s) for s in stride)
    return [call.values(0).at((slice(None), rows, columns))]


def _like(image: Residues, window: Window) -> list[tuple[int, int]]:
    low = window.pad
    high = [image.shape[2 + a] - low[a] - window.input[a] for a in (0, 1)]
    return [(0, 0), (0, 0), (low[0], high[0]), (low[1], high[1]), (0, 0)]


def _factor(call: OpCall, place: int) -> Residues:
    return call.symbols.of_name((), "place in a sum", place).data.reshape(LANES, 1, 1, 1, 1)


def max_pool(call: OpCall) -> list[Values] | None:
    """MAX_POOL_2D: the set of the elements inside the image."""
    window = sliding_window(call.op)
    if window is None:
        return None
    if (picked := _picked(call)) is not None:
        return picked
    image = _pad(parts_of(call), window)
    sums = np.zeros((LANES, window.batch, *window.output, window.channels[1]), np.int64)
    for _, tap in _taps(window, image):
        sums += tap
    return [maximum(call, sums)]


def _ends(call: OpCall) -> tuple[object, ...]:
    return quantisation(call.tensor(0)), quantisation(call.result), call.op.options.activation


def transposed_convolution(call: OpCall) -> list[Values] | None:
    """TRANSPOSE_CONV: every input pixel adds to a window of the result. Operands: the result's
    shape (TFLM uses the declared shape instead, even if this operand is an input), filter (Co, Kh,
    Kw, Ci), data, bias."""
    if not call.values(1).known or len(call.shape) != 4:
        return None
    if call.values(0).known:  # LiteRT uses this operand
        call.check_declared([int(n) for n in call.values(0).data])
    kinds = call.tensor(2).type_name, call.tensor(1).type_name
    words = channel_keys(call, 2, 1, 3)
    if kinds not in (("float32",) * 2, ("int8",) * 2, ("int16", "int8")) or words is None:
        return None
    if any(call.tensor(1).quantization.zero_points):
        return None
    image = call.centred_elements(2)
    weights = factors(call, 1, 3)
    _, batch, height, width, _ = image.shape
    count, *kernel, inner = call.values(1).shape
    strides = call.op.options.stride
    room = [(n - 1) * s + k for n, s, k in zip((height, width), strides, kernel, strict=True)]
    sums = np.zeros((LANES, batch, *room, count), np.int64)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            part = weights[..., :, i, j, :].swapaxes(-1, -2)
            flat = image.reshape(LANES, -1, inner)
            share = field.times(flat, part) if part.ndim == 3 else field.times_integers(flat, part)
            rows = slice(i, i + (height - 1) * strides[0] + 1, strides[0])
            columns = slice(j, j + (width - 1) * strides[1] + 1, strides[1])
            sums[:, :, rows, columns] += share.reshape(LANES, batch, height, width, count)
    part = _declared_part(call, sums, kernel, strides)
    return [call.mix_by(field.residues_of(part), words)]


def _declared_part(
    call: OpCall, sums: npt.NDArray[np.int64], kernel: list[int], strides: tuple[int, int]
) -> npt.NDArray[np.int64]:
    """The part of the sums that belongs to the declared result: after the padding is cut off, and
    with zeros beyond the last sum."""
    sizes, lows = call.shape[1:3], list[int]()
    for size, k, stride in zip(sizes, kernel, strides, strict=True):
        covered = size if call.op.options.padding == SAME_PADDING else size - k + 1
        lows.append(max((-(-covered // stride) - 1) * stride + k - size, 0) // 2)
    part = sums[:, :, lows[0] : lows[0] + sizes[0], lows[1] : lows[1] + sizes[1]]
    missing = [n - have for n, have in zip(sizes, part.shape[2:4], strict=True)]
    return np.pad(part, [(0, 0), (0, 0), *((0, m) for m in missing), (0, 0)])


RULES = {
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": depthwise,
    "AVERAGE_POOL_2D": average_pool,
    "MAX_POOL_2D": max_pool,
    "TRANSPOSE_CONV": transposed_convolution,
}
