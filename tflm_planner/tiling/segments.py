"""Segments made from estimates, the regions that they stand for, and the work of evaluating them.

It must not know which segments are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import cast

from tflm_planner.ops.window import ROWS
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.estimate.loops import LoopEstimate
from tflm_planner.tiling.estimate.tiles import TileEstimate
from tflm_planner.tiling.evaluate.candidate import Evaluation, Schedule
from tflm_planner.tiling.segmentation import Segment, Segmentation, SegmentKey
from tflm_planner.tiling.tilings import Region
from tflm_planner.transforms.row_loop import Edge, LoopedRegion
from tflm_planner.transforms.tile.box_plan import Halo
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import TiledRegion

TILE_ORDERS: tuple[Schedule, ...] = ("file", "best")
"""Orders of the tiled operators in which a candidate is evaluated."""
_LOOP_WORK, _WORK_PER_LOOPED_OPERATOR = 12, 4
"""Operators of a loop beside those of its region, and for each of them, about."""


def tiled_segment(estimate: TileEstimate, halo: Halo) -> Segment:
    """The segment of an estimate in tiles."""
    key = SegmentKey(estimate.first, estimate.end, (estimate.axis, estimate.parts), halo)
    return Segment(
        estimate.first,
        estimate.end,
        estimate.head,
        estimate.tail,
        max(estimate.instructions, 0),
        key,
    )


def looped_segment(estimate: LoopEstimate) -> Segment:
    """The segment of an estimate in a loop."""
    key = SegmentKey(estimate.first, estimate.end, (ROWS, estimate.rows), edge=estimate.border)
    return Segment(
        estimate.first, estimate.end, estimate.head, estimate.tail, estimate.instructions, key
    )


def evaluated_segment(segment: Segment, evaluation: Evaluation, border: Border) -> Segment:
    """The same segment with the figures of an evaluation, which was made with this border."""
    return replace(
        segment,
        head=evaluation.head,
        tail=evaluation.tail,
        instructions=max(evaluation.instructions, 0),
        is_evaluated=True,
        border=border,
    )


def region_of(segment: Segment, start: int, border: Border) -> Region:
    """The region that a segment stands for, with positions counted from `start`."""
    ops = tuple(range(segment.first - start, segment.end - start))
    key = segment.key
    if key.is_loop:
        return LoopedRegion(ops, key.split[1], cast("Edge", key.edge))
    return TiledRegion(ops, (key.split,), halo=key.halo, border=border)


def evaluation_variants(
    segment: Segment, borders: Sequence[Border], budget: SearchBudget
) -> list[tuple[Border, Schedule]]:
    """The borders and tile orders in which a segment is evaluated; one pair where evaluations take
    long."""
    if segment.key.is_loop:
        return [("waste", "file")]
    if segment_work(segment) > budget.variants_segment:
        return [(borders[-1], "file")]
    return [(border, tile_order) for border in borders for tile_order in TILE_ORDERS]


def segment_work(segment: Segment) -> int:
    """Operators that an evaluation of a segment plans, about."""
    if segment.key.is_loop:
        return _LOOP_WORK + _WORK_PER_LOOPED_OPERATOR * (segment.end - segment.first)
    return (segment.end - segment.first) * segment.key.split[1]


def added_work(region: Region) -> int:
    """Operators that a region adds to the model, about."""
    if isinstance(region, LoopedRegion):
        return _LOOP_WORK + _WORK_PER_LOOPED_OPERATOR * len(region.ops)
    return (prod(n for _, n in region.splits) - 1) * len(region.ops)


def sample_by_promise(
    segmentations: list[Segmentation], budget: SearchBudget
) -> list[Segmentation]:
    """The most promising segmentation first, then a sample over all promises, then all. The best
    promises are often broken, so others must have been evaluated whenever the search ends."""
    step = max(len(segmentations) // budget.batch, 1)
    return [*segmentations[:1], *segmentations[1::step], *segmentations]


def first_batch(segments: Iterable[Segment], budget: SearchBudget) -> list[Segment]:
    """The first few segments, each once; fewer if their evaluation takes long."""
    batch: dict[SegmentKey, Segment] = {}
    most_work = budget.batch * budget.variants_segment
    for segment in segments:
        batch[segment.key] = segment
        if len(batch) >= budget.batch or sum(map(segment_work, batch.values())) > most_work:
            break
    return list(batch.values())
