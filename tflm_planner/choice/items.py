"""What partitions are made of: sketches as items, the regions that they stand for, the work of
trying them. It must not know which are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import cast

from tflm_planner.choice.partition import Cover, Item, Way
from tflm_planner.choice.sketches.loops import LoopSketch
from tflm_planner.choice.sketches.sketch import Sketch
from tflm_planner.choice.trials.trial import Outcome, Schedule
from tflm_planner.passes.recipes import Border
from tflm_planner.passes.stream import Edge, Loop
from tflm_planner.passes.tile import ROWS, Scheme
from tflm_planner.passes.tiler import Halo

LARGE_WORK = 300
"""Operators of an interval in tiles that is tried in one way only."""
SCHEDULES: tuple[Schedule, ...] = ("file", "best")
"""Orders of the tiles that are tried."""
BATCH = 24
"""Items tried in one round at most."""
_LOOP_WORK, _USE_WORK = 12, 4
"""Operators of a loop beside those of its region, and for each of them, about."""


def tiled_item(sketch: Sketch, halo: Halo) -> Item:
    """An interval in tiles."""
    key = Way(sketch.first, sketch.end, (sketch.axis, sketch.parts), halo)
    return Item(
        sketch.first, sketch.end, sketch.head, sketch.tail, max(sketch.instructions, 0), key
    )


def looped_item(sketch: LoopSketch) -> Item:
    """An interval in a loop."""
    key = Way(sketch.first, sketch.end, (ROWS, sketch.rows), edge=sketch.border)
    return Item(sketch.first, sketch.end, sketch.head, sketch.tail, sketch.instructions, key)


def tried_item(item: Item, outcome: Outcome) -> Item:
    """The same item with the figures of a trial."""
    return replace(
        item,
        head=outcome.head,
        tail=outcome.tail,
        cost=max(outcome.instructions, 0),
        tried=True,
    )


def region_of(item: Item, start: int, border: Border) -> Scheme | Loop:
    """The scheme or the loop of an item, with positions counted from `start`."""
    ops = tuple(range(item.first - start, item.end - start))
    if item.key.edge:
        return Loop(ops, item.key.split[1], cast("Edge", item.key.edge))
    return Scheme(ops, (item.key.split,), halo=item.key.halo, border=border)


def ways_to_try(item: Item, borders: Sequence[Border]) -> list[tuple[Border, Schedule]]:
    """Borders and schedules to try an item with; few where a trial takes long."""
    if item.key.edge:
        return [("waste", "file")]
    if work_of(item) > LARGE_WORK:
        return [(borders[-1], "file")]
    return [(b, s) for b in borders for s in SCHEDULES]


def work_of(item: Item) -> int:
    """Operators that a trial of an item plans, about."""
    if item.key.edge:
        return _LOOP_WORK + _USE_WORK * (item.end - item.first)
    return (item.end - item.first) * item.key.split[1]


def work_added(region: Scheme | Loop) -> int:
    """Operators that a region in tiles or in a loop adds, about."""
    if isinstance(region, Loop):
        return _LOOP_WORK + _USE_WORK * len(region.ops)
    return (prod(n for _, n in region.splits) - 1) * len(region.ops)


def spread(covers: list[Cover]) -> list[Cover]:
    """The most promising cover, then some of all promises: what looks best is often not true, and
    a good one should be at hand whenever time is up."""
    return [*covers[:1], *covers[1 :: max(len(covers) // BATCH, 1)], *covers]


def batch_of(items: Iterable[Item]) -> list[Item]:
    """The first few items; fewer of those that take long."""
    found: dict[Way, Item] = {}
    for item in items:
        found[item.key] = item
        if len(found) >= BATCH or sum(map(work_of, found.values())) > BATCH * LARGE_WORK:
            break
    return list(found.values())
