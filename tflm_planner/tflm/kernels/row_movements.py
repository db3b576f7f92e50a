"""Kernels that read rows of their operand several times, and leave each behind: FULLY_CONNECTED
over several rows, the resizing of images, and TRANSPOSE_CONV.

    FULLY_-     | r0 | r1 | r2 | r3 |        of each row all results, one after the other: a row is
    CONNECTED   |y0 y0 y0|y1 y1 y1|..        needed until the last of them

    RESIZE      |                a   |   b   |  operand, twice as large: it may lie at the end of
                |y a |y a |y a |y ab|y b|y b |  the result, as its last pixel is read for the last

    TRANSPOSE_  |                  | r0 | r1 |  rows of sums are written once no later row adds to
    CONV        |y0 |y0 |y01|y1 |y1 |           them, or whole rows from columns of the operand

The reference kernel of TRANSPOSE_CONV sums in scratch, and writes its result after it has read all
input.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.layout import row_product_of
from tflm_planner.ops.resize import Resize, resize_of
from tflm_planner.ops.roles import PRODUCTS, ROWS_BY_MATRIX
from tflm_planner.support.deferred import defer
from tflm_planner.tflm.kernels.movement import Movement

if TYPE_CHECKING:
    import numpy as np

    from tflm_planner.tflm.kernels.movement import Times
else:
    np = defer("numpy")

RESIZED = frozenset(("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"))
"""The kinds that resize images."""
READ_AGAIN = RESIZED | {ROWS_BY_MATRIX, "TRANSPOSE_CONV"}
"""All kinds of which this module knows movements."""

_OF_ROWS = (("int8", "int8"), ("int16", "int8"), ("float32", "float32"))
"""Types of data and weights of which FULLY_CONNECTED was read."""


def row_movement(op: Op) -> Movement | None:
    """How the reference kernel of an operator moves its data; None if it is none of the forms
    above."""
    if len(op.outputs) != 1 or len(op.inputs) < 2:
        return None
    if op.kind in RESIZED:
        return _resizing(op)
    if op.kind == ROWS_BY_MATRIX:
        return _multiplication_of_rows(op)
    return _sums_in_scratch(op) if op.kind == "TRANSPOSE_CONV" else None


def _multiplication_of_rows(op: Op) -> Movement | None:
    """FULLY_CONNECTED: of each row element after element, each from the whole row."""
    data, weights, result = op.inputs[0], op.inputs[1], op.outputs[0]
    product = row_product_of(op)
    if product is None or data is None or weights is None or data.is_constant:
        return None
    types = data.type_name, weights.type_name
    if types not in _OF_ROWS or data.type != result.type or not weights.is_constant:
        return None
    rows, depth, made = product
    element = data.nbytes // data.elements
    gained = (rows - 1) * (made - depth)  # by the results on the rows, until the last row

    def times() -> tuple[Times, Times]:
        clock = 2 * np.arange(result.elements, dtype=np.int64)
        last_of_row = clock[made - 1 :: made]
        return np.repeat(last_of_row, depth * element), np.repeat(clock + 1, element)

    return Movement(data, result, (max(gained, 0) + made - 1) * element, times)


# --- images ---


def _resizing(op: Op) -> Movement | None:
    """RESIZE_NEAREST_NEIGHBOR, a memcpy for each pixel, and RESIZE_BILINEAR, element by element."""
    data, result = op.inputs[0], op.outputs[0]
    axes = [resize_of(op, axis) for axis in (1, 2)]
    if data is None or data.is_constant or data.type != result.type or not data.elements:
        return None
    readers = [None if resize is None else _last_readers(resize) for resize in axes]
    rows, columns = readers
    (batch, height, width, channels), larger = _image(data), _image(result)
    if rows is None or columns is None or (batch, channels) != (larger[0], larger[3]):
        return None
    pixel = channels * (data.nbytes // data.elements)
    copies = op.kind == "RESIZE_NEAREST_NEIGHBOR"  # a copy must not overlap itself
    # By how many pixels the result has come ahead of a pixel when that is read for the last time.
    ahead = max(0, (batch - 1) * (larger[1] * larger[2] - height * width))
    ahead += max(y * larger[2] - i * width for i, y in rows.items())
    ahead += max(x - j for j, x in columns.items())
    times = partial(_resizing_times, data, result, (rows, columns), copies=copies)
    return Movement(data, result, (ahead + copies) * pixel, times)


def _image(tensor: Tensor) -> tuple[int, int, int, int]:
    """Batch, height, width and channels; zeros if it has no four axes."""
    match tensor.shape:
        case (batch, height, width, channels):
            return batch, height, width, channels
        case _:
            return 0, 0, 0, 0


def _last_readers(resize: Resize) -> dict[int, int] | None:
    """For each row of the operand that is read, the last row of the result that reads it. None
    where floating point rounds."""
    readers: dict[int, int] = {}
    for row in range(resize.out):
        taps = resize.taps(row)
        if taps is None:
            return None
        readers |= {taps[0]: row, taps[1]: row}
    return readers


def _resizing_times(
    data: Tensor, result: Tensor, readers: tuple[dict[int, int], dict[int, int]], *, copies: bool
) -> tuple[Times, Times]:
    (batch, height, width, channels), larger = _image(data), _image(result)
    element, area = data.nbytes // data.elements, larger[1] * larger[2]
    last = [np.full(n, -1, np.int64) for n in (height, width)]
    for of_axis, table in zip(last, readers, strict=True):
        of_axis[[*table]] = [*table.values()]
    rows, columns = last[0][:, None], last[1][None, :]
    pixels = np.arange(batch)[:, None, None] * area + rows * larger[2] + columns
    unread = np.broadcast_to((rows < 0) | (columns < 0), pixels.shape)
    step = 1 if copies else channels  # of the clock for a pixel
    inside = np.zeros(channels, np.int64) if copies else np.arange(channels)
    reads = 2 * (pixels[..., None] * step + inside) + 2 * copies
    reads[unread] = -1
    clock = np.arange(batch * area)[:, None] * step + inside
    return np.repeat(reads.ravel(), element), np.repeat(2 * clock.ravel() + 1, element)


def _transposed(op: Op) -> tuple[Tensor, Tensor] | None:
    """Data and weights of an int8 TRANSPOSE_CONV whose other operands are constant."""
    if len(op.inputs) < 3:
        return None
    roles = PRODUCTS["TRANSPOSE_CONV"]
    data, weights, result = op.inputs[roles.data], op.inputs[roles.weights], op.outputs[0]
    others = (t for i, t in enumerate(op.inputs) if i != roles.data and t is not None)
    if data is None or weights is None or data.type_name != "int8" or data.type != result.type:
        return None
    return None if data.is_constant or not all(t.is_constant for t in others) else (data, weights)


def _sums_in_scratch(op: Op) -> Movement | None:
    """TRANSPOSE_CONV that sums in scratch."""
    operands = _transposed(op)
    if operands is None:
        return None
    (data, _), result = operands, op.outputs[0]

    def times() -> tuple[Times, Times]:
        return np.zeros(data.nbytes, np.int64), np.ones(result.nbytes, np.int64)

    return Movement(data, result, -data.nbytes, times)


def transposed_by_rows(op: Op) -> Movement | None:
    """TRANSPOSE_CONV whose result is written row after row, each once all operand rows that add to
    it are read: as CMSIS-NN does, whether it sums rows in scratch or multiplies columns
    (arm_transpose_conv_s8, and arm_convolve_s8 with upscale_dims). None for several images.

    The result's row `y` adds up operand rows up to `y / stride`, whatever the padding.
    """
    operands = _transposed(op)
    if operands is None or len(op.outputs) != 1:
        return None
    (data, weights), result = operands, op.outputs[0]
    (batch, count, *_), (_, kernel, *_), (_, made, *_) = map(_image, (data, weights, result))
    stride = op.options.stride[0]
    if batch != 1 or min(kernel, stride) < 1 or not (data.elements and result.elements):
        return None
    row, row_made = data.nbytes // count, result.nbytes // made
    ends = [min(made, i * stride + kernel) for i in range(count)]  # of the rows that it adds to

    def times() -> tuple[Times, Times]:
        reads = np.repeat(2 * np.array(ends, np.int64), row)
        return reads, np.repeat(2 * np.arange(made, dtype=np.int64) + 1, row_made)

    return Movement(data, result, max(e * row_made - i * row for i, e in enumerate(ends)), times)
