"""Small operators on rows, appended to a draft: take, pad, join, reshape.

STRIDED_SLICE replaces GATHER for element types that TFLM's GATHER does not support. It knows
tensors and drafts; it must not know turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflm_planner.model.constants import integers
from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.ops.window import ROWS, window_of
from tflm_planner.transforms.row_loop.operand_rows import (
    DTYPES,
    SLICES,
    OperandRows,
    gathers,
    height,
)


class RowOps:
    """Appends small operators on rows to one draft."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def run(self, op: Op, operands: list[Tensor | None], rows: int) -> dict[Tensor, Tensor]:
        """`op` on a few rows of its operands, which are padded. Returns, by result of `op`, its
        `rows` rows."""
        results = {t: self.draft.tensor(t, t.name, with_rows(t, rows)) for t in op.outputs}
        operands, changed = [*operands], dict[str, Any]()
        if window_of(op) is not None:
            changed["padding"] = VALID_PADDING
        if op.kind in SLICES:
            for operand, value in ((1, 0), (2, rows)):  # all of these rows
                places = integers(op.operands()[operand])
                assert places is not None, "it was found to cut columns and channels alone"
                changed_places = [*places[:ROWS], value, *places[ROWS + 1 :]]
                operands[operand] = self.draft.integers("places", changed_places)
        self.draft.clone(op, operands, [*results.values()], **changed)
        return results

    def gather(self, rows: Tensor, positions: Tensor) -> Tensor:
        """The rows at `positions`."""
        result = self.draft.tensor(rows, "rows", with_rows(rows, positions.elements))
        self.draft.op("GATHER", [rows, positions], [result], axis=ROWS)
        return result

    def rows_of(self, rows: Tensor, begin: int, count: int) -> Tensor:
        """`count` rows from `begin` on; the tensor itself if these are all its rows."""
        if (rows.shape or ()) == with_rows(rows, count):
            return rows
        if not gathers(rows):
            return self.part(rows, begin, count)
        return self.gather(rows, self.draft.integers("rows", range(begin, begin + count)))

    def part(self, t: Tensor, begin: int, count: int) -> Tensor:
        """Consecutive rows of an image, or elements of a flat tensor, by STRIDED_SLICE; a view if
        they are contiguous in memory."""
        sizes = list(t.shape or ())
        axis = ROWS if len(sizes) == 4 else 0
        first, behind = [0] * len(sizes), list(sizes)
        first[axis], behind[axis] = begin, begin + count
        sizes[axis] = count
        limits = [self.draft.integers("part", v) for v in (first, behind, [1] * len(sizes))]
        result = self.draft.tensor(t, "part", sizes)
        self.draft.op("STRIDED_SLICE", [t, *limits], [result])
        return result

    def pad(self, r: OperandRows, rows: Tensor, above: int, below: int) -> Tensor:
        """Rows padded as `r` requires in columns and channels, and with rows of padding above and
        below."""
        pads = [[0, 0], [above, below], r.columns, r.channels]
        if not any(map(any, pads)):
            return rows
        count = height(rows) + above + below
        result = self.draft.tensor(r.tensor, "padded", padded_shape(r, count))
        paddings = self.draft.integers("pads", pads)
        if r.value is None:
            self.draft.op("PAD", [rows, paddings], [result])
        else:
            value = self.fill(r.tensor, (), r.value)
            self.draft.op("PADV2", [rows, paddings, value], [result])
        return result

    def join(self, r: OperandRows, parts: Sequence[Tensor]) -> Tensor:
        """The parts concatenated along the rows."""
        count = sum(map(height, parts))
        result = self.draft.tensor(r.tensor, "tile", padded_shape(r, count))
        self.draft.op("CONCATENATION", list(parts), [result], axis=ROWS)
        return result

    def reshape(self, source: Tensor, shape: tuple[int, ...]) -> Tensor:
        """`source` in another shape."""
        if source.shape == shape:
            return source
        result = self.draft.tensor(source, "flat", shape)
        self.reshape_into(source, result)
        return result

    def reshape_into(self, source: Tensor, into: Tensor) -> None:
        """RESHAPE into an existing tensor."""
        self.draft.op("RESHAPE", [source], [into], new_shape=tuple(into.shape or ()))

    def fill(self, like: Tensor, shape: tuple[int, ...], value: int | float | None) -> Tensor:
        """A constant filled with one value, quantised like `like`; None: the value that stands for
        zero."""
        values = np.full(shape, like.zero if value is None else value, DTYPES[like.type_name])
        return self.draft.constant("filled", values, like.type_name, like, like.quantization)


def fill_value(r: OperandRows) -> int | float:
    """The value of padding for a reading, as stored."""
    return r.tensor.zero if r.value is None else r.value


def with_rows(t: Tensor, rows: int) -> tuple[int, ...]:
    """The shape of an image with another number of rows."""
    batch, _, *rest = t.shape or (1, 0)
    return (batch, rows, *rest)


def padded_shape(r: OperandRows, rows: int) -> tuple[int, ...]:
    """The shape of `rows` rows, padded as a reading requires."""
    _, _, columns, channels = r.tensor.shape or (0, 0, 0, 0)
    return (1, rows, columns + sum(r.columns), channels + sum(r.channels))
