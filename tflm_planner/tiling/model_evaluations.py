"""The whole models that a search has evaluated, and the tilings that they give.

    candidate --(tile orders, views bound or not)--> variants --(unknown ones)--> workers -> Tiling

A candidate is evaluated with its tiles in several orders, unless the model is too large for that.
Evaluations that the workers do not remember are charged to the search's work. This module must not
know where candidates come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tflm_planner.tiling.evaluate.candidate import Candidate, Evaluation, if_permitted, tiling_of
from tflm_planner.tiling.evaluate.evaluator import UNTILED, EvaluationRequest
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segments import TILE_ORDERS, added_work
from tflm_planner.tiling.tilings import (
    Region,
    Tiling,
    TilingResult,
    Trial,
    best_tiling,
    pareto_fronts,
    slower_front,
)
from tflm_planner.tiling.work import WorkBudget


class EvaluatedCandidate(NamedTuple):
    """A candidate and its tiling."""

    candidate: Candidate
    tiling: Tiling


class ModelEvaluations:
    """The whole models of one search.

    length: operators of the untiled model. work: the budget that evaluations spend. untiled: the
    evaluation of the untiled model. original_instructions: its instructions before it was
    subsampled; slowdowns are relative to them. tilings: those that are fast enough to be varied,
    the untiled model first. slower: the others. best: the best tiling so far; among equals the
    first. used_kinds: kinds of operators in the file.
    """

    def __init__(
        self, workers: Workers, options: TilingOptions, length: int, work: WorkBudget
    ) -> None:
        self._workers, self._options, self._length, self.work = workers, options, length, work
        (untiled,) = workers.evaluate([UNTILED])
        assert untiled is not None, "the model itself is always possible"
        self.untiled: Evaluation = untiled
        self.used_kinds = workers.evaluator.used_kinds
        subsampling = options.subsampling
        self.original_instructions = (
            untiled.instructions if subsampling is None else subsampling.original_instructions
        )
        whole = Candidate((), False)
        self.tilings = [tiling_of(whole, untiled, options, self.original_instructions)]
        (self.best,) = self.tilings
        self.slower: list[Tiling] = []
        self._tilings: dict[Candidate, Tiling | None] = {}

    @property
    def count(self) -> int:
        """Number of candidates that were evaluated, including impossible ones."""
        return len(self._tilings)

    def __contains__(self, candidate: object) -> bool:
        """Whether exactly this candidate was evaluated."""
        return candidate in self._tilings

    @property
    def untiled_tail(self) -> int:
        """Bytes of the untiled model's tail if the objective is the arena; 0 if it is the head."""
        return self.untiled.tail if self._options.objective == "arena" else 0

    def request(self, requests: Sequence[EvaluationRequest]) -> list[Evaluation | None]:
        """The evaluations; None if a candidate is impossible or needs operators not permitted."""
        evaluations = self._workers.evaluate(requests)
        return [
            if_permitted(evaluation, self._options, self.used_kinds) for evaluation in evaluations
        ]

    def add(self, candidates: Sequence[Candidate], *, as_they_are: bool = False) -> None:
        """Evaluate whole models that are not known yet. Each candidate is evaluated in all tile
        orders, and if it mixes tiles and loops also with unbound views. as_they_are: evaluate
        exactly the given candidates."""
        variants = [v for c in candidates for v in ([c] if as_they_are else self._variants(c))]
        unknown = [c for c in dict.fromkeys(variants) if c not in self._tilings]
        requests = [EvaluationRequest(c) for c in unknown]
        charged = [r.candidate for r in requests if not self._workers.knows(r)]
        self.work.spend(sum(map(self.work_of, charged)))
        for candidate, evaluation in zip(unknown, self.request(requests), strict=True):
            self._tilings[candidate] = self._store(candidate, evaluation)

    def add_changed(self, candidates: Sequence[Candidate]) -> None:
        """Evaluate changed models: each in the tile order of the model that was changed, and where
        it then needs hardly more bytes than the smallest tiling that is as fast, in all variants.
        What mixes tiles and loops and is impossible as it stands may be possible with unbound
        views."""
        self.add(candidates, as_they_are=True)
        self.add([c for c in dict.fromkeys(candidates) if self._is_promising(c)])

    def _is_promising(self, candidate: Candidate) -> bool:
        tiling = self._tilings[candidate]
        if tiling is None:
            return candidate.is_mixed
        least = min(t.bytes for t in self.tilings if t.slowdown <= tiling.slowdown)
        return tiling.bytes <= least + least // self._options.search_budget.promising_change

    def tilings_of(self, candidate: Candidate) -> list[Tiling]:
        """The tilings of a candidate that was added: those of its variants that are possible,
        permitted and fast enough."""
        return [t for v in self._variants(candidate) if (t := self._tilings[v]) is not None]

    def _variants(self, candidate: Candidate) -> list[Candidate]:
        """A candidate in all tile orders and view bindings in which it is evaluated."""
        binds_both_ways = candidate.bind_views and candidate.is_mixed
        several = self.work_of(candidate) <= self._options.search_budget.several_orders_model
        return [
            replace(candidate, tile_order=tile_order, bind_views=bind_views)
            for bind_views in ((True, False) if binds_both_ways else (candidate.bind_views,))
            for tile_order in (TILE_ORDERS if several else (candidate.tile_order,))
        ]

    def _store(self, candidate: Candidate, evaluation: Evaluation | None) -> Tiling | None:
        """Store the tiling and return it; None if there is none, or if it is too slow."""
        if evaluation is None:
            return None
        tiling = tiling_of(candidate, evaluation, self._options, self.original_instructions)
        if tiling.slowdown > self._options.searched_slowdown:
            self.slower.append(tiling)
            return None
        self.tilings.append(tiling)
        if tiling.beats(self.best, self._options.arena_limit):
            self.best = tiling
        return tiling

    def peak_of(self, candidate: Candidate) -> int | None:
        """The operator of the untiled model at the peak of memory of a candidate; None if it was
        not evaluated."""
        return next((tiling.bottleneck for tiling in self._known(candidate)), None)

    def figures_of(self, candidate: Candidate) -> Tiling | None:
        """The best tiling of a candidate and its variants, as far as they were evaluated; None if
        there is none."""
        return min(self._known(candidate), key=lambda tiling: tiling.rank, default=None)

    def _known(self, candidate: Candidate) -> Iterator[Tiling]:
        """The tilings of a candidate, then of its variants."""
        known = (self._tilings.get(c) for c in (candidate, *self._variants(candidate)))
        return filter(None, known)

    def beat(self, size: int, slowdown: float) -> bool:
        """Whether a tiling is as small as `size` bytes and as fast."""
        return any(t.bytes <= size and t.slowdown <= slowdown for t in self.tilings)

    def work_of(self, candidate: Candidate) -> int:
        """Operators that an evaluation of a candidate plans."""
        return self._length + sum(map(added_work, candidate.regions))

    def ranking(self) -> list[EvaluatedCandidate]:
        """The tilings that change the model, the best first; among equals those with bound views
        first."""
        evaluated = [
            EvaluatedCandidate(candidate, tiling)
            for candidate, tiling in self._tilings.items()
            if tiling is not None and tiling.is_changed
        ]
        return sorted(evaluated, key=lambda e: (e.tiling.rank, not e.candidate.bind_views))

    def front(self) -> list[EvaluatedCandidate]:
        """The tilings that the search offers so far (`pareto_fronts`), without the unchanged model,
        the smallest first."""
        candidates = {tiling: c for c, tiling in self._tilings.items() if tiling is not None}
        offered = pareto_fronts(candidates)
        return [EvaluatedCandidate(candidates[t], t) for t in offered if t.is_changed]

    def result(self, evaluated: int, trials: tuple[Trial, ...] = ()) -> TilingResult:
        """What is offered: the tilings that are as fast as the options ask. evaluated: number of
        candidates."""
        front = pareto_fronts(self.fast_enough)
        best = self.best_within(self._options.max_slowdown)
        return TilingResult(best, front, evaluated, slower_front(front, self.too_slow), trials)

    def best_within(self, slowdown: float) -> Tiling:
        """The best tiling so far among those with at most this slowdown, one or more; the model
        without tiles if there is none, as a subsampled model may be slower than it came."""
        tilings = [t for t in self.tilings if t.slowdown <= slowdown] or self.tilings[:1]
        return best_tiling(tilings, self._options.arena_limit)

    @property
    def fast_enough(self) -> list[Tiling]:
        """The tilings that are as fast as the options ask."""
        return [t for t in self.tilings if t.slowdown <= self._options.max_slowdown]

    @property
    def too_slow(self) -> list[Tiling]:
        """The others."""
        most = self._options.max_slowdown
        return [t for t in (*self.tilings, *self.slower) if t.slowdown > most]

    def saving_regions(self, order: Sequence[int]) -> list[Region]:
        """The regions that alone make the model faster than it came, those that save most first.
        Their operators are positions in this order."""
        alone = [
            (tiling.slowdown, candidate.regions[0])
            for candidate, tiling in self._tilings.items()
            if tiling is not None and tiling.slowdown < 1
            if len(candidate.regions) == 1 and candidate.order == order
        ]
        alone.sort(key=lambda found: found[0])
        return [*dict.fromkeys(region for _, region in alone)]

    def affordable(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """As many of the first candidates as the step's work allows; at least one."""
        work_left = self.work.first_part_remaining
        for k, candidate in enumerate(candidates):
            work_left -= len(TILE_ORDERS) * self.work_of(candidate)
            if work_left < 0:
                return candidates[: max(k, 1)]
        return candidates
