"""The conflicts of items as arrays, for searches that plan hundreds of candidates.

    starts   0       2    3         6          the entries of item k are starts[k] .. starts[k + 1]:
    other    1   3 | 0  | 3  0  1 |            another item that it must not collide with, and the
    low     -8 -16 |-4  | ..                   open interval ]low, high[ that is forbidden for
    high     4   4 | 8  | ..                   `offset[other] - offset[k]`

The entries and their order are those of `conflicts_of`; computing them takes a tenth of the time.
The module knows integers only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tflm_planner.memory.allocators.conflict_kernel import Pieces, list_conflicts
from tflm_planner.memory.allocators.items import Items
from tflm_planner.memory.allocators.machine_code import Ints
from tflm_planner.memory.allocators.problem_table import ProblemTable


@dataclass(frozen=True)
class Arrays:
    """starts, other, low, high: see the module. leads: 1 for the first entry of a pair of items (in
    each direction), else 0. Then for each item: its height, its first start (begins), its last end,
    the sum of bytes times steps of its buffers, and the number of items that it conflicts with
    (degrees)."""

    starts: Ints
    other: Ints
    low: Ints
    high: Ints
    leads: Ints
    heights: Ints
    begins: Ints
    ends: Ints
    areas: Ints
    degrees: Ints

    @staticmethod
    def of(items: Items, table: ProblemTable | None = None) -> Arrays:
        """The arrays of these items. table: that of their problem, if it is known."""
        count = len(items)
        owner, shift = _ints(items.owner), _ints(items.shift)
        table = table or ProblemTable.of(items.problem)
        size, start, end = table.size, table.start, table.end
        heights, begins = np.zeros(count, np.int64), np.full(count, 1 << 60, np.int64)
        ends, areas = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.maximum.at(heights, owner, shift + size)
        np.minimum.at(begins, owner, start)
        np.maximum.at(ends, owner, end)
        np.add.at(areas, owner, size * (end - start))
        pieces = Pieces(owner, shift, size, table.near_starts, table.near)
        row, other, low, high, pair = list_conflicts(pieces, table.permits)
        starts = np.zeros(count + 1, np.int64)
        starts[1:] = np.cumsum(np.bincount(row, minlength=count))
        leads = np.ones(len(other), np.int64)
        leads[1:] = pair[1:] != pair[:-1]
        leads[starts[:-1][starts[:-1] < len(leads)]] = 1
        degrees = np.add.reduceat(np.append(leads, 0), starts[:-1]) * (starts[1:] > starts[:-1])
        return Arrays(starts, other, low, high, leads, heights, begins, ends, areas, degrees)

    def orders(self) -> Iterator[Ints]:
        """The same orders as those of `GreedyPlacer.orders`."""
        heights, begins, ends = self.heights, self.begins, self.ends
        weights = np.append(self.leads * heights[self.other], 0)
        near = np.add.reduceat(weights, self.starts[:-1]) * (self.degrees > 0)
        yield np.lexsort((begins, -heights))
        yield np.lexsort((begins, -heights, -heights - near))
        yield np.lexsort((begins, -self.areas))
        yield np.lexsort((begins, -heights, begins - ends))
        yield np.lexsort((-heights, begins))
        yield np.lexsort((begins, -heights, -ends))
        yield np.lexsort((begins, -heights, -self.degrees))


def _ints(values: tuple[int, ...]) -> Ints:
    return np.array(values, np.int64)


__all__ = ["Arrays"]
