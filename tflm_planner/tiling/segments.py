"""What partitions are made of: sketches as items, the regions that they stand for, the work of
trying them. It must not know which are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import cast

from tflm_planner.tiling.estimate.loops import LoopEstimate
from tflm_planner.tiling.estimate.tiles import TileEstimate
from tflm_planner.tiling.evaluate.candidate import Evaluation, Schedule
from tflm_planner.tiling.segmentation import Segment, Segmentation, SegmentKey
from tflm_planner.transforms.row_loop import Edge, LoopedRegion
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import ROWS, TiledRegion
from tflm_planner.transforms.tile.tiler import Halo

LARGE_WORK = 300
"""Operators of an interval in tiles that is tried in one way only."""
SCHEDULES: tuple[Schedule, ...] = ("file", "best")
"""Orders of the tiles that are tried."""
BATCH = 24
"""Items tried in one round at most."""
_LOOP_WORK, _USE_WORK = 12, 4
"""Operators of a loop beside those of its region, and for each of them, about."""


def tiled_segment(sketch: TileEstimate, halo: Halo) -> Segment:
    """An interval in tiles."""
    key = SegmentKey(sketch.first, sketch.end, (sketch.axis, sketch.parts), halo)
    return Segment(
        sketch.first, sketch.end, sketch.head, sketch.tail, max(sketch.instructions, 0), key
    )


def looped_segment(sketch: LoopEstimate) -> Segment:
    """An interval in a loop."""
    key = SegmentKey(sketch.first, sketch.end, (ROWS, sketch.rows), edge=sketch.border)
    return Segment(sketch.first, sketch.end, sketch.head, sketch.tail, sketch.instructions, key)


def evaluated_segment(item: Segment, outcome: Evaluation) -> Segment:
    """The same item with the figures of a trial."""
    return replace(
        item,
        head=outcome.head,
        tail=outcome.tail,
        cost=max(outcome.instructions, 0),
        tried=True,
    )


def region_of(item: Segment, start: int, border: Border) -> TiledRegion | LoopedRegion:
    """The scheme or the loop of an item, with positions counted from `start`."""
    ops = tuple(range(item.first - start, item.end - start))
    if item.key.edge:
        return LoopedRegion(ops, item.key.split[1], cast("Edge", item.key.edge))
    return TiledRegion(ops, (item.key.split,), halo=item.key.halo, border=border)


def tiling_variants(item: Segment, borders: Sequence[Border]) -> list[tuple[Border, Schedule]]:
    """Borders and schedules to try an item with; few where a trial takes long."""
    if item.key.edge:
        return [("waste", "file")]
    if segment_work(item) > LARGE_WORK:
        return [(borders[-1], "file")]
    return [(b, s) for b in borders for s in SCHEDULES]


def segment_work(item: Segment) -> int:
    """Operators that a trial of an item plans, about."""
    if item.key.edge:
        return _LOOP_WORK + _USE_WORK * (item.end - item.first)
    return (item.end - item.first) * item.key.split[1]


def added_work(region: TiledRegion | LoopedRegion) -> int:
    """Operators that a region in tiles or in a loop adds, about."""
    if isinstance(region, LoopedRegion):
        return _LOOP_WORK + _USE_WORK * len(region.ops)
    return (prod(n for _, n in region.splits) - 1) * len(region.ops)


def sample_by_promise(covers: list[Segmentation]) -> list[Segmentation]:
    """The most promising cover, then some of all promises: what looks best is often not true, and
    a good one should be at hand whenever time is up."""
    return [*covers[:1], *covers[1 :: max(len(covers) // BATCH, 1)], *covers]


def first_batch(items: Iterable[Segment]) -> list[Segment]:
    """The first few items; fewer of those that take long."""
    found: dict[SegmentKey, Segment] = {}
    for item in items:
        found[item.key] = item
        if len(found) >= BATCH or sum(map(segment_work, found.values())) > BATCH * LARGE_WORK:
            break
    return list(found.values())
