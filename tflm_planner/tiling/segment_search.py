"""The default search: the best partition of the operators into intervals, each in tiles or not.

    intervals  every interval x axis x parts       geometry only, optimistic
    partition  the best cover for every cap        exact, by dynamic programming
    covers     the intervals of the best covers    cut out, tiled, planned: sketches made true
    whole      covers that are true                tiled and planned as one model
    improve    around the best whole models        one scheme at a time

Intervals act on each other at their borders, which no sum shows; so whole models decide. Budgets
are counts: the same model and options give the same tiling, however many processes work, unless
the search is stopped (`workers.stop`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tflm_planner.tiling.budget import EarlyStop, WorkBudget
from tflm_planner.tiling.candidates import PromisingSegmentations
from tflm_planner.tiling.estimate.loops import loops_allowed
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.evaluate.candidate import (
    CAREFUL,
    CLIMB,
    Candidate,
)
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.hotspots.tiles import HotspotTiles
from tflm_planner.tiling.intervals import LARGE, IntervalLimits, Intervals
from tflm_planner.tiling.model_evaluations import LARGEST_MODEL, ModelEvaluations
from tflm_planner.tiling.moves.backward_tiles import backward_candidates, with_backward_tiles
from tflm_planner.tiling.moves.neighbours import neighbours
from tflm_planner.tiling.moves.patches import patch_stages, with_patches
from tflm_planner.tiling.options import (
    Progress,
    TilingOptions,
    TilingResult,
    pareto_fronts,
    silent,
    slower_front,
)
from tflm_planner.tiling.segment_evaluations import SegmentEvaluations
from tflm_planner.tiling.segmentation import Segment, Segmenter
from tflm_planner.tiling.segments import (
    BATCH,
    SCHEDULES,
)
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion

MOST_WORK = 24_000
"""Operators planned in trials that no search made before: of intervals and of whole models, in
all modes together."""
FINALISTS = 4
"""Whole models that are planned with all care."""
_SHARES, _THREE_SHARES, _HOPED_SHARES = (0.1, 0.6, 0.5, 1.0), (0.1, 0.6, 1.0), (0.85, 1.0)
"""Of the work that is left, for each mode, the last ones where there are fewer; and where views
that are not bound may only be hoped to cost no copy."""
_COVERS_SHARE = 0.75
"""Of a mode's work, for covers; the rest is for improvement."""
_PATCHES_SHARE = 0.1
"""Of the work that is left, for patches."""
_CAREFUL_WORK, _CAREFUL_MODEL = 1_200, 600
"""Operators planned with care, but for the first model; and those of a model that is, at most:
larger ones take seconds for less than a per cent."""
_COVERS_IN_VAIN, _STARTS_IN_VAIN, _OUTINGS_IN_VAIN = 8, 2, 2
"""Covers, models whose neighbours are all tried, and orders around bulges, after which a step that
gains nothing ends."""
_FEWEST = 6
"""Neighbours of a model that are tried at least, or none: one in dozens hardly ever helps."""
_GAIN = 200
"""A gain is one part in so many."""
_LOOSENED = 4
"""Models with bound views that are tried with views that are not."""


class _Mode(NamedTuple):
    """bound: whether views lie in their parents. loops: whether there are loops beside tiles."""

    bound: bool
    loops: bool


class SegmentSearch:
    """One search. `found()` is good at any time, also after StoppedError in `run()`."""

    def __init__(self, options: TilingOptions, workers: Workers) -> None:
        self._options, self._workers = options, workers
        bench = workers.bench
        self._order = bench.order
        self._line: LinearSchedule = bench.line(self._order)
        self._is_large = len(self._line) > LARGE
        allowance = WorkBudget(min(options.most_work, MOST_WORK))
        self._whole = ModelEvaluations(workers, options, len(self._line), allowance)
        self._work, self._used = self._whole.work, self._whole.used
        self._tried = SegmentEvaluations(workers, options, self._whole, self._order)
        self._bulges = 0
        self._whole.add([Candidate((), False, self._order, CLIMB)])
        plain = self._plain = self._whole.plain
        self._allowed = int((options.overhead - 1) * plain.instructions)
        reach = IntervalLimits(self._order, plain.arena, plain.tail, self._allowed)
        self._intervals = Intervals(reach, workers, options, self._used)
        self._looped: list[Segment] | None = None

    # --- what was found ---

    def found(self) -> TilingResult:
        """What there is so far."""
        front = pareto_fronts(self._whole.tilings)
        tried = self._tried.count + self._bulges + self._whole.count
        return TilingResult(self._whole.best, front, tried, slower_front(front, self._whole.slower))

    # --- the search ---

    def run(self, say: Progress = silent) -> None:
        """Search until nothing is left to try. Raises StoppedError."""
        modes = self._modes()
        for share, mode in zip(self._shares(len(modes)), modes, strict=True):
            say("tiling: sketching intervals")
            partition = self._partition(mode)
            self._work.open(share, _COVERS_SHARE)
            covers = PromisingSegmentations(partition, self._tried, mode.bound)
            self._try_covers(covers, mode, say)
            self._turn_round(mode)
            self._cut_patches(mode)
            self._work.go_on()
            if not all(mode.bound for mode in modes):
                self._loosen()
            self._improve(mode, say)
            if mode == modes[0]:
                self._try_outings(say)
        self._finish(say)

    def _partition(self, mode: _Mode) -> Segmenter:
        """What may be chosen from, with what trials have said of loops."""
        partition = Segmenter(self._line.needs, self._allowed)
        for item in self._intervals.tiled(mode.bound):
            partition.add(item)
        if mode.loops and self._looped is None:
            self._looped = list(self._intervals.looped())
        for item in (mode.loops and self._looped) or ():
            made = self._tried.loops.get(item.key, item)
            if made is not None:
                partition.add(made)
        return partition

    def _try_covers(self, covers: PromisingSegmentations, mode: _Mode, say: Progress) -> None:
        """Make true covers whole, while that helps now and then."""
        patience = EarlyStop(_COVERS_IN_VAIN, _GAIN, self._whole.best.bytes)
        for found in covers.true(say):
            ways = [
                with_backward_tiles(self._tried.trial_of(cover.items, mode.bound))
                for cover in found
            ]
            self._whole.add([trial for trial, *_ in ways])
            broken = [
                (cover, turned)
                for cover, (trial, *turned) in zip(found, ways, strict=True)
                if not covers.keeps(cover, self._whole.add([trial]))
            ]
            self._whole.add([trial for _, turned in broken for trial in turned])
            for cover, turned in broken:
                if not covers.keeps(cover, self._whole.add(turned)):
                    covers.branch(cover)
            say(f"tiling: {self._whole.best.bytes:,} B, {self._tried.count} intervals tried")
            patience.note(self._whole.best.bytes, len(found))
            # A cover of a large model is dear, and other modes want their part.
            if patience.is_over or (self._is_large and self._work.is_overdrawn):
                return

    def _try_outings(self, say: Progress) -> None:
        """Where not every interval can be looked at: what is fat, in orders made for it."""
        if not self._is_large:
            return
        say("tiling: looking for bulges")
        outings = HotspotTiles(self._workers, self._options, self._whole, self._allowed)
        patience = EarlyStop(_OUTINGS_IN_VAIN, _GAIN, self._whole.best.bytes)
        for trial in outings.trials():
            self._whole.add([trial])
            patience.note(self._whole.best.bytes)
            self._bulges = outings.tried
            say(f"tiling: {self._whole.best.bytes:,} B, {self._bulges} bulges tried")
            if patience.is_over:
                return

    def _turn_round(self, mode: _Mode) -> None:
        """Keep a chain that drifts in its place."""
        if self._is_large or not mode.bound:
            return
        border = self._options.borders(self._used)[0]
        self._whole.add(
            list(backward_candidates(self._line, self._order, self._plain.head, border))
        )

    def _cut_patches(self, mode: _Mode) -> None:
        """Try patch stages before what the best model so far has behind them: with copies, as
        patches need them."""
        if mode.bound or not self._copies:
            return
        border = self._options.borders(self._used)[-1]
        most = self._whole.best.bytes - self._whole.beside
        stages = patch_stages(self._line, most, border, self._allowed)
        ranked = sorted(
            self._whole.ranked(True) + self._whole.ranked(False), key=lambda pair: pair[0].rank
        )
        known = [trial for _, trial in ranked if trial.order == self._order]
        start = known[0] if known else Candidate((), False, self._order, CLIMB)
        left = self._work.left * _PATCHES_SHARE
        chosen: list[Candidate] = []
        for trial in with_patches(start, stages):
            left -= len(SCHEDULES) * self._whole.work_of(trial)
            if left < 0:
                break
            chosen.append(trial)
        self._whole.add(chosen)

    def _loosen(self) -> None:
        """Try the best models whose views are bound with views that are not: all their copies may
        yet be dropped, so that they need no new operator either."""
        bound = [trial for _, trial in self._whole.ranked(True)[:_LOOSENED]]
        self._whole.add([replace(trial, bound=False) for trial in bound])

    def _modes(self) -> list[_Mode]:
        """Whether views are bound to their parents, and whether there are loops. In the dialect
        views should be bound; where copies are allowed they need not, and halos may then be kept.
        Where copies are not allowed the plan may come to none all the same. Tiles alone come
        first: what loops are tried for must be better."""
        dialect = self._options.dialect
        bounds = (*([True] * dialect), *([False] * (dialect or self._copies)))
        if not loops_allowed(self._options, self._used):
            return [_Mode(bound, False) for bound in bounds]
        both = [_Mode(bound, loops) for bound in bounds or (True,) for loops in (False, True)]
        if self._is_large and _Mode(False, False) in both[1:]:
            both.remove(_Mode(False, False))  # what has loops has tiles too, and trials are dear
        return both

    def _shares(self, modes: int) -> Sequence[float]:
        """Of the work that is left, for each of so many modes."""
        if modes == len(_HOPED_SHARES) and not self._copies:
            return _HOPED_SHARES
        return _THREE_SHARES if modes == len(_THREE_SHARES) else _SHARES[len(_SHARES) - modes :]

    @property
    def _copies(self) -> bool:
        """Whether parts of tensors may be copied."""
        return all(self._options.allows(kind, self._used) for kind in ("SLICE", "CONCATENATION"))

    def _improve(self, mode: _Mode, say: Progress) -> None:
        """Change one scheme of the best whole model at a time, while that helps."""
        done: set[tuple[TiledRegion | LoopedRegion, ...]] = set()
        patience = EarlyStop(_STARTS_IN_VAIN, _GAIN, self._whole.best.bytes)
        while not (self._work.is_spent or patience.is_over):
            ranked = self._whole.ranked(mode.bound)
            near = [trial for _, trial in ranked[:2]]
            near += [trial for _, trial in ranked if not trial.has_loops][:1]
            starts = [trial for trial in near if trial.schemes not in done]
            if not starts:
                return
            work = self._whole.work_of(starts[0])
            if work > LARGEST_MODEL or _FEWEST * len(SCHEDULES) * work > self._work.rest:
                return
            done.add(starts[0].schemes)
            moves = [t for t in neighbours(starts[0], len(self._line)) if t not in self._whole]
            for k in range(0, len(moves), BATCH):
                fitting = self._whole.fitting(moves[k : k + BATCH])
                self._whole.add(fitting)
                if self._work.is_spent or len(fitting) < len(moves[k : k + BATCH]):
                    return
            patience.note(self._whole.best.bytes)
            say(f"tiling: {self._whole.best.bytes:,} B, {self._whole.count} models planned")

    def _finish(self, say: Progress) -> None:
        """Plan the best few with care, as they are and in orders of their own."""
        left = _CAREFUL_WORK
        chosen: list[Candidate] = []
        for _, trial in self._whole.ranked()[:FINALISTS]:
            if left >= 0 and self._whole.work_of(trial) <= _CAREFUL_MODEL:
                left -= len(SCHEDULES) * self._whole.work_of(trial)
                chosen.append(replace(trial, effort=CAREFUL))
        self._whole.add(chosen)
        say(f"tiling: {self._whole.best.bytes:,} B, planned with care")
