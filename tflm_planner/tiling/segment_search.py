"""The default search: finds the best segmentation of the operators, then tries variants of the best
models.

    intervals       every interval x axis x part count     estimated from geometry, optimistic
    segmentation    the best split for every cap           exact, by dynamic programming
    candidates      segments of the best segmentations     evaluated: cut out, tiled, planned
    models          segmentations that are all evaluated   evaluated as whole models
    moves           variants of the best models            backward tiles, patches, hotspots
    refinements     of the best models                     spellings, neighbours, more effort
    lower limits    the same segmentations, but faster     within a share of the instructions
    savings         regions that save instructions         found alone, put into all models
    gaps            between the models of the front        several regions changed at once

Segments affect each other at their borders, which sums over segments do not show; so whole models
decide. Budgets are counts: the same model and options give the same tiling for any number of
processes, unless the search is stopped (`workers.stop`). docs/search.md describes the steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tflm_planner.support.progress import Progress, silent
from tflm_planner.tflm.liveness import VIEW_MAKERS
from tflm_planner.tiling.estimate.interval import Interval
from tflm_planner.tiling.estimate.loops import allows_loops
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.hotspots.tiles import HotspotTiles
from tflm_planner.tiling.intervals import IntervalLimits, Intervals
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.moves.backward_tiles import backward_candidates, with_backward_tiles
from tflm_planner.tiling.moves.patches import patch_stages, with_patches
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.promising_segmentations import PromisingSegmentations
from tflm_planner.tiling.refinements import Refinements
from tflm_planner.tiling.segment_evaluations import SegmentEvaluations
from tflm_planner.tiling.segmentation import InTiles, Segment, Segmentation, Segmenter
from tflm_planner.tiling.segments import TILE_ORDERS
from tflm_planner.tiling.tilings import TilingResult
from tflm_planner.tiling.trials import trials_of
from tflm_planner.tiling.work import EarlyStop, WorkBudget
from tflm_planner.transforms.schedules import Effort


class _Mode(NamedTuple):
    """bind_views: views lie inside their parents. loops: loops are permitted in addition to
    tiles."""

    bind_views: bool
    loops: bool


class SegmentSearch:
    """One search. `result()` may be called at any time, also after StoppedError in `run()`."""

    def __init__(self, options: TilingOptions, workers: Workers) -> None:
        self._options, self._workers = options, workers
        self._budget = budget = options.search_budget
        self._order = workers.evaluator.order
        self._schedule = workers.evaluator.linear_schedule(self._order)
        self._is_large = len(self._schedule) > budget.large_model
        limit = options.work_limit
        work = WorkBudget(budget.search_work if limit is None else min(limit, budget.search_work))
        self._models = ModelEvaluations(workers, options, len(self._schedule), work)
        self._work, self._used_kinds = self._models.work, self._models.used_kinds
        self._segments = SegmentEvaluations(workers, options, self._models, self._order)
        self._hotspots_evaluated = 0
        self._models.add([Candidate((), False, self._order, Effort.CLIMB)])
        untiled = self._untiled = self._models.untiled
        self._allowed_instructions = self._allowed(options.searched_slowdown)
        limits = IntervalLimits(
            self._order, untiled.arena, untiled.tail, self._allowed_instructions
        )
        self._intervals = Intervals(limits, workers, options, self._used_kinds)
        self._looped_segments: list[Segment] | None = None
        self._promising: set[Interval] = set()
        self._modes_left: int | None = None

    def result(self) -> TilingResult:
        """The tilings so far."""
        evaluated = self._segments.count + self._hotspots_evaluated + self._models.count
        promising = {self._order[p] for interval in self._promising for p in interval.positions}
        trials = trials_of(
            self._workers.evaluator.model.main.ops,
            self._models.fast_enough,
            self._models.too_slow,
            promising,
            all_estimated=self._modes_left == 0,
        )
        return self._models.result(evaluated, trials)

    @property
    def front(self) -> list[Candidate]:
        """The candidates of the Pareto front so far, the smallest first."""
        return [candidate for candidate, _ in self._models.front()]

    def run(self, on_progress: Progress = silent) -> None:
        """Search until nothing is left to evaluate. Raises StoppedError."""
        self.run_modes(on_progress)
        refinements = Refinements(self._models, self._options, self._order)
        steps = (
            *refinements.steps(),
            (partial(self._evaluate_within_lower_limits, on_progress), "faster tiles looked for"),
            (refinements.evaluate_loops, "the best loops changed"),
            (self._evaluate_free_parts, "parts of the model tiled and spelled otherwise"),
            (self._evaluate_parts_of_channels, "parts in tiles that save instructions looked for"),
            (refinements.put_in_saving_regions, "what saves instructions put into the others"),
            (refinements.close_gaps, "what lies between the offered ones tried"),
        )
        for step, done in steps:
            step()
            self._tell(on_progress, done)

    def run_modes(self, on_progress: Progress = silent) -> None:
        """Search without refinements. Raises StoppedError."""
        modes = self._modes()
        self._modes_left = len(modes)
        for share, mode in zip(self._shares(len(modes)), modes, strict=True):
            self._work.begin_step(share, self._budget.segmentation_share)
            self._evaluate_mode(mode, self._options.searched_slowdown, on_progress)
            self._modes_left -= 1
            self._evaluate_backward_tiles(mode)
            self._evaluate_patches(mode)
            if not all(mode.bind_views for mode in modes):
                self._retry_with_unbound_views()
            if mode == modes[0]:
                self._evaluate_hotspots(on_progress)

    # --- modes, and the work of each ---

    def _modes(self) -> list[_Mode]:
        """The modes in running order. In the dialect, bound views cost nothing: they come first.
        Unbound views come next if copies are permitted, as halos may then be kept; in the dialect
        also if they are not, as a plan may turn out to need no copy. Tiles alone come before loops,
        so that loops have a result to improve on."""
        dialect = self._options.dialect
        bindings = (*([True] * dialect), *([False] * (dialect or self._allows_copies)))
        if not allows_loops(self._options, self._used_kinds):
            return [_Mode(bind_views, False) for bind_views in bindings]
        modes = [_Mode(bound, loops) for bound in bindings or (True,) for loops in (False, True)]
        if self._is_large and _Mode(False, False) in modes[1:]:
            # The mode with loops has tiles too, and evaluations of a large model take long.
            modes.remove(_Mode(False, False))
        return modes

    def _shares(self, modes: int) -> Sequence[float]:
        """The share of the remaining work, for each of `modes` modes."""
        return self._budget.mode_shares[modes]

    @property
    def _allows_copies(self) -> bool:
        return self._options.allows_copies(self._used_kinds)

    # --- segmentations ---

    def _allowed(self, slowdown: float) -> int:
        """Instructions that segments may add within a slowdown."""
        most = int(slowdown * self._models.original_instructions)
        return max(most - self._untiled.instructions, 0)

    def _evaluate_mode(self, mode: _Mode, slowdown: float, on_progress: Progress) -> None:
        """Evaluate the promising segmentations of a mode within a slowdown."""
        on_progress("looking for tiles: estimating parts of the model")
        segmenter = self._segmenter(mode, slowdown)
        segmentations = PromisingSegmentations(
            segmenter, self._segments, self._models, self._options, mode.bind_views, slowdown
        )
        self._evaluate_segmentations(segmentations, mode, on_progress)

    def _evaluate_within_lower_limits(self, on_progress: Progress) -> None:
        """Look for tiles again, within a small share of the instructions that may be added: what is
        smaller and slower hides what is faster. In a large model only in the first mode."""
        budget = self._budget
        modes = self._modes()[:1] if self._is_large else self._modes()
        for share in budget.lower_limits:
            slowdown = 1 + share * (self._options.searched_slowdown - 1)
            for mode in modes:
                self._work.begin_extra_step(budget.lower_limit_work, budget.segmentation_share)
                self._evaluate_mode(mode, slowdown, on_progress)

    def _segmenter(self, mode: _Mode, slowdown: float) -> Segmenter:
        """All segments of a mode within a slowdown; those in loops with the figures of earlier
        evaluations."""
        allowed = self._allowed(slowdown)
        segmenter = Segmenter(self._schedule.live_bytes, allowed, self._budget)
        for segment in self._intervals.tiled_segments(mode.bind_views):
            segmenter.add(segment)
            self._promising.add(segment.interval)
        if mode.loops and self._looped_segments is None:
            self._looped_segments = list(self._intervals.looped_segments())
        for segment in (mode.loops and self._looped_segments) or ():
            self._promising.add(segment.interval)
            current = self._segments.loops.get(segment.key, segment)
            if current is not None:
                segmenter.add(current)
        return segmenter

    def _tell(self, on_progress: Progress, doing: str) -> None:
        """Report the best bytes so far, the share of the longest possible search that is spent, and
        what was done last. Most searches end earlier, when nothing is gained any more."""
        spent = f"{100 * self._work.share_spent:.0f} % of the longest search"
        best = self._models.best_within(self._options.max_slowdown)
        on_progress(f"looking for tiles: {best.bytes:,} B so far, {spent}; {doing}")

    def _evaluate_segmentations(
        self, segmentations: PromisingSegmentations, mode: _Mode, on_progress: Progress
    ) -> None:
        """Evaluate promising segmentations as whole models until a number of them gain nothing."""
        budget = self._budget
        stop = EarlyStop(budget.segmentations_without_gain, segmentations.least_bytes)
        for batch in segmentations.evaluated_batches(on_progress):
            self._evaluate_batch(segmentations, batch, mode)
            self._tell(on_progress, f"{self._segments.count} parts of the model tried")
            stop.record(segmentations.least_bytes, len(batch))
            if stop.is_due or self._work.is_step_spent:
                return

    def _evaluate_batch(
        self, segmentations: PromisingSegmentations, batch: list[Segmentation], mode: _Mode
    ) -> None:
        """Evaluate these segmentations; where one breaks its promise, also with backward tiles;
        where it still does, add branches."""
        variants = [
            with_backward_tiles(self._segments.candidate_of(segmentation.segments, mode.bind_views))
            for segmentation in batch
        ]
        self._models.add([candidate for candidate, *_ in variants])
        broken = [
            (segmentation, backward)
            for segmentation, (candidate, *backward) in zip(batch, variants, strict=True)
            if not segmentations.keeps_promise(segmentation, self._models.tilings_of(candidate))
        ]
        self._models.add([candidate for _, backward in broken for candidate in backward])
        for segmentation, backward in broken:
            tilings = [t for candidate in backward for t in self._models.tilings_of(candidate)]
            if not segmentations.keeps_promise(segmentation, tilings):
                segmentations.branch(segmentation)

    # --- moves around the best models ---

    def _evaluate_backward_tiles(self, mode: _Mode) -> None:
        """Tile single operators of a long chain of overlapping tensors backward."""
        if self._is_large or not mode.bind_views:
            return
        border = self._options.borders(self._used_kinds)[0]
        candidates = backward_candidates(self._schedule, self._order, self._untiled.head, border)
        self._models.add(list(candidates))

    def _evaluate_patches(self, mode: _Mode) -> None:
        """Put patch stages before those regions of the best model that come after them. Patches are
        not contiguous, so they need copies."""
        if mode.bind_views or not self._allows_copies:
            return
        border = self._options.borders(self._used_kinds)[-1]
        most = self._models.best.bytes - self._models.untiled_tail
        stages = patch_stages(self._schedule, most, border, self._allowed_instructions)
        in_order = [c for c, _ in self._models.ranking() if c.order == self._order]
        start = in_order[0] if in_order else Candidate((), False, self._order, Effort.CLIMB)
        work_left = self._work.remaining * self._budget.patch_share
        chosen: list[Candidate] = []
        for candidate in with_patches(start, stages):
            work = len(TILE_ORDERS) * self._models.work_of(candidate)
            if work <= work_left:
                work_left -= work
                chosen.append(candidate)
        self._models.add(chosen)

    def _evaluate_parts_of_channels(self) -> None:
        """Tile parts of the model by themselves that may take fewer instructions then."""
        most = self._budget.channel_parts_work
        for mode in self._modes():
            alone = self._parts_alone(mode)
            saving = (c for segment, c in alone if self._may_save(segment))
            self._models.add_changed(self._within(most, saving))

    def _evaluate_free_parts(self) -> None:
        """Where next to no instruction is allowed: tile each part of the model by itself, in few
        parts first, with operators spelled otherwise in the same step. What the tiles repeat, those
        may save, in the one plan or the other, and no estimate knows that."""
        if not self._options.is_nearly_free:
            return
        most = int(self._options.searched_slowdown * self._models.original_instructions)
        for mode in self._modes():
            alone = (candidate for _, candidate in self._parts_alone(mode))
            self._models.add_changed(
                [
                    replace(candidate, respell=most, tile_order=TILE_ORDERS[-1])
                    for candidate in self._within(self._budget.free_parts_work, alone)
                ]
            )

    def _within(self, work: int, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The first candidates whose evaluations take no more work together."""
        chosen = list[Candidate]()
        for candidate in candidates:
            work -= self._models.work_of(candidate)
            if work < 0:
                break
            chosen.append(candidate)
        return chosen

    def _parts_alone(self, mode: _Mode) -> list[tuple[Segment, Candidate]]:
        """Each segment in tiles, and the model with this one alone: those in few tiles first."""
        if mode.loops:
            return []
        return [
            (segment, self._segments.candidate_of([segment], mode.bind_views))
            for segment in sorted(self._intervals.tiled_segments(mode.bind_views), key=_by_parts)
        ]

    def _may_save(self, segment: Segment) -> bool:
        """Whether a segment copies, and is in two parts of the channels: along them next to nothing
        is repeated, and where a later operator shrinks what is copied, less is copied."""
        form, main = segment.key.form, self._workers.evaluator.model.main.ops
        ops = [main[self._order[p]] for p in segment.interval.positions]
        if not isinstance(form, InTiles) or form.split.parts > 2:
            return False
        is_channels = form.split.axis == len(ops[-1].outputs[0].shape or ()) - 1 > 1
        return is_channels and any(op.kind in VIEW_MAKERS for op in ops)

    def _retry_with_unbound_views(self) -> None:
        """Evaluate the best models that have bound views with unbound views too: a plan may turn
        out to need no copy, so that they need no new operator either."""
        bound = [c for c, _ in self._models.ranking() if c.bind_views]
        best = bound[: self._budget.unbound_retries]
        self._models.add([replace(candidate, bind_views=False) for candidate in best])

    def _evaluate_hotspots(self, on_progress: Progress) -> None:
        """In a large model, where not every interval is estimated: tile the largest operators
        together with their surroundings, in orders made for that."""
        if not self._is_large:
            return
        self._tell(on_progress, "looking for hotspots")
        hotspots = HotspotTiles(
            self._workers, self._options, self._models, self._allowed_instructions
        )
        budget = self._budget
        stop = EarlyStop(budget.attempts_without_gain, self._models.best.bytes)
        for candidate in hotspots.candidates():
            self._models.add([candidate])
            stop.record(self._models.best.bytes)
            self._hotspots_evaluated = hotspots.evaluated
            self._tell(on_progress, f"{hotspots.evaluated} hotspots tried")
            if stop.is_due:
                return


def _by_parts(segment: Segment) -> tuple[int, int]:
    """Sorts segments by their parts, then by the bytes that an estimate promises."""
    form = segment.key.form
    return (form.split.parts if isinstance(form, InTiles) else 0), segment.head + segment.tail
