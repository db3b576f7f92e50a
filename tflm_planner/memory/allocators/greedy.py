"""Greedy allocators: items in some order, each at the first or the tightest free offset.

Knows items and their forbidden distances. It must not know TFLite or time limits.

    offset ^   |  free   |         Placed neighbours forbid open intervals of offsets. First fit
           |   | placed  |  gap    takes the lowest offset outside them all, best fit the gap that
           |   |---------|<------  leaves the least slack. A permitted alias that is not bound is a
           |   | placed  |         single free offset: first fit may find it without special code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from tflm_planner.memory.allocators.conflicts import ItemConflicts, conflicts_of
from tflm_planner.memory.allocators.items import Items, areas_of, spans_of

Order = list[int]


class GreedyPlacer:
    """Places items greedily. Their conflicts are computed when they are first needed, once for all
    orders."""

    def __init__(self, items: Items) -> None:
        self.items = items

    @cached_property
    def _conflicts(self) -> tuple[ItemConflicts, ...]:
        return conflicts_of(self.items)

    def first_fit(self, order: Sequence[int], stop: int | None = None) -> list[int] | None:
        """Offsets when items are placed in this order, each as low as possible.

        Returns None as soon as the height reaches `stop`, if it is given.
        """
        offsets = [-1] * len(self.items)
        conflicts, heights = self._conflicts, self.items.heights
        blocked: list[tuple[int, int]] = []
        for k in order:
            blocked.clear()
            for other, stretches in conflicts[k].items():  # `blocked_intervals` takes twice as long
                base = offsets[other]
                if base >= 0:
                    for low, high in stretches:
                        blocked.append((base - high, base - low))
            offset = lowest_fit(blocked)
            if stop is not None and offset + heights[k] >= stop:
                return None
            offsets[k] = offset
        return offsets

    def best_fit(self, order: Sequence[int]) -> list[int]:
        """Offsets when items are placed in this order, each in the free gap with the least
        slack."""
        offsets = [-1] * len(self.items)
        for k in order:
            best_offset, slack, bottom = 0, None, 0
            for low, high in sorted(blocked_intervals(self._conflicts[k], offsets)):
                if low >= bottom and (slack is None or low - bottom < slack):
                    best_offset, slack = bottom, low - bottom
                bottom = max(bottom, high)
            offsets[k] = bottom if slack is None else best_offset
        return offsets

    def pendulum(self, order: Sequence[int], height: int) -> list[int]:
        """Offsets when items alternate between the bottom and the top, which is best for a chain of
        operators.

        An item is placed at offset 0 if that is free. Otherwise it is placed as high as possible
        below `height`, or by first fit if it does not fit there.
        """
        offsets = [-1] * len(self.items)
        for k in order:
            blocked = list(blocked_intervals(self._conflicts[k], offsets))
            low = lowest_fit(blocked)
            top = height - self.items.heights[k]
            for bottom, upper in sorted(blocked, key=lambda i: -i[1]):
                if bottom < top < upper:
                    top = bottom
            offsets[k] = top if low > 0 and top > low else low
        return offsets

    def orders(self) -> Iterator[tuple[str, Order]]:
        """Named orders, the most promising first; ties go to the earlier start, then to the lower
        index."""
        items, conflicts = self.items, self._conflicts
        heights, spans, areas = items.heights, spans_of(items), areas_of(items)

        def by(key: Callable[[int], object]) -> Order:
            return sorted(range(len(items)), key=lambda k: (key(k), spans[k][0], k))

        yield "size", by(lambda k: -heights[k])
        crowd = [heights[k] + sum(heights[j] for j in conflicts[k]) for k in range(len(items))]
        yield "conflict", by(lambda k: (-crowd[k], -heights[k]))
        yield "area", by(lambda k: -areas[k])
        yield "span", by(lambda k: (spans[k][0] - spans[k][1], -heights[k]))
        yield "start", by(lambda k: (spans[k][0], -heights[k]))
        yield "end", by(lambda k: (-spans[k][1], -heights[k]))
        yield "degree", by(lambda k: (-len(conflicts[k]), -heights[k]))

    def first_fits(
        self, stop: Callable[[], int | None] = lambda: None
    ) -> Iterator[tuple[str, list[int]]]:
        """(name, offsets) of first fit in each order whose height is below `stop()` at that time
        (None: any height). The caller ends the iteration when a plan is good enough."""
        for name, order in self.orders():
            offsets = self.first_fit(order, stop())
            if offsets is not None:
                yield f"first fit by {name}", offsets

    def others(self, bound: int) -> Iterator[tuple[str, list[int]]]:
        """(name, offsets) of the other greedy allocators, which win less often."""
        named_orders = list(self.orders())
        by_start = next(order for name, order in named_orders if name == "start")
        yield "pendulum", self.pendulum(by_start, bound)
        for name, order in named_orders:
            yield f"best fit by {name}", self.best_fit(order)

    def candidates(self, bound: int) -> Iterator[tuple[str, list[int]]]:
        """(name, offsets) of every greedy allocator."""
        yield from self.first_fits()
        yield from self.others(bound)


def blocked_intervals(
    conflicts: ItemConflicts, offsets: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """The open intervals of offsets that placed neighbours (offset not -1) forbid to an item."""
    for other, stretches in conflicts.items():
        base = offsets[other]
        if base >= 0:
            for low, high in stretches:
                yield base - high, base - low


def lowest_fit(blocked: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> int:
    """The lowest offset >= 0 that lies in none of the open intervals."""
    offset = 0
    for low, high in sorted(blocked):
        if low >= offset:
            break
        if high > offset:
            offset = high
    return offset
