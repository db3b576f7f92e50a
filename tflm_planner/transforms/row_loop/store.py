"""Where a loop reads its input and puts its result: in one store, if possible.

    turn 1    |  lead  | x0 | x1 | x2 | x3 |        what a turn writes lies below all rows that
              | y0 | y1 |    ^ read from here on    a later turn reads: `lead` is the least room
                                                    that makes it so
    aligned     y0 written over and over while the pipeline fills
    otherwise   as many rows as the result lags behind are written before y0

All places are in elements and in running direction. This module must not know operators.
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
    """Where rows come from and go to; all in elements and in running direction.

    shared: input and result are in the same store (else the result has a store of its own, and
    the input one that is only read). rows: rows of the input that its store has room for, the
    first `lead` of which lie before the input. size: elements of the result's store. first:
    where the first turn writes (negative places are moved to 0). start: where the result begins.
    """

    shared: bool
    rows: int
    lead: int
    size: int
    first: int
    start: int


@dataclass(frozen=True)
class Pace:
    """How a loop goes through its input and its result. taken: rows of the input a turn. ahead:
    those that it starts ahead. late: rows by which the latest reading of the input lags behind
    (negative: it is ahead). step: elements of the result that a turn writes. skipped: elements
    of it that come before its first row."""

    turns: int
    taken: int
    ahead: int
    late: int
    step: int
    skipped: int


def store_of(
    source: Tensor, result: Tensor, pace: Pace, *, shared: bool, aligned: bool, backwards: bool
) -> RowStore | None:
    """The smallest store; None where rows to be taken would lie outside it, and the type has no
    GATHER, which could take other rows instead. `aligned`: whole turns are skipped, so that the
    first ones may all write to the store's first rows."""
    element = element_bytes(result)
    last = pace.turns * pace.taken + pace.ahead
    holds_all = not gathers(source)  # all rows that are taken must be there
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
    """Whether the result can be taken out of the store without a copy."""
    begin = store.size - store.start - result.elements if backwards else store.start
    return begin * element_bytes(result) % ALIGNMENT == 0


def _lead(source: Tensor, pace: Pace, ends: Sequence[int]) -> int:
    """Rows to leave before the input so that nothing is written over rows still to be read."""
    row, lead = row_elements(source), 0
    for turn, end in enumerate(ends[:-1]):
        next_read = max((turn + 1) * pace.taken - pace.late, 0)
        if next_read < height(source):
            lead = max(lead, -(-(end - next_read * row) // row))
    return lead
