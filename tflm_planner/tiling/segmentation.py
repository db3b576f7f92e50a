"""Cuts a line of operators into intervals, the best way, by dynamic programming.

    0 ---- 3 ------- 9 -- 10 -- 11 ------- 16     an item for each stretch: as it is, or in tiles

Under a cap on the head, what items add to the tail and to the instructions sums up, so the least
tail for every number of instructions is found exactly, position by position; over all caps that
matter this is the whole front of arena against latency. It knows numbers, not operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflm_planner.transforms.tile.tiler import Halo

Ints = npt.NDArray[np.int64]

UNITS = 200
"""Steps in which instructions are counted."""


@dataclass(frozen=True, slots=True)
class SegmentKey:
    """How positions first .. end-1 may be run. split: (axis, parts) of tiles; (axis, rows a turn)
    of a loop. halo: of tiles, as in `transforms.tile.tiler`. edge: what a loop does at the
    image's borders; "" for tiles."""

    first: int
    end: int
    split: tuple[int, int]
    halo: Halo = "recompute"
    edge: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A way with its price. head: bytes that it needs. tail, cost: bytes and instructions that it
    adds. tried: whether these are figures of a trial, not of a sketch."""

    first: int
    end: int
    head: int
    tail: int
    cost: int
    key: SegmentKey
    tried: bool = False


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A way through all positions. items: those that are more than positions as they are."""

    items: tuple[Segment, ...]
    head: int
    tail: int
    cost: int

    @property
    def ways(self) -> tuple[SegmentKey, ...]:
        """What is run otherwise than it is."""
        return tuple(i.key for i in self.items)

    @property
    def tried(self) -> bool:
        """Whether all its figures come from trials."""
        return all(i.tried for i in self.items)


class Segmenter:
    """All items, and the cheapest way found for any cap. `needs`: bytes that each position needs
    as it is. `allowed`: instructions that may be added."""

    def __init__(self, needs: Sequence[int], allowed: int) -> None:
        self._needs, self._count = list(needs), len(needs)
        self._allowed = max(allowed, 1)
        self._ending: list[dict[SegmentKey, Segment]] = [{} for _ in range(self._count + 1)]
        self._known: dict[tuple[int, frozenset[SegmentKey]], list[Segmentation]] = {}
        self._listed: _Table | None = None

    def add(self, item: Segment) -> None:
        """Offer an item; one of the same key is replaced."""
        before = self._ending[item.end].get(item.key)
        if item.cost > self._allowed:
            self.drop(item)
            return
        self._ending[item.end][item.key] = item
        if before is None or (item.head, item.tail, item.cost) < (
            max(item.head, before.head), max(item.tail, before.tail), max(item.cost, before.cost),
        ):  # fmt: skip
            self._known = {
                key: covers
                for key, covers in self._known.items()
                if key[0] < item.head or item.key in key[1]
            }
        self._forget(item, before)

    def drop(self, item: Segment) -> None:
        """Take an item back."""
        self._forget(item, self._ending[item.end].pop(item.key, None))

    def _forget(self, item: Segment, before: Segment | None) -> None:
        """What got dearer changes only the covers that it is part of."""
        self._listed = None
        if before is None or not self._known:
            return
        self._known = {
            key: covers
            for key, covers in self._known.items()
            if not any(i.key == item.key for c in covers for i in c.items)
        }

    def caps(self) -> list[int]:
        """Heads that may make a difference, the lowest first."""
        heads = {i.head for items in self._ending for i in items.values()} | set(self._needs)
        return sorted(h for h in heads if h <= max(self._needs, default=0))

    def covers(self, cap: int) -> list[Segmentation]:
        """With heads up to `cap`: those with the least tail for their instructions, the slowest
        first. Empty where the cap cannot be kept."""
        return self.without(cap, frozenset())

    def without(self, cap: int, banned: frozenset[SegmentKey]) -> list[Segmentation]:
        """The same, but for these ways."""
        if (cap, banned) not in self._known:
            self._known[cap, banned] = self._solved(cap, banned)
        return self._known[cap, banned]

    def _solved(self, cap: int, banned: frozenset[SegmentKey]) -> list[Segmentation]:
        # Compiled code, which takes its time to import.
        from tflm_planner.tiling.segmentation_kernel import FAR, best_segmentations

        table = self._table()
        usable = np.ones(len(table.items), np.bool_)
        if banned:
            usable[[k for k, item in enumerate(table.items) if item.key in banned]] = False
        last, choice = best_segmentations(
            table.needs, table.starts, table.figures, usable, cap, UNITS
        )
        found: list[Segmentation] = []
        units = UNITS
        while units >= 0 and last[units] < FAR:
            least = int(np.argmax(last == last[units]))  # as few instructions for this tail
            found.append(self._walk(table, choice, least))
            units = least - 1
        return found

    def _walk(self, table: _Table, choice: Ints, units: int) -> Segmentation:
        at, items, head = self._count, list[Segment](), 0
        while at > 0:
            taken = int(choice[at, units])
            if taken < 0:
                head = max(head, self._needs[at - 1])
                at -= 1
                continue
            item = table.items[taken]
            items.append(item)
            head, at, units = max(head, item.head), item.first, units - int(table.figures[3, taken])
        items.reverse()
        return Segmentation(
            tuple(items), head, sum(i.tail for i in items), sum(i.cost for i in items)
        )

    def _table(self) -> _Table:
        """All items as arrays, until one comes or goes."""
        if self._listed is None:
            items = [item for ending in self._ending for item in ending.values()]
            starts = np.cumsum([0, *map(len, self._ending)])
            units = [-(-max(i.cost, 0) * UNITS // self._allowed) for i in items]
            rows = [(i.first, i.head, i.tail, u) for i, u in zip(items, units, strict=True)]
            figures = np.array(rows, np.int64).reshape(-1, 4).T
            self._listed = _Table(
                items,
                np.array(self._needs, np.int64),
                starts.astype(np.int64),
                np.ascontiguousarray(figures),
            )
        return self._listed


@dataclass(frozen=True)
class _Table:
    """items: by their ends, as they came. starts: of those of each end. figures: where they begin,
    their heads, tails, and units of instructions."""

    items: list[Segment]
    needs: Ints
    starts: Ints
    figures: Ints
