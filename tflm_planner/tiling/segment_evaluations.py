"""Evaluates segments: intervals that are cut out of the model, tiled and planned by themselves.

    segment (estimated) --(borders, tile orders)--> candidates --best--> segment (evaluated) or None

One `SegmentEvaluations` serves a whole search, because its modes share the figures of loops. It
must not know segmentations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tflm_planner.memory.order import OrderMethod
from tflm_planner.tiling.estimate.interval import ScheduleInterval
from tflm_planner.tiling.evaluate.candidate import Candidate, Evaluation
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segmentation import InLoop, Segment, SegmentKey
from tflm_planner.tiling.segments import (
    added_work,
    evaluated_segment,
    evaluation_variants,
    region_of,
)
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.operator_tiles import Border


@dataclass
class SegmentEvaluations:
    """The segments that one search has evaluated."""

    workers: Workers
    options: TilingOptions
    models: ModelEvaluations
    order: tuple[int, ...]
    """The order of the operators in the schedule."""
    count: int = 0
    """Number of segments evaluated so far."""
    loops: dict[SegmentKey, Segment | None] = field(
        default_factory=dict[SegmentKey, "Segment | None"]
    )
    """Segments in loops that were evaluated; None if the loop is impossible."""

    def evaluate(self, segments: Sequence[Segment], bind_views: bool) -> list[Segment | None]:
        """The segments with figures of evaluations; None if a segment is impossible or needs
        operators that are not permitted. bind_views: views lie inside their parents."""
        borders = self.options.borders(self.models.used_kinds)
        budget = self.options.search_budget
        variants: list[tuple[Segment, Border, OrderMethod]] = [
            (segment, *variant)
            for segment in segments
            for variant in evaluation_variants(segment, borders, budget)
        ]
        requests = [self._request(*variant, bind_views) for variant in variants]
        self.count += len(segments)
        unknown = {self.workers.key(r): r for r in requests if not self.workers.knows(r)}
        self.models.work.spend(sum(map(_work_of_part, unknown.values())))
        possible: dict[SegmentKey, list[tuple[Evaluation, Border]]] = {s.key: [] for s in segments}
        evaluations = self.models.request(requests)
        for (segment, border, _), evaluation in zip(variants, evaluations, strict=True):
            if evaluation is not None:
                possible[segment.key].append((evaluation, border))
        return [self._with_best(segment, possible[segment.key]) for segment in segments]

    def _request(
        self, segment: Segment, border: Border, tile_order: OrderMethod, bind_views: bool
    ) -> EvaluationRequest:
        region = region_of(segment, segment.interval.first, border)
        candidate = Candidate((region,), bind_views, None, Effort.CLIMB, tile_order)
        return EvaluationRequest(candidate, ScheduleInterval(self.order, segment.interval))

    def _with_best(
        self, segment: Segment, possible: list[tuple[Evaluation, Border]]
    ) -> Segment | None:
        """The segment with the figures of its best evaluation; None if there is none."""
        best = min(possible, key=lambda p: (p[0].head, p[0].tail, p[0].instructions), default=None)
        evaluated = None
        if best is not None:
            evaluated = evaluated_segment(segment, *best)
        if isinstance(segment.key.form, InLoop):
            self.loops[segment.key] = evaluated
        return evaluated

    def candidate_of(self, segments: Iterable[Segment], bind_views: bool) -> Candidate:
        """The whole model with these segments."""
        regions = tuple(region_of(s, 0, s.border) for s in segments)
        return Candidate(regions, bind_views, self.order, Effort.CLIMB)


def _work_of_part(request: EvaluationRequest) -> int:
    """Operators that an evaluation of an interval plans."""
    untiled = request.part.interval.size if request.part else 0
    return untiled + sum(map(added_work, request.candidate.regions))
