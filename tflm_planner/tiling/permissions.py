"""What each permission buys: the search with the operators that the firmware has, then with all
that it may get.

    as it is            order and plan                        nothing to do
    own operators       tiles whose views cost no operator    flash the model
    more operators      tiles with copies, loops              register them, flash both

Every step takes over what the one before found, so that more permission is never worse. This
module must not know how candidates are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tflm_planner.memory.allocators import compiling
from tflm_planner.report.bounds_text import figure
from tflm_planner.report.text import count
from tflm_planner.support.stopping import PartOfStop, Stop, StoppedError
from tflm_planner.tflm.arena.uncertainty import Bound
from tflm_planner.tiling.search import (
    Progress,
    Tiling,
    TilingOptions,
    TilingResult,
    Workers,
    pareto_fronts,
    search_tiles,
    silent,
    slower_front,
)

COMPILED = (
    compiling.CLIMBING,
    compiling.Kernels(
        ("tflm_planner.tiling.segmentation_kernel", "tflm_planner.tiling.hotspots.min_cut")
    ),
    compiling.EXACT,
)
"""What a search of tiles needs, each in a child of its own where it is to be compiled; the last one
for its last plan only."""
_FIRST_SHARE = 0.4
"""Of a time limit, for the operators that the firmware has."""
_LARGE = 120
"""Operators of a model whose trials are dear."""
_OWN_WORK, _OWN_WORK_OF_LARGE = 10_000, 5_000
"""Operators that the search with those of the firmware plans: the one with all comes across most
tiles without new operators too."""
_BEAM_WORK = 1_500
"""Operators that the beam beside a search plans."""


@dataclass(frozen=True)
class PermissionResults:
    """own: the best with operators that the firmware has, whichever search came across it; None
    where all were refused. found: with all that are permitted, the same where that is nothing
    more."""

    own: Tiling | None
    found: TilingResult

    def notes(self, plain: int, best: int, registered: Sequence[str], bound: Bound) -> list[str]:
        """What each step comes to. plain: bytes with order and plan alone. best: of the model
        that was made. registered: what it makes the firmware register. bound: what bytes are."""
        own = best
        if registered:
            own = plain if self.own is None else min(self.own.bytes, plain)
        sizes = figure(plain, bound), figure(own, bound)
        said = [f"operators as they are: {sizes[0]}; in tiles, same firmware: {sizes[1]}"]
        if registered and best < own:
            more = count(len(registered), "more operator", "more operators")
            said.append(f"with {more} in the firmware: {figure(best, bound)}")
        return said

    def without(self, refused: Tiling, budget: int | None) -> PermissionResults:
        """What is left where a tiling turned out to be none."""
        front = tuple(t for t in self.found.front if t != refused)
        rest = [t for t in front if not t.added]
        own = self.own if self.own != refused else _best_tiling(rest, budget) if rest else None
        return PermissionResults(own, replace(self.found, front=front))

    def unlike(self, shares: Callable[[Tiling], bool]) -> PermissionResults:
        """The same, with nothing slower than allowed that shares a cause of refusals."""
        slower = tuple(t for t in self.found.slower if not shares(t))
        return replace(self, found=replace(self.found, slower=slower))


def search_by_permission(
    data: bytes,
    options: TilingOptions,
    on_progress: Progress | None = None,
    stop: Stop | None = None,
) -> PermissionResults:
    """The search of `search_tiles`, step by step; a step that `stop` lets no time for is left out.
    Raises StoppedError where none can be made."""
    say, stop = on_progress or silent, stop or Stop()
    is_all = options.new_kinds == frozenset()
    compiling.start(COMPILED)
    if not compiling.ready(COMPILED[:-1], stop, say):
        raise StoppedError
    workers = Workers(data, options)
    try:
        if not is_all:
            say("tiling with the firmware's own operators")
        as_is = replace(
            options, new_kinds=frozenset(), most_work=_work_without_new_operators(workers)
        )
        share = stop if is_all else PartOfStop(stop, _FIRST_SHARE)
        first = _search_with_beam(data, as_is, say, workers, share)
        if is_all:
            return PermissionResults(first.best, first)
        say("tiling with all operators that are permitted")
        try:
            more = _search_with_beam(data, options, say, workers, stop)
        except StoppedError:
            return PermissionResults(first.best, first)
    finally:
        workers.close()
    both = pareto_fronts((first.best, *first.front, more.best, *more.front))
    best = _best_tiling([more.best, first.best], options.budget)
    slower = slower_front(both, (*first.slower, *more.slower))
    own = _best_tiling([first.best, *(t for t in both if not t.added)], options.budget)
    return PermissionResults(own, TilingResult(best, both, first.tried + more.tried, slower))


def _work_without_new_operators(workers: Workers) -> int:
    large = len(workers.bench.model.main.ops) > _LARGE
    return _OWN_WORK_OF_LARGE if large else _OWN_WORK


def _best_tiling(tilings: Sequence[Tiling], budget: int | None) -> Tiling:
    """The best one; of equals the first."""
    best = tilings[0]
    for other in tilings[1:]:
        if other.beats(best, budget):
            best = other
    return best


def _search_with_beam(
    data: bytes, options: TilingOptions, say: Progress, workers: Workers, stop: Stop
) -> TilingResult:
    """A search, and a short one in the manner of MOTES beside it: its regions need not lie in one
    piece of any order, which intervals do."""
    found = search_tiles(data, options, say, workers, stop)
    few = options.width * len(workers.bench.model.main.ops) > _BEAM_WORK
    if options.method != "regions" or few:  # not even one step's states could be tried
        return found
    beam = replace(options, method="motes", most_work=min(_BEAM_WORK, options.most_work))
    try:
        other = search_tiles(data, beam, say, workers, stop)
    except StoppedError:
        return found
    best = _best_tiling([found.best, other.best], options.budget)
    both = pareto_fronts((best, *found.front, *other.front))
    slower = slower_front(both, (*found.slower, *other.slower))
    return TilingResult(best, both, found.tried + other.tried, slower)
