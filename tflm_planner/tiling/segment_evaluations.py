"""Items made true: intervals cut out, tiled and planned by themselves.

    item (sketched) --(borders, schedules)--> trials --best--> item (tried), or None

One for a whole search, as modes share what loops come to. It must not know covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tflm_planner.tiling.evaluate.candidate import CLIMB, Candidate, Evaluation, Schedule
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segmentation import Segment, SegmentKey
from tflm_planner.tiling.segments import added_work, evaluated_segment, region_of, tiling_variants
from tflm_planner.transforms.tile.operator_tiles import Border


@dataclass
class SegmentEvaluations:
    """Of one search. order: that of the line. count: items tried so far. loops: what is known of
    those that are loops; None of those that cannot be."""

    workers: Workers
    options: TilingOptions
    whole: ModelEvaluations
    order: tuple[int, ...]
    count: int = 0
    loops: dict[SegmentKey, Segment | None] = field(
        default_factory=dict[SegmentKey, "Segment | None"]
    )
    _border: dict[SegmentKey, Border] = field(default_factory=dict[SegmentKey, Border])

    def made(self, items: Sequence[Segment], bound: bool) -> list[Segment | None]:
        """The items with figures of trials; None of those that cannot be, or may not. bound:
        whether views lie in their parents."""
        borders = self.options.borders(self.whole.used)
        ways: list[tuple[Segment, Border, Schedule]]
        ways = [(item, *way) for item in items for way in tiling_variants(item, borders)]
        questions = [
            EvaluationRequest(
                Candidate((region_of(item, item.first, border),), bound, None, CLIMB, how),
                (item.first, item.end),
                self.order,
            )
            for item, border, how in ways
        ]
        self.count += len(items)
        fresh = {self.workers.key(q): q for q in questions if not self.workers.knows(q)}
        self.whole.work.spend(sum(map(_work_of_interval, fresh.values())))
        possible: dict[SegmentKey, list[tuple[Evaluation, Border]]] = {
            item.key: [] for item in items
        }
        for (item, border, _), outcome in zip(ways, self.whole.outcomes(questions), strict=True):
            if outcome is not None:
                possible[item.key].append((outcome, border))
        return [self._best(item, possible[item.key]) for item in items]

    def _best(self, item: Segment, possible: list[tuple[Evaluation, Border]]) -> Segment | None:
        """The item as the best of its trials says."""
        least = min(possible, key=lambda p: (p[0].head, p[0].tail, p[0].instructions), default=None)
        made = None
        if least is not None:
            outcome, self._border[item.key] = least
            made = evaluated_segment(item, outcome)
        if item.key.edge:
            self.loops[item.key] = made
        return made

    def trial_of(self, items: Iterable[Segment], bound: bool) -> Candidate:
        """The whole model with these items."""
        schemes = tuple(region_of(i, 0, self._border.get(i.key, "waste")) for i in items)
        return Candidate(schemes, bound, self.order, CLIMB)


def _work_of_interval(question: EvaluationRequest) -> int:
    """Operators that a trial of an interval plans."""
    first, end = question.interval or (0, 0)
    return end - first + sum(map(added_work, question.trial.schemes))
