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

from dataclasses import dataclass

from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.climbing import climb_stages
from tflm_planner.memory.allocators.items import Items
from tflm_planner.memory.allocators.machine_code import Ints

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


def place_stages(items: Items, bound: int, rounds: int, turns: int = TURNS) -> list[int]:
    """Offsets. rounds: of the climb in each stage. turns: times that a stage which came out
    highest is placed before the others."""
    arrays = Arrays.of(items)
    orders = list(arrays.orders())
    stages = sorted(_stages(items), key=lambda s: -s.most)
    best: Ints | None = None
    least = 1 << 62
    for _ in range(turns + 1):
        listed = [stage.items for stage in stages]
        offsets, tops = climb_stages(arrays, listed, orders, bound=bound, rounds=rounds, work=_WORK)
        highest = int(tops.max(initial=0))
        if highest < least:
            best, least = offsets, highest
        if least <= bound or not rounds:
            break
        worst = int(tops.argmax())
        if worst == 0:
            break
        stages.insert(0, stages.pop(worst))
    assert best is not None
    return best.tolist()


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


__all__ = ["place_stages"]
