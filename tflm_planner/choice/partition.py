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

from tflm_planner.passes.tiler import Halo

UNITS = 200
"""Steps in which instructions are counted."""
_FAR = np.int64(1) << 60


@dataclass(frozen=True, slots=True)
class Way:
    """How positions first .. end-1 may be run. split: (axis, parts) of tiles; (axis, rows a turn)
    of a loop. halo: of tiles, as in `passes.tiler`. edge: what a loop does at the image's borders;
    "" for tiles."""

    first: int
    end: int
    split: tuple[int, int]
    halo: Halo = "recompute"
    edge: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A way with its price. head: bytes that it needs. tail, cost: bytes and instructions that it
    adds. tried: whether these are figures of a trial, not of a sketch."""

    first: int
    end: int
    head: int
    tail: int
    cost: int
    key: Way
    tried: bool = False


@dataclass(frozen=True, slots=True)
class Cover:
    """A way through all positions. items: those that are more than positions as they are."""

    items: tuple[Item, ...]
    head: int
    tail: int
    cost: int

    @property
    def ways(self) -> tuple[Way, ...]:
        """What is run otherwise than it is."""
        return tuple(i.key for i in self.items)

    @property
    def tried(self) -> bool:
        """Whether all its figures come from trials."""
        return all(i.tried for i in self.items)


class Partition:
    """All items, and the cheapest way found for any cap. `needs`: bytes that each position needs
    as it is. `allowed`: instructions that may be added."""

    def __init__(self, needs: Sequence[int], allowed: int) -> None:
        self._needs, self._count = list(needs), len(needs)
        self._allowed = max(allowed, 1)
        self._ending: list[dict[Way, Item]] = [{} for _ in range(self._count + 1)]
        self._known: dict[tuple[int, frozenset[Way]], list[Cover]] = {}

    def add(self, item: Item) -> None:
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
        self._forget(item)

    def drop(self, item: Item) -> None:
        """Take an item back."""
        self._ending[item.end].pop(item.key, None)
        self._forget(item)

    def _forget(self, item: Item) -> None:
        """What got dearer changes only the covers that it is part of."""
        self._known = {
            key: covers
            for key, covers in self._known.items()
            if not any(i.key == item.key for c in covers for i in c.items)
        }

    def caps(self) -> list[int]:
        """Heads that may make a difference, the lowest first."""
        heads = {i.head for items in self._ending for i in items.values()} | set(self._needs)
        return sorted(h for h in heads if h <= max(self._needs, default=0))

    def covers(self, cap: int) -> list[Cover]:
        """With heads up to `cap`: those with the least tail for their instructions, the slowest
        first. Empty where the cap cannot be kept."""
        return self.without(cap, frozenset())

    def without(self, cap: int, banned: frozenset[Way]) -> list[Cover]:
        """The same, but for these ways."""
        if (cap, banned) not in self._known:
            self._known[cap, banned] = self._solved(cap, banned)
        return self._known[cap, banned]

    def _solved(self, cap: int, banned: frozenset[Way]) -> list[Cover]:
        best = np.full((self._count + 1, UNITS + 1), _FAR, np.int64)
        best[0] = 0
        taken: list[list[tuple[Item | None, npt.NDArray[np.bool_], int]]] = [[]]
        everywhere = np.ones(UNITS + 1, np.bool_)
        for end in range(1, self._count + 1):
            row = best[end]
            steps: list[tuple[Item | None, npt.NDArray[np.bool_], int]] = []
            if self._needs[end - 1] <= cap:
                row[:] = best[end - 1]
                steps.append((None, everywhere, 0))
            for item in self._ending[end].values():
                units = -(-item.cost * UNITS // self._allowed) if item.cost > 0 else 0
                if item.head > cap or item.key in banned or best[item.first, UNITS - units] >= _FAR:
                    continue
                offer = best[item.first, : UNITS + 1 - units] + item.tail
                better = np.zeros(UNITS + 1, np.bool_)
                better[units:] = offer < row[units:]
                if better.any():
                    row[units:] = np.minimum(row[units:], offer)
                    steps.append((item, better, units))
            taken.append(steps)
        return self._read(best, taken)

    def _read(
        self,
        best: npt.NDArray[np.int64],
        taken: list[list[tuple[Item | None, npt.NDArray[np.bool_], int]]],
    ) -> list[Cover]:
        found: list[Cover] = []
        last = best[self._count]
        units = UNITS
        while units >= 0 and last[units] < _FAR:
            least = int(np.argmax(last == last[units]))  # as few instructions for this tail
            found.append(self._walk(taken, least))
            units = least - 1
        return found

    def _walk(
        self, taken: list[list[tuple[Item | None, npt.NDArray[np.bool_], int]]], units: int
    ) -> Cover:
        at, items, head = self._count, list[Item](), 0
        while at > 0:
            item, _, spent = next(step for step in reversed(taken[at]) if step[1][units])
            if item is None:
                head = max(head, self._needs[at - 1])
                at -= 1
                continue
            items.append(item)
            head, at, units = max(head, item.head), item.first, units - spent
        items.reverse()
        return Cover(tuple(items), head, sum(i.tail for i in items), sum(i.cost for i in items))
