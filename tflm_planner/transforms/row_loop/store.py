"""The store: the tensor in which a loop keeps its input and, if possible, also its result.

    turn 1    |  lead  | x0 | x1 | x2 | x3 |        a turn writes below all rows that a later turn
              | y0 | y1 |    ^ read from here on    reads: `lead` is the smallest number of rows
                                                    before the input with which that holds
    aligned     y0 is written repeatedly while the pipeline fills
    otherwise   as many rows as the result lags are written before y0

All positions are in elements and in running direction (that of the loop). This module must not know
operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.model.ir import Tensor
from tflm_planner.support.units import ALIGNMENT
from tflm_planner.transforms.row_loop.operand_rows import (
    element_bytes,
    gathers,
    height,
    row_elements,
)


@dataclass(frozen=True)
class RowStore:
    """Positions of rows that are read and written, in elements and in running direction.

    shared: input and result are in the same store (otherwise the result has its own store, and the
    input one that is only read). rows: length of the input's store in rows of the input; the first
    `lead` of them lie before the input. size: elements of the result's store. first: position to
    which the first turn writes (negative positions become 0). start: position of the result.
    """

    shared: bool
    rows: int
    lead: int
    size: int
    first: int
    start: int


@dataclass(frozen=True)
class Pace:
    """The progress of a loop through its input and its result. taken: rows of the input per turn.
    ahead: rows by which it starts ahead. late: rows by which the last read of the input lags
    (negative: it is ahead). step: elements of the result that a turn writes. skipped: elements that
    are written before the first row of the result."""

    turns: int
    taken: int
    ahead: int
    late: int
    step: int
    skipped: int


def store_of(
    source: Tensor, result: Tensor, pace: Pace, *, shared: bool, aligned: bool, backwards: bool
) -> RowStore | None:
    """The smallest store; None if some rows to read would lie outside it and the type has no
    GATHER, which could read other rows instead. `aligned`: the delay is a number of whole turns, so
    that the first turns may all write to the store's first rows."""
    element = element_bytes(result)
    last = pace.turns * pace.taken + pace.ahead
    holds_all = not gathers(source)  # then all rows that are read must lie in the store
    if holds_all and not shared and (last > height(source) or pace.late > 0):
        return None
    store: RowStore | None = None
    for shift in range(ALIGNMENT // element):
        first, start = (-pace.skipped, 0) if aligned else (shift, shift + pace.skipped)
        ends = [max(first + t * pace.step, 0) + pace.step for t in range(pace.turns)]
        end = max(ends[-1], start + result.elements)
        if not shared:
            store = RowStore(False, height(source), 0, end, first, start)
        else:
            lead = max(_lead(source, pace, ends), pace.late if holds_all else 0)
            row = row_elements(source)
            room = max(height(source), last if holds_all else 0)
            total = max(lead + room, -(-end // row))
            store = RowStore(True, total, lead, total * row, first, start)
        if aligned or is_view(store, result, backwards):
            return store
    return store


def is_view(store: RowStore, result: Tensor, backwards: bool) -> bool:
    """Whether the result can be cut out of the store without a copy."""
    begin = store.size - store.start - result.elements if backwards else store.start
    return begin * element_bytes(result) % ALIGNMENT == 0


def _lead(source: Tensor, pace: Pace, ends: Sequence[int]) -> int:
    """Smallest number of rows before the input so that no row is overwritten before it is read."""
    row, lead = row_elements(source), 0
    for turn, end in enumerate(ends[:-1]):
        next_read = max((turn + 1) * pace.taken - pace.late, 0)
        if next_read < height(source):
            lead = max(lead, -(-(end - next_read * row) // row))
    return lead
