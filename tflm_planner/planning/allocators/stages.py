"""Places thousands of items stage by stage: between moments at which few of them live.

    bytes     |####|                      1st: the stage with the most bytes, alone and with care
              |####|      |##|            2nd: the next; what reaches into it stays where it is
         |####|####|##|###|##|###|
              ^       ^
              few items live

A first fit of everything mixes what has nothing to do with each other, and a climb spends its
rounds on the whole to move one item. It knows items and rounds, and no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflm_planner.planning.allocators.arrays import Arrays
from tflm_planner.planning.allocators.climbing import climb
from tflm_planner.planning.allocators.items import Items
from tflm_planner.planning.allocators.kernel import Ints

_FEW = 8
"""Items that live at the border of a stage at most."""
_WORK = 40_000_000
"""Rounds times conflicts of one stage at most."""
TURNS = 16
"""Times that another stage is placed first."""


@dataclass(frozen=True)
class _Stage:
    """Items that live from one border to the next, and the most bytes of them at one time."""

    items: tuple[int, ...]
    most: int


def staged(items: Items, bound: int, rounds: int, turns: int = TURNS) -> list[int]:
    """Offsets. rounds: of the climb in each stage. turns: times that a stage which came out
    highest is placed before the others."""
    placing = _Placing.of(items, bound, rounds)
    stages = sorted(_stages(items), key=lambda s: -s.most)
    best: Ints | None = None
    least = 1 << 62
    for _ in range(turns + 1):
        offsets, tops = placing.placed(stages)
        if max(tops, default=0) < least:
            best, least = offsets, max(tops, default=0)
        if least <= bound or not rounds:
            break
        worst = tops.index(max(tops))
        if worst == 0:
            break
        stages.insert(0, stages.pop(worst))
    assert best is not None
    return best.tolist()


@dataclass(frozen=True)
class _Placing:
    """arrays: the items. listed: orders to begin with. bound: bytes that are low enough."""

    arrays: Arrays
    listed: list[Ints]
    bound: int
    rounds: int

    @staticmethod
    def of(items: Items, bound: int, rounds: int) -> _Placing:
        """What all turns need."""
        arrays = Arrays.of(items)
        return _Placing(arrays, list(arrays.orders()), bound, rounds)

    def placed(self, stages: Sequence[_Stage]) -> tuple[Ints, list[int]]:
        """Offsets, and the height that each stage came to."""
        heights = self.arrays.heights
        offsets = np.full(len(heights), -1, np.int64)
        tops: list[int] = []
        for stage in stages:
            listed = np.array(stage.items, np.int64)
            fresh = listed[offsets[listed] < 0]
            offsets = self._added(offsets, fresh, max(tops, default=self.bound))
            tops.append(int((offsets[fresh] + heights[fresh]).max(initial=0)))
        return offsets, tops

    def _added(self, offsets: Ints, fresh: Ints, enough: int) -> Ints:
        """The offsets with those of `fresh`, which need not lie lower than `enough`."""
        arrays = self.arrays
        best, least = offsets, 1 << 62
        if not len(fresh):
            return best
        chosen = np.zeros(len(offsets), bool)
        chosen[fresh] = True
        for order in self.listed:
            found = climb(arrays, order[chosen[order]], given=offsets)
            top = int((found[fresh] + arrays.heights[fresh]).max())
            if top < least:
                best, least = found, top
            if least <= enough:
                return best
        if not self.rounds:
            return best
        order = fresh[np.lexsort((fresh, best[fresh]))]
        work = int((arrays.starts[fresh + 1] - arrays.starts[fresh] + 1).sum())
        most = min(self.rounds, _WORK // work + 1)
        return climb(arrays, order, bound=enough, rounds=most, given=offsets)


def _stages(items: Items) -> list[_Stage]:
    """The stages, in the order of time."""
    spans, heights = items.spans, items.heights
    times = sorted({t for span in spans for t in span})
    starts = sorted(range(len(items)), key=lambda k: spans[k][0])
    found: list[_Stage] = []
    live: list[int] = []
    inside: dict[int, None] = {}
    most, cursor = 0, 0
    for time in times:
        live = [k for k in live if spans[k][1] > time]
        if inside and len(live) <= _FEW:
            found.append(_Stage(tuple(inside), most))
            inside, most = dict.fromkeys(live), 0
        while cursor < len(starts) and spans[starts[cursor]][0] == time:
            live.append(starts[cursor])
            inside[starts[cursor]] = None
            cursor += 1
        most = max(most, sum(heights[k] for k in live))
    if inside:
        found.append(_Stage(tuple(inside), most))
    return found


__all__ = ["staged"]
