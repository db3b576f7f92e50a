"""Chooses which intervals of a schedule are estimated, in tiles and in loops, and which of them may
help.

    0 -- 1 -- 2 -- 3 -- 4 -- 5 -- 6      intervals that end at 6 begin at every near position, and
              |---------------->|        at those far positions that are narrow (few bytes live)
                        |------>|

Only intervals that may lower the objective become segments. This module must not evaluate any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, cast

from tflm_planner.ops.window import CHANNELS
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.estimate.loops import LoopEstimate, allows_loops
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.estimate.tiles import (
    EstimatedHalo,
    EstimateLimits,
    TileEstimate,
    estimate_tiles,
)
from tflm_planner.tiling.evaluate.evaluator import Evaluator
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segmentation import Segment
from tflm_planner.tiling.segments import looped_segment, tiled_segment

_NO_LIMIT = 1 << 62
_HALOS: tuple[Literal["recompute", "merge"], ...] = ("recompute", "merge")
"""Halo policies of tiles."""

Estimates = list[TileEstimate] | list[LoopEstimate]


@dataclass(frozen=True)
class IntervalLimits:
    """Limits within which intervals are useful."""

    order: tuple[int, ...]
    """The order of the operators in the schedule."""
    arena: int
    """Bytes of the arena of the untiled model."""
    tail: int
    """Bytes of its tail."""
    allowed_instructions: int
    """Instructions that a tiling may add."""


@dataclass(frozen=True)
class IntervalsEndingAt:
    """A job: estimate all intervals that end before position `end`. halo_policy: that of tiles;
    None for loops."""

    limits: IntervalLimits
    end: int
    halo_policy: EstimatedHalo | None

    def run(self, evaluator: Evaluator) -> Estimates:
        """The estimates that may help, as if all operators were permitted."""
        order = self.limits.order
        estimates = _interval_estimates(evaluator.linear_schedule(order), self.end, self.limits)
        if not estimates.firsts:
            return []
        if self.halo_policy is None:
            loops = evaluator.loop_estimator(order)
            return list(loops.estimates_ending_at(self.end, estimates.firsts))
        return list(estimates.in_tiles(self.halo_policy))


@dataclass(frozen=True)
class Intervals:
    """The segments of one search, made from estimates. used_kinds: kinds of operators of the
    model."""

    limits: IntervalLimits
    workers: Workers
    options: TilingOptions
    used_kinds: frozenset[str]

    def tiled_segments(self, bind_views: bool) -> Iterator[Segment]:
        """All segments in tiles that may help. bind_views: views lie inside their parents; halos
        are then always recomputed."""
        slices = self.options.allows("SLICE", self.used_kinds)
        joins = self.options.allows("CONCATENATION", self.used_kinds)
        for halo in _HALOS[:1] if bind_views else _HALOS:
            for estimate in self._tile_estimates(halo):
                allowed = slices or not estimate.needs_slice
                if allowed and (joins or not estimate.needs_concatenation):
                    yield tiled_segment(estimate, halo)

    def looped_segments(self) -> Iterator[Segment]:
        """All segments in loops that may help; they do not depend on whether views are bound."""
        if allows_loops(self.options, self.used_kinds):
            for estimates in self._estimate_all(None):
                yield from map(looped_segment, cast("list[LoopEstimate]", estimates))

    def _tile_estimates(self, policy: EstimatedHalo) -> list[TileEstimate]:
        """Estimates in tiles that may help, as if all operators were permitted. All searches of one
        schedule share them."""

        def make() -> list[TileEstimate]:
            by_end = cast("list[list[TileEstimate]]", self._estimate_all(policy))
            return [estimate for of_end in by_end for estimate in of_end]

        return self.workers.evaluator.tile_estimates(self.limits.order, policy, make)

    def _estimate_all(self, policy: EstimatedHalo | None) -> list[Estimates]:
        """The estimates, one entry for each end of intervals."""
        ends = range(1, len(self.limits.order) + 1)
        jobs = [IntervalsEndingAt(self.limits, end, policy) for end in ends]
        return self.workers.run(jobs)


def _interval_estimates(
    schedule: LinearSchedule, end: int, limits: IntervalLimits
) -> _IntervalEstimates:
    """The intervals that end before position `end`."""
    least_head = max(schedule.crossing_bytes[0], schedule.crossing_bytes[-1])
    firsts = _firsts(schedule, end, least_head)
    return _IntervalEstimates(schedule, end, limits, firsts, least_head)


def _firsts(schedule: LinearSchedule, end: int, least_head: int) -> frozenset[int]:
    """The positions at which the intervals begin: all near ones, and the narrow ones farther away.
    In large models only narrow ones, because every head includes what lives across the borders of
    the interval. Each interval contains an operator that needs more than `least_head`."""
    budget = schedule.options.search_budget
    near = range(max(0, end - budget.interval_operators), end)
    far: list[int] = []
    if end in schedule.narrow_positions:
        farthest = end - budget.far_interval_operators
        far = [p for p in schedule.narrow_positions if farthest <= p < end]
        far = far[-budget.narrow_starts :]
    starts = {*far} if len(schedule) > budget.large_model else {*near, *far}
    live = schedule.live_bytes
    last = next((p for p in range(end - 1, -1, -1) if live[p] > least_head), -1)
    return frozenset(p for p in starts if p <= last)


@dataclass(frozen=True)
class _IntervalEstimates:
    """The intervals of a schedule that end before position `end`."""

    schedule: LinearSchedule
    end: int
    limits: IntervalLimits
    firsts: frozenset[int]
    """The positions at which they begin."""
    least_head: int
    """Bytes that every head needs at least: those of the model's inputs or of its outputs."""

    @property
    def _budget(self) -> SearchBudget:
        return self.schedule.options.search_budget

    @property
    def _is_large(self) -> bool:
        return len(self.schedule) > self._budget.large_model

    def in_tiles(self, policy: EstimatedHalo) -> Iterator[TileEstimate]:
        """The intervals in tiles that may help."""
        schedule = self.schedule
        for axis in _axes_to_cut(schedule, self.end):
            if axis == CHANNELS and self._is_large:
                continue
            for estimate in self._with_falling_head(axis, policy):
                helps = estimate.head < max(schedule.live_bytes[estimate.interval.as_slice])
                if helps and estimate.head + estimate.tail - self.least_head < self._most_tail:
                    yield estimate

    def _with_falling_head(self, axis: int, policy: EstimatedHalo) -> Iterator[TileEstimate]:
        """Estimates in increasing part counts; only those that lower the head, because every part
        adds to the tail and to the instructions."""
        size = (self.schedule.ops[self.end - 1].outputs[0].shape or ())[axis]
        part_counts = [n for n in self._part_counts(size, policy) if n <= size]
        limits = EstimateLimits(self._most_tail, self.limits.allowed_instructions)
        estimates = {
            (e.interval.first, e.split.parts): e
            for e in estimate_tiles(
                self.schedule, self.end, axis, part_counts, self.firsts, limits, policy
            )
        }
        lowest = dict.fromkeys(self.firsts, _NO_LIMIT)
        attempts_left = dict.fromkeys(self.firsts, self._parts_without_gain)
        for parts, first in product(part_counts, sorted(self.firsts, reverse=True)):
            estimate = estimates.get((first, parts))
            if not attempts_left[first]:
                continue
            if estimate is not None and estimate.head < lowest[first]:
                lowest[first], attempts_left[first] = estimate.head, self._parts_without_gain
                yield estimate
            else:
                attempts_left[first] -= 1

    @property
    def _parts_without_gain(self) -> int:
        """How many part counts in a row may fail to lower the head before larger ones are
        skipped."""
        return self._budget.parts_without_gain_large if self._is_large else _NO_LIMIT

    def _part_counts(self, size: int, policy: EstimatedHalo) -> list[int]:
        """Part counts to estimate for an axis of this size."""
        budget = self._budget
        if not self._is_large:
            return part_counts_of(size, budget)
        if policy == "recompute":
            return list(budget.coarse_part_counts)
        return list(budget.coarse_part_counts_kept_halo)

    @property
    def _most_tail(self) -> int:
        """With at least this many bytes added to the tail, no tiling is smaller than the untiled
        model."""
        if self.schedule.options.objective != "arena":
            return _NO_LIMIT
        return self.limits.arena - self.limits.tail - self.least_head


def part_counts_of(size: int, budget: SearchBudget) -> list[int]:
    """Part counts to estimate for an axis of this size."""
    counts = budget.part_counts
    even = (n for n in range(counts[0], counts[-1]) if size % n == 0)
    return sorted({*counts, *even})


def _axes_to_cut(schedule: LinearSchedule, end: int) -> list[int]:
    """Axes along which intervals that end before `end` are cut: the outermost one, where parts are
    contiguous, and the innermost one (the channels of an image)."""
    outputs = schedule.ops[end - 1].outputs
    if len(outputs) != 1:  # ASSIGN_VARIABLE has none, others have several
        return []
    shape = outputs[0].shape or ()
    axes = [axis for axis, size in enumerate(shape) if size > 1 and (axis > 0 or len(shape) < 4)]
    return list(dict.fromkeys((*axes[:1], *axes[-1:])))
