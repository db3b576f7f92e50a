"""Places thousands of items stage by stage; stages end at times at which few items live.

    bytes     |####|                      1st: the stage with the most bytes is placed alone
              |####|      |##|            2nd: the next; items that an earlier stage has placed
         |####|####|##|###|##|###|             keep their offsets
              ^       ^
              few items live

A first fit of all items mixes items that never live near each other, and a climb over all of them
spends a round on the whole problem to move a single item. It knows items and rounds, and no clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.climbing import climb_stages
from tflm_planner.memory.allocators.items import Items, spans_of
from tflm_planner.memory.allocators.machine_code import Ints
from tflm_planner.memory.budgets import DEFAULT_PACK_BUDGET, PackBudget


@dataclass(frozen=True)
class _Stage:
    """Items that live between two borders in time, and the largest sum of their bytes at one
    time."""

    items: tuple[int, ...]
    most: int


def place_stages(
    items: Items,
    bound: int,
    rounds: int,
    reorders: int | None = None,
    budget: PackBudget = DEFAULT_PACK_BUDGET,
) -> list[int]:
    """Offsets of all items. rounds: of the climb in each stage. reorders: how many times the stage
    with the highest result is moved to the front (None: `budget.stage_reorders`)."""
    arrays = Arrays.of(items)
    orders = list(arrays.orders())
    stages = sorted(_cut_into_stages(items, budget.border_items), key=lambda s: -s.most)
    best: Ints | None = None
    least = 1 << 62
    for _ in range((budget.stage_reorders if reorders is None else reorders) + 1):
        offsets, tops = climb_stages(
            arrays,
            [stage.items for stage in stages],
            orders,
            bound=bound,
            rounds=rounds,
            work=budget.stage_work,
        )
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


def _cut_into_stages(items: Items, border_items: int) -> list[_Stage]:
    """The stages in order of time, cut where at most `border_items` items live."""
    spans, heights = spans_of(items), items.heights
    times = sorted({t for span in spans for t in span})
    starts = sorted(range(len(items)), key=lambda k: spans[k][0])
    stages: list[_Stage] = []
    live: list[int] = []
    inside: dict[int, None] = {}
    most, cursor = 0, 0
    for time in times:
        live = [k for k in live if spans[k][1] > time]
        if inside and len(live) <= border_items:
            stages.append(_Stage(tuple(inside), most))
            inside, most = dict.fromkeys(live), 0
        while cursor < len(starts) and spans[starts[cursor]][0] == time:
            live.append(starts[cursor])
            inside[starts[cursor]] = None
            cursor += 1
        most = max(most, sum(heights[k] for k in live))
    if inside:
        stages.append(_Stage(tuple(inside), most))
    return stages


__all__ = ["place_stages"]
