"""Items as arrays, for searches that plan hundreds of candidates.

    starts   0       2    3         6          a stretch of the entries for each item: the others
    other    1   3 | 0  | 3  0  1 |            that it must not collide with, and what is
    low     -8 -16 |-4  | ..                   forbidden of `offset[other] - offset`
    high     4   4 | 8  | ..

It has the entries of `conflicts_of`, in the same order, and computes them in a tenth of the time.
It knows integers only; it is imported lazily, as `exact_kernel` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from tflm_planner.memory.allocators.items import Items
from tflm_planner.memory.allocators.machine_code import Ints, compiled
from tflm_planner.memory.domains import forbidden
from tflm_planner.memory.problem import Problem


@dataclass(frozen=True)
class Arrays:
    """For each item its height, first start, last end, sum of bytes times steps, and number of
    items with which it must not collide (degrees); what is forbidden: see the module. leads: 1 for
    the first entry of each pair, in each direction, else 0."""

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
    def of(items: Items) -> Arrays:
        """The arrays of these items."""
        count = len(items)
        owner, shift = _ints(items.owner), _ints(items.shift)
        size, start, end = _buffers(items.problem)
        heights, begins = np.zeros(count, np.int64), np.full(count, 1 << 60, np.int64)
        ends, areas = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.maximum.at(heights, owner, shift + size)
        np.minimum.at(begins, owner, start)
        np.maximum.at(ends, owner, end)
        np.add.at(areas, owner, size * (end - start))
        row, other, low, high, pair = _list_conflicts(items.problem, owner, shift, size)
        starts = np.zeros(count + 1, np.int64)
        starts[1:] = np.cumsum(np.bincount(row, minlength=count))
        leads = np.ones(len(other), np.int64)
        leads[1:] = pair[1:] != pair[:-1]
        leads[starts[:-1][starts[:-1] < len(leads)]] = 1
        degrees = np.add.reduceat(np.append(leads, 0), starts[:-1]) * (starts[1:] > starts[:-1])
        return Arrays(starts, other, low, high, leads, heights, begins, ends, areas, degrees)

    def orders(self) -> Iterator[Ints]:
        """The orders of `GreedyPlacer.orders`."""
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


def _buffers(problem: Problem) -> tuple[Ints, Ints, Ints]:
    """Sizes, starts and ends of the buffers."""
    table = np.array([(b.size, b.start, b.end) for b in problem.buffers], np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _list_conflicts(
    problem: Problem, owner: Ints, shift: Ints, size: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """For each entry: item, other item, forbidden interval of the difference of their offsets,
    number of the pair. Sorted by item, then by when the pair turns up, then by interval."""
    near = problem.neighbours
    count = len(near)
    i = np.repeat(np.arange(count), [len(n) for n in near])
    j = np.fromiter(chain.from_iterable(near), np.int64, len(i))
    inner = owner[i] < owner[j]
    i, j = i[inner], j[inner]
    pair = owner[i] * count + owner[j]
    _, place, which = np.unique(pair, return_index=True, return_inverse=True)
    seen = place[which]
    move = shift[i] - shift[j]
    low, high = move - size[j], move + size[i]
    keys = np.array([a * count + b for a, b in problem.permits], np.int64)
    permitted = np.flatnonzero(np.isin(i * count + j, keys))
    permitted_entries = [
        (at, stretch[0] + int(move[at]), stretch[1] + int(move[at]))
        for at in permitted.tolist()
        for stretch in forbidden(problem, int(i[at]), int(j[at]))
    ]
    table = np.array(permitted_entries, np.int64).reshape(-1, 3)
    unpermitted = np.ones(len(i), bool)
    unpermitted[permitted] = False
    at = np.concatenate((np.flatnonzero(unpermitted), table[:, 0]))
    low, high = (
        np.concatenate((low[unpermitted], table[:, 1])),
        np.concatenate((high[unpermitted], table[:, 2])),
    )
    order = np.lexsort((low, seen[at]))
    at, low, high = at[order], low[order], high[order]
    first_entries, tops = np.empty(len(low), np.int64), high.copy()
    first_entries, high = (
        first_entries[: _unite_intervals(seen[at], low, high, first_entries, tops)],
        tops,
    )
    at, low, high = at[first_entries], low[first_entries], high[first_entries]
    row = np.concatenate((owner[i[at]], owner[j[at]]))
    other = np.concatenate((owner[j[at]], owner[i[at]]))
    low, high = np.concatenate((low, -high)), np.concatenate((high, -low))
    number = np.concatenate((seen[at], seen[at]))
    order = np.lexsort((low, number, row))
    return row[order], other[order], low[order], high[order], number[order]


@compiled
def _unite_intervals(pair: Ints, low: Ints, high: Ints, first_entries: Ints, tops: Ints) -> int:
    """Unite intervals of a pair that overlap; they are sorted by pair and low. Returns how many are
    left. Notes which intervals begin a united one, and in `tops` (at first equal to `high`) where
    that ends. Two intervals that only touch stay apart: their common point is free."""
    count = 0
    for e in range(len(low)):
        if count:
            first = first_entries[count - 1]
            if pair[first] == pair[e] and low[e] < tops[first]:
                if high[e] > tops[first]:
                    tops[first] = high[e]
                continue
        first_entries[count] = e
        count += 1
    return count


__all__ = ["Arrays"]
