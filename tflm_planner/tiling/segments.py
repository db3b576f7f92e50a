"""Segments made from estimates, the regions that they stand for, and the work of evaluating them.

It must not know which segments are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tflm_planner.memory.order import OrderMethod
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.estimate.loops import LoopEstimate
from tflm_planner.tiling.estimate.tiles import TileEstimate
from tflm_planner.tiling.evaluate.candidate import Evaluation
from tflm_planner.tiling.segmentation import InLoop, InTiles, Segment, Segmentation, SegmentKey
from tflm_planner.tiling.tilings import Region
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.box_plan import HaloPolicy
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import TiledRegion

TILE_ORDERS: tuple[OrderMethod, ...] = ("file", "best")
"""Orders of the tiled operators in which a candidate is evaluated."""
_LOOP_WORK, _WORK_PER_LOOPED_OPERATOR = 12, 4
"""Approximate number of operators of a loop beside those of its region, and for each of those."""


def tiled_segment(estimate: TileEstimate, halo: HaloPolicy) -> Segment:
    """The segment of an estimate in tiles."""
    key = SegmentKey(estimate.interval, InTiles(estimate.split, halo))
    return Segment(key, estimate.head, estimate.tail, max(estimate.instructions, 0))


def looped_segment(estimate: LoopEstimate) -> Segment:
    """The segment of an estimate in a loop."""
    key = SegmentKey(estimate.interval, InLoop(estimate.rows, estimate.border))
    return Segment(key, estimate.head, estimate.tail, estimate.instructions)


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
    ops, form = tuple(p - start for p in segment.interval.positions), segment.key.form
    if isinstance(form, InLoop):
        return LoopedRegion(ops, form.rows, form.border)
    return TiledRegion(ops, (form.split,), halo=form.halo, border=border)


def evaluation_variants(
    segment: Segment, borders: Sequence[Border], budget: SearchBudget
) -> list[tuple[Border, OrderMethod]]:
    """The borders and tile orders in which a segment is evaluated; only one pair if evaluations
    take long."""
    if isinstance(segment.key.form, InLoop):
        return [("waste", "file")]
    if segment_work(segment) > budget.variants_segment:
        return [(borders[-1], "file")]
    return [(border, tile_order) for border in borders for tile_order in TILE_ORDERS]


def segment_work(segment: Segment) -> int:
    """Approximate number of operators that an evaluation of a segment plans."""
    count, form = segment.interval.size, segment.key.form
    if isinstance(form, InLoop):
        return _LOOP_WORK + _WORK_PER_LOOPED_OPERATOR * count
    return count * form.split.parts


def added_work(region: Region) -> int:
    """Approximate number of operators that a region adds to the model."""
    if isinstance(region, LoopedRegion):
        return _LOOP_WORK + _WORK_PER_LOOPED_OPERATOR * len(region.ops)
    return (region.tiles - 1) * len(region.ops)


def sample_by_promise(
    segmentations: list[Segmentation], budget: SearchBudget
) -> list[Segmentation]:
    """The most promising segmentation first, then a sample over all promises, then all. The lowest
    promises are often broken, so others must be evaluated before the search ends."""
    step = max(len(segmentations) // budget.batch, 1)
    return [*segmentations[:1], *segmentations[1::step], *segmentations]


def first_batch(segments: Iterable[Segment], budget: SearchBudget) -> list[Segment]:
    """The first few segments without duplicates; fewer if their evaluation takes long."""
    batch: dict[SegmentKey, Segment] = {}
    most_work = budget.batch * budget.variants_segment
    for segment in segments:
        batch[segment.key] = segment
        if len(batch) >= budget.batch or sum(map(segment_work, batch.values())) > most_work:
            break
    return list(batch.values())
