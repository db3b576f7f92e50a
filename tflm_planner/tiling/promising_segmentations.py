"""Finds the most promising segmentations whose segments were all evaluated, so that their figures
are exact.

    Segmenter --(every cap)--> segmentations --best first--> all evaluated?  yes: offered
                    ^                                             | no
                    +---------- figures of evaluations -----------+

Estimates are hardly ever pessimistic. So once the best segmentation has evaluated segments only, it
is the best of all, and only segments of promising segmentations are ever evaluated. This module
must not build models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.support.progress import Progress
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segment_evaluations import SegmentEvaluations
from tflm_planner.tiling.segmentation import Segment, Segmentation, Segmenter, SegmentKey
from tflm_planner.tiling.segments import first_batch, sample_by_promise
from tflm_planner.tiling.tilings import Tiling


class PromisingSegmentations:
    """The segmentations of one mode of a search.

    segmenter: has all segments of the mode. segments, models: what the search has evaluated.
    bind_views: views lie inside their parents. slowdown: segmentations are promising if they may
    beat the models that are as fast.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        segments: SegmentEvaluations,
        models: ModelEvaluations,
        options: TilingOptions,
        bind_views: bool,
        slowdown: float,
    ) -> None:
        self._segmenter, self._segments = segmenter, segments
        self._models, self._options = models, options
        self._bind_views, self._slowdown = bind_views, slowdown
        self._budget = options.search_budget
        caps = segmenter.head_caps()
        self._caps = caps[:: max(len(caps) // self._budget.head_caps, 1)]
        self._branches: list[tuple[int, frozenset[SegmentKey]]] = []
        """(cap, keys of segments that are banned below this cap)."""
        self._banned_for: dict[tuple[SegmentKey, ...], frozenset[SegmentKey]] = {}
        """Keys of a segmentation that was found in a branch -> the keys banned in that branch."""

    def evaluated_batches(self, on_progress: Progress) -> Iterator[list[Segmentation]]:
        """Batches of segmentations whose segments were all evaluated, the most promising first."""
        offered: set[tuple[SegmentKey, ...]] = set()
        are_estimated = True
        while True:
            if are_estimated and self._models.work.is_first_part_spent:
                # Nothing more will be evaluated, so estimates must not displace evaluated segments.
                self._segmenter.drop_estimates()
                are_estimated = False
            fresh = [s for s in self._promising() if s.segments and s.keys not in offered]
            if not fresh:
                return
            best_bytes = self.least_bytes
            evaluated = [s for s in fresh if s.is_evaluated]
            worth = [s for s in evaluated if s is fresh[0] or self._promise(s) < best_bytes]
            if worth:
                batch = worth[: self._budget.segmentations_at_once]
                offered |= {s.keys for s in batch}
                yield batch
                continue
            self._evaluate_segments(fresh)
            promise = self._promise(fresh[0])
            on_progress(
                f"looking for tiles: {self._segments.count} parts tried; {promise:,} B promised"
            )

    @property
    def least_bytes(self) -> int:
        """The bytes of the best model that is fast enough."""
        return self._models.best_within(self._slowdown).bytes

    def keeps_promise(self, segmentation: Segmentation, tilings: Sequence[Tiling]) -> bool:
        """Whether one of its tilings needs about as many bytes as the segmentation promised."""
        promise = self._promise(segmentation)
        most = promise + promise // self._budget.promise_tolerance
        return any(tiling.bytes <= most for tiling in tilings)

    def branch(self, segmentation: Segmentation) -> None:
        """Also search for the best segmentations that lack one segment of this one: its promise was
        broken, and one with a slightly higher promise might keep it (Lawler 1972). A branch also
        bans the segments that its parent banned."""
        parent = self._banned_for.get(segmentation.keys, frozenset())
        branches = [(segmentation.head, parent | {s.key}) for s in segmentation.segments]
        room = self._budget.branches - len(self._branches)
        self._branches += [b for b in branches if b not in self._branches][:room]

    def _evaluate_segments(self, segmentations: list[Segmentation]) -> None:
        """Replace the estimates of a batch of segments by evaluations."""
        sampled = sample_by_promise(segmentations, self._budget)
        estimated = (
            s for segmentation in sampled for s in segmentation.segments if not s.is_evaluated
        )
        batch: list[Segment] = first_batch(estimated, self._budget)
        evaluated = self._segments.evaluate(batch, self._bind_views)
        for segment, replacement in zip(batch, evaluated, strict=True):
            if replacement is None:
                self._segmenter.remove(segment)
            else:
                self._segmenter.add(replacement)

    def _promising(self) -> list[Segmentation]:
        """The best segmentations for all caps that may improve the result, the best first."""
        limit = self.least_bytes
        solved: list[Segmentation] = []
        for cap in self._caps:
            if cap + self._models.untiled_tail < limit:
                solved += self._segmenter.best(cap)
        for cap, banned in self._branches:
            others = self._segmenter.best_without(cap, banned)
            self._banned_for |= {s.keys: banned for s in others if s.keys not in self._banned_for}
            solved += others
        if self._options.operators.allows_new:
            limit += limit // self._budget.promise_slack
        promising = {
            s.keys: s for s in solved if self._promise(s) < limit or self._keeps_arena_limit(s)
        }
        return sorted(promising.values(), key=self._rank)

    def _promise(self, segmentation: Segmentation) -> int:
        """The bytes that a segmentation promises."""
        if self._options.objective == "head":
            return segmentation.head
        return segmentation.head + self._models.untiled_tail + segmentation.tail

    def _keeps_arena_limit(self, segmentation: Segmentation) -> bool:
        limit = self._options.arena_limit
        return limit is not None and self._promise(segmentation) <= limit

    def _rank(self, segmentation: Segmentation) -> tuple[int, int, int]:
        """Sort key, smallest for the best: within the arena limit the faster one is better,
        otherwise the smaller one."""
        promise = self._promise(segmentation)
        if self._keeps_arena_limit(segmentation):
            return (0, segmentation.instructions, promise)
        return (1, promise, segmentation.instructions)
