"""Which rows of its operands an operator reads, and with which padding.

    result   row i                      reach 3, stride 2, above 0, below 1:
    operand  rows i * stride - above    the last window reads one row below the image
             ... + reach

It knows operators; it must not know turns, delays or memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op, Tensor, quote
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.axes import ELEMENT_WISE, ROW_WISE, axis_map, strides_of
from tflm_planner.ops.axis_rules import Same, Slide
from tflm_planner.ops.roles import PADS, SPLITS
from tflm_planner.ops.window import COLUMNS, ROWS, Window, window_of
from tflm_planner.tflm.kernels import adds_pixels_alike, computes_part, computes_single_row
from tflm_planner.transforms.row_loop.loop import NotStreamableError

DTYPES = {"int8": np.int8, "int16": np.int16, "float32": np.float32}
"""Element types that every operator of a loop supports."""
SLICES = frozenset(("SLICE", "STRIDED_SLICE"))
"""Kinds that cut columns and channels; in a loop all rows are taken."""
_BY_ROW = ELEMENT_WISE | ROW_WISE | {"CONCATENATION", *PADS, *SLICES, *SPLITS}


@dataclass(frozen=True)
class OperandRows:
    """How an operator reads the rows of one operand that is not constant.

    operand: its index. above, below: rows of padding that some window reads; negative: rows of the
    image that no window reads. columns, channels: padding on both sides. value: the value of the
    padding, as stored; None for the value that PAD writes (the quantised zero).
    """

    operand: int
    tensor: Tensor
    reach: int = 1
    stride: int = 1
    above: int = 0
    below: int = 0
    columns: tuple[int, int] = (0, 0)
    channels: tuple[int, int] = (0, 0)
    value: int | float | None = None

    @property
    def padded(self) -> bool:
        """Whether columns or channels are padded."""
        return any((*self.columns, *self.channels))

    @property
    def width(self) -> int:
        """Elements of one row, padding included."""
        _, _, columns, channels = self.tensor.shape or (0, 0, 0, 0)
        return (columns + sum(self.columns)) * (channels + sum(self.channels))


def height(t: Tensor) -> int:
    """Rows of an image."""
    return (t.shape or (0, 0))[ROWS]


def element_bytes(t: Tensor) -> int:
    """Bytes of one element."""
    return t.nbytes // max(t.elements, 1)


def gathers(t: Tensor) -> bool:
    """Whether TFLM's GATHER supports this type; SLICE, which supports all, takes consecutive rows
    only."""
    return t.type_name in ("int8", "float32")


def row_elements(t: Tensor) -> int:
    """Elements of one row."""
    return math.prod((t.shape or ())[COLUMNS:])


def operand_rows(op: Op) -> list[OperandRows]:
    """The rows that an operator reads of each operand. Raises NotStreamableError if it cannot run a
    few rows at a time."""
    _check(op)
    window = window_of(op)
    if window is not None:
        return [_of_window(op, window)]
    if op.kind in PADS:
        return [_of_pad(op)]
    if op.kind in SLICES:
        return [_of_slice(op)]
    if op.kind in SPLITS:
        return [_of_split(op)]
    links = {link.operand: link for link in axis_map(op).links_of(ROWS)}
    readings: list[OperandRows] = []
    for i, t in enumerate(op.inputs):
        if t is None:
            continue
        if t.is_constant:
            if i in links:
                raise NotStreamableError(f"{op.label} has a constant of its own for every row")
            continue
        if i not in links or links[i].rule != Same():
            raise NotStreamableError(f"{op.label} mixes rows")
        readings.append(OperandRows(i, t))
    return readings


def _check(op: Op) -> None:
    if has_side_effects(op) or (len(op.outputs) != 1 and op.kind not in SPLITS):
        raise NotStreamableError(f"{op.label} has side effects or several results")
    if op.kind not in _BY_ROW and window_of(op) is None:
        raise NotStreamableError(f"{op.label} has no form by rows")
    if op.kind == "CONCATENATION" and op.options.activation:
        raise NotStreamableError(f"{op.label} has a fused activation")
    for t in (*op.operands(), *op.outputs):
        if not t.is_constant:
            check_image(t)


def check_image(t: Tensor) -> None:
    """Raise NotStreamableError unless `t` is one image of a type that loops support."""
    shape = t.shape or ()
    if len(shape) != 4 or shape[0] != 1 or min(shape) < 1:
        raise NotStreamableError(
            f"tensor {quote(t.name)} has the shape {list(shape)}; rows come of one image: "
            "[1, rows, columns, channels]. A signal is one where it is written so, with one "
            "column: [1, samples, 1, channels]"
        )
    if t.type_name not in DTYPES:
        raise NotStreamableError(f"tensor {quote(t.name)} is of type {t.type_name}")
    if t.is_variable:
        raise NotStreamableError(f"tensor {quote(t.name)} is a variable")
    if t.quantization.is_per_channel:
        raise NotStreamableError(f"tensor {quote(t.name)} is quantised per channel")


def _of_window(op: Op, window: Window) -> OperandRows:
    data, result = op.inputs[0], op.outputs[0]
    assert data is not None
    (link,) = axis_map(op).links_of(ROWS)
    assert isinstance(link.rule, Slide)
    pads: list[tuple[int, int]] = []
    for axis in (0, 1):
        reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1
        last = (window.output[axis] - 1) * window.stride[axis] - window.pad[axis] + reach
        pads.append((window.pad[axis], last - window.input[axis]))
    (above, below), (left, right) = pads
    if -right >= window.stride[1]:
        raise NotStreamableError(f"{op.label} computes fewer columns than it could")
    width = window.input[1] + left + max(right, 0)
    if not computes_single_row(op, width, window.output[1], 0):
        raise NotStreamableError(f"{op.label} cannot be computed row by row by CMSIS-NN")
    if not adds_pixels_alike(op):
        raise NotStreamableError(f"{op.label} has sums that CMSIS-NN wraps around in some pixels")
    if not computes_part(op, window.batch, window.channels[0]):
        raise NotStreamableError(f"{op.label} is computed wrong by CMSIS-NN")
    outside = max(above, below, left, right) > 0
    if op.kind == "AVERAGE_POOL_2D" and outside:
        raise NotStreamableError(f"{op.label} leaves padding out of its averages")
    lowest = _lowest(result) if op.kind == "MAX_POOL_2D" and outside else None
    return OperandRows(0, data, link.rule.reach, link.rule.stride, above, below,
                   (left, max(right, 0)), value=lowest)  # fmt: skip


def _lowest(t: Tensor) -> int | float:
    if t.type_name == "float32":
        return float(np.finfo(np.float32).min)
    return -(1 << (8 * (t.nbytes // t.elements) - 1))


def _of_pad(op: Op) -> OperandRows:
    data, result = op.inputs[0], op.outputs[0]
    pads = integers(op.inputs[1]) if len(op.inputs) > 1 else None
    if data is None or pads is None or len(pads) != 8 or min(pads) < 0 or any(pads[:2]):
        raise NotStreamableError(f"{op.label} pads in a way that rows cannot follow")
    _, above, below, *rest = pads[1:]
    if height(result) != height(data) + above + below:
        raise NotStreamableError(f"{op.label} declares another shape than its paddings")
    value = None
    if op.kind == "PADV2":
        value = _scalar(op)
    return OperandRows(0, data, 1, 1, above, below, (rest[0], rest[1]), (rest[2], rest[3]), value)


def _of_slice(op: Op) -> OperandRows:
    data, result = op.operands()[0], op.outputs[0]
    takes_all = height(result) == height(data) and _takes_row_by_row(op)
    if data.is_constant or not takes_all:
        raise NotStreamableError(f"{op.label} takes a part of the rows, or places that vary")
    return OperandRows(0, data)


def _of_split(op: Op) -> OperandRows:
    """SPLIT of columns or channels: each row of every result is cut out of one row."""
    place = SPLITS[op.kind].data
    links = [axis_map(op).links_of(ROWS, r) for r in range(len(op.outputs))]
    data = op.operands()[place]
    by_row = all(link and link[0].rule == Same() for link in links)
    if not by_row or data.is_constant or any(height(t) != height(data) for t in op.outputs):
        raise NotStreamableError(f"{op.label} takes rows apart, or along an axis that varies")
    return OperandRows(place, data)


def _takes_row_by_row(op: Op) -> bool:
    """Whether row i of the result is cut out of row i of the operand, at places that are known."""
    if len(op.inputs) < 3 or any(t is None or integers(t) is None for t in op.inputs[1:]):
        return False
    if op.kind == "SLICE":
        return Same() in [k.rule for k in axis_map(op).links_of(ROWS)]
    strides = strides_of(op)
    return strides is not None and strides[ROWS] == (0, 1, False)


def _scalar(op: Op) -> int | float:
    fill = op.inputs[2] if len(op.inputs) > 2 else None
    dtype = DTYPES.get(fill.type_name) if fill is not None else None
    if fill is None or dtype is None or fill.buffer.data is None or fill.elements != 1:
        raise NotStreamableError(f"{op.label} pads with a value that is not known")
    return np.frombuffer(fill.buffer.data[: fill.nbytes].tobytes(), dtype)[0].item()
