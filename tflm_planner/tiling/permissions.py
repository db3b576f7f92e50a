"""Searches once without new operators, then with all that are permitted, to show what each
permission gains.

    as it is              order and plan                        nothing to do
    firmware's operators  tiles whose views cost no operator    flash the model
    more operators        tiles with copies, loops              register them, flash both

The second search shares the workers of the first, and the better result of both is used, so that
more permission is never worse. This module must not know how candidates are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from tflm_planner.memory.allocators import compiling
from tflm_planner.model.ir import Op
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import PartOfStop, Stop, StoppedError
from tflm_planner.support.units import align_up
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.liveness import planned_bytes
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tiling.anticipation import promises_more, search_anticipating
from tflm_planner.tiling.search import (
    Tiling,
    TilingOptions,
    TilingResult,
    Workers,
    pareto_fronts,
    search_tiles,
    slower_front,
)
from tflm_planner.tiling.subsampling import may_help, subsampling_of
from tflm_planner.tiling.tilings import Trial, best_tiling
from tflm_planner.tiling.trials import better_trials

COMPILED = (
    compiling.CLIMBING,
    compiling.CompiledModules(
        (
            "tflm_planner.memory.allocators.live_kernel",
            "tflm_planner.tiling.segmentation_kernel",
            "tflm_planner.tiling.hotspots.min_cut",
        )
    ),
    compiling.EXACT,
)
"""Compiled code that a search for tiles needs; each group is compiled in its own child process. The
last group is needed only for the final plan."""


@dataclass(frozen=True)
class PermissionResults:
    """The results of both searches."""

    same_firmware: Tiling | None
    """The best tiling without new operators, whichever search found it; None if all of them were
    refused."""
    result: TilingResult
    """The result with all permitted operators."""

    def without(self, refused: Tiling, arena_limit: int | None) -> PermissionResults:
        """These results without a tiling that was refused."""
        front = tuple(t for t in self.result.front if t != refused)
        same_firmware = self.same_firmware
        if same_firmware == refused:
            rest = [t for t in front if not t.new_kinds]
            same_firmware = best_tiling(rest, arena_limit) if rest else None
        return PermissionResults(same_firmware, replace(self.result, front=front))

    def unlike(self, shares: Callable[[Tiling], bool]) -> PermissionResults:
        """These results without the slower tilings for which `shares` is true: those that have the
        cause of a refusal."""
        slower = tuple(t for t in self.result.slower if not shares(t))
        return replace(self, result=replace(self.result, slower=slower))


def search_by_permission(
    data: bytes,
    options: TilingOptions,
    on_progress: Progress = silent,
    stop: Stop | None = None,
) -> PermissionResults:
    """Search without new operators, then, if there are any, with those that the options permit. If
    `stop` ends the search, the second one may be missing. Raises StoppedError if neither can be
    made."""
    stop = stop or Stop()
    compiling.start(COMPILED)
    if not compiling.ready(COMPILED[:-1], stop, on_progress):
        raise StoppedError
    with closing(Workers(data, options)) as workers:
        options = _with_budget_of(workers.evaluator.model.main.ops, options)
        results = _search_twice(data, options, on_progress, stop, workers)
        subsampling = subsampling_of(workers, options)
        if subsampling is None:
            return results
        options = replace(options, subsampling=subsampling)
        with closing(Workers(data, options)) as others:
            own, best = results.same_firmware, results.result.best
            if not may_help(workers, others, [best if own is None else own, best]):
                return results
            workers.close()
            on_progress("the same where values are computed only at the pixels that are read")
            try:
                subsampled = _search_twice(data, options, on_progress, stop, others)
            except StoppedError:
                return results
    # The operators of a subsampled model are others: what was tried with them is not told.
    return _united(subsampled.result, results.result, options, results.result.trials)


def _search_twice(
    data: bytes, options: TilingOptions, on_progress: Progress, stop: Stop, workers: Workers
) -> PermissionResults:
    """Search without new operators, then with those that the options permit."""
    allows_new = options.operators.allows_new
    if options.subsampling is not None and options.subsampling.new_kinds:
        return PermissionResults(None, search_tiles(data, options, on_progress, workers, stop))
    if allows_new:
        on_progress("looking for tiles of the firmware's own operators")
    work_limit = options.search_budget.same_firmware_work
    restricted = replace(options, operators=AllowedOperators.NONE, work_limit=work_limit)
    share = options.search_budget.same_firmware_time_share
    part = PartOfStop(stop, share) if allows_new else stop
    first = search_tiles(data, restricted, on_progress, workers, part)
    if promises_more(first, restricted, workers):
        on_progress("looking for tiles as if operators were spelled in their freest way")
        with suppress(StoppedError):
            again = search_anticipating(data, restricted, on_progress, workers)
            first = _united(first, again, restricted, first.trials).result
    if not allows_new:
        return PermissionResults(first.best, first)
    on_progress("looking for tiles and loops of all operators that are permitted")
    try:
        second = search_tiles(data, options, on_progress, workers, stop)
    except StoppedError:
        return PermissionResults(first.best, first)
    return _united(first, second, options, better_trials(first.trials, second.trials))


def _united(
    first: TilingResult, second: TilingResult, options: TilingOptions, trials: Sequence[Trial]
) -> PermissionResults:
    """The results of two searches as those of one. A best one that is slower than permitted, which
    only a subsampled model has, counts only if both are."""
    bests = [t for t in (second.best, first.best) if t.slowdown <= options.max_slowdown]
    bests = bests or [second.best, first.best]
    front = pareto_fronts((*reversed(bests), *first.front, *second.front))
    best = best_tiling(bests, options.arena_limit)
    slower = slower_front(front, (*first.slower, *second.slower))
    own = [t for t in (*reversed(bests), *front) if not t.new_kinds]
    evaluated = first.evaluated + second.evaluated
    result = TilingResult(best, front, evaluated, slower, tuple(trials))
    return PermissionResults(best_tiling(own, options.arena_limit) if own else None, result)


def _with_budget_of(ops: Sequence[Op], options: TilingOptions) -> TilingOptions:
    """The options, with the budget that suits a model of these operators."""
    budget = options.search_budget
    if len(ops) > budget.large_model:
        budget = replace(budget, same_firmware_work=budget.same_firmware_work_large)
    elif _is_scratch_bound(ops, options.kernels):
        budget = replace(
            budget,
            same_firmware_work=budget.same_firmware_work_scratch,
            segmentations_without_gain=budget.segmentations_without_gain_scratch,
        )
    return replace(options, search_budget=budget)


def _is_scratch_bound(ops: Sequence[Op], kernels: TargetKernels) -> bool:
    """Whether some operator needs more scratch bytes than the operands and results of any operator:
    parts of its channels are then as promising as parts of rows, so that more of both are tried."""
    scratch = max((sum(map(align_up, kernels.scratch_of(op))) for op in ops), default=0)
    tensors = (sum(map(planned_bytes, {*op.operands(), *op.outputs})) for op in ops)
    return scratch > max(tensors, default=0)
