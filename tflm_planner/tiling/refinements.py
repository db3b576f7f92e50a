"""The last steps of a search, which vary the best models that it has evaluated.

    spellings     operators written so that another kernel runs (`spellings`)
    neighbours    one region of a model changed, left out, or joined with the next
    sizes         the parts of the smallest model made more, fewer, or uneven
    care          the best few models planned again with more effort
    savings       regions that save instructions by themselves put into all models of the front
    gaps          where the front has the widest gap, several regions changed at once

This module must not know how the models were found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest

from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.front_gaps import FrontGaps
from tflm_planner.tiling.model_evaluations import EvaluatedCandidate, ModelEvaluations
from tflm_planner.tiling.moves.neighbours import (
    FASTER,
    RESIZED,
    SMALLER,
    Change,
    loops_otherwise,
    neighbours,
)
from tflm_planner.tiling.moves.saving_regions import with_saving_regions
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segments import TILE_ORDERS
from tflm_planner.tiling.tilings import Region, mean_bytes
from tflm_planner.tiling.work import EarlyStop
from tflm_planner.transforms.schedules import Effort


@dataclass
class Refinements:
    """The last steps of one search. order: operators of the untiled model in running order.

    `steps()` are those that look for what is smaller; `put_in_saving_regions` and `close_gaps` come
    after all others, so that they can only add to what is offered. In a large model sizes and gaps
    are left out if changing one region at a time has gained next to nothing.
    """

    models: ModelEvaluations
    options: TilingOptions
    order: tuple[int, ...]
    is_settled: bool = field(default=False, init=False)
    """Whether the model is large, and changes of the regions of its front gained next to
    nothing."""

    def steps(self) -> Iterator[tuple[Callable[[], None], str]]:
        """The first steps in order, each with a description of what it has done. In a large model
        few tilings were evaluated, so neighbours do not displace models for which spellings should
        be tried."""
        if self._is_large:
            yield self.evaluate_neighbours, "regions changed one at a time"
        yield self.evaluate_spellings, "operators spelled otherwise"
        yield self.evaluate_neighbours, "regions changed one at a time"
        yield self.refine_pareto_front, "what is faster and larger changed too"
        yield self.resize_parts, "parts of the smallest resized"
        yield self.plan_with_care, "the best planned with care"

    @property
    def _is_large(self) -> bool:
        return len(self.order) > self.options.search_budget.large_model

    def evaluate_spellings(self) -> None:
        """Try other spellings within the remaining instructions: in the best models with full
        plans; in many more models with first-fit plans, because the gain cannot be predicted; then
        plan the best of those fully."""
        budget = self.options.search_budget
        most = int(self.options.max_slowdown * self.models.original_instructions)
        self.models.work.begin_step(1.0)
        untiled = Candidate((), self.options.dialect, self.order, Effort.CLIMB, respell=most)
        models = [c for c, _ in self.distinct_models()[: budget.spelled_models]]
        with_full_plans = [replace(c, respell=most) for c in models[: budget.spelled_fully]]
        with_first_fits = [replace(c, respell=most, effort=Effort.FIRST_FITS) for c in models]
        self.models.add(self.models.affordable([untiled, *with_full_plans]))
        self.models.add(self.models.affordable(with_first_fits), as_they_are=True)
        self._plan_spelled_models()

    def evaluate_neighbours(self) -> None:
        """Change one region at a time in the best models, except in those that are too large. If
        the very best have no loops, change the best model with loops as well."""
        budget = self.options.search_budget
        best = [c for c, _ in self.distinct_models()[: budget.neighboured_models]]
        for candidate in best:
            near = self._neighbours(candidate, SMALLER)
            self._evaluate_near(candidate, near, self.models.add_changed)
        self._climb_among_loops(best)
        self._plan_spelled_models()

    def evaluate_loops(self) -> None:
        """Change models with loops once more: where tiles promised less, loops come only with
        segmentations within lower limits, after the other refinements."""
        self._climb_among_loops([c for c, _ in self.distinct_models()])
        self._plan_spelled_models()

    def _climb_among_loops(self, best: Sequence[Candidate]) -> None:
        """If none of the very best has loops, change the best model with loops, then the best that
        came of it, and so on. Where loops are dear, the best of them are a few changes away from
        one that tiles beat, and no change of one region leads from tiles to loops. None of them is
        near the front before."""
        rounds, known = self.options.search_budget.climbs_among_loops, set[Candidate]()
        if any(c.has_loops for c in best[:rounds]):
            return
        for _ in range(rounds):
            looped = next((c for c, _ in self.distinct_models() if c.has_loops), None)
            if looped is None or looped in known:
                return
            known.add(looped)
            start = replace(looped, bind_views=True)
            self._evaluate_near(start, self._neighbours(start, SMALLER), self.models.add)
            self._evaluate_near(start, loops_otherwise(start, self._steps), self.models.add)

    def _evaluate_near(
        self,
        candidate: Candidate,
        near: Iterator[Candidate],
        add: Callable[[Sequence[Candidate]], None],
    ) -> None:
        """Evaluate the first candidates near another, unless that one is too large. add: evaluates
        them in all tile orders, or in all only where they come near the front."""
        if not self._is_too_large(candidate):
            self.models.work.begin_step(1.0)
            batch = [*islice(near, self.options.search_budget.batch)]
            add(self.models.affordable(batch))

    def _neighbours(self, candidate: Candidate, kinds: Sequence[Change]) -> Iterator[Candidate]:
        """The candidate with one region changed."""
        peak = self.models.peak_of(candidate)
        growth_steps = self.options.search_budget.growth_steps
        return neighbours(candidate, len(self.order), kinds, peak, self._steps, growth_steps)

    @property
    def _steps(self) -> tuple[int, ...]:
        """By how much ends, part counts and rows are changed."""
        return self.options.search_budget.neighbour_steps

    def refine_pareto_front(self) -> None:
        """Change one region at a time in all models of the Pareto front, and repeat while the front
        grows, so that the models between the smallest and the fastest are improved too."""
        if not self.options.search_budget.front_work:
            return
        before = self._mean_bytes()
        self._change_pareto_front()
        gain = before - self._mean_bytes()
        least = before // self.options.search_budget.settling_gain
        has_regions = any(candidate.regions for candidate in self._front())
        self.is_settled = self._is_large and has_regions and gain < least

    def _change_pareto_front(self) -> None:
        budget = self.options.search_budget
        stop = EarlyStop(
            budget.front_batches_without_gain, self._mean_bytes(), budget.front_least_gain
        )
        work_left, known = budget.front_work, set[Candidate]()
        while near := [self._changed(c) for c in self._front() if c not in known]:
            known.update(self._front())
            changed = dict.fromkeys(filter(None, chain(*zip_longest(*near))))
            chosen = [c for c in changed if c not in known and not self._is_too_large(c)]
            for start in range(0, len(chosen), budget.batch):
                batch = chosen[start : start + budget.batch]
                self.models.add_changed(batch)
                known.update(batch)
                work_left -= len(TILE_ORDERS) * sum(map(self.models.work_of, batch))
                stop.record(self._mean_bytes())
                if stop.is_due or work_left < 0:
                    return

    def resize_parts(self) -> None:
        """Change the number and the sizes of the parts of the smallest model, and of what comes of
        it, as long as that makes it smaller."""
        if self.is_settled:
            return
        work_left, known = self.options.search_budget.resizing_work, set[Candidate]()
        while (smallest := self._smallest) and smallest not in known and work_left > 0:
            known.add(smallest)
            if not self._is_too_large(smallest):
                work_left -= self._resize(smallest, work_left)

    @property
    def _smallest(self) -> Candidate | None:
        """The smallest model that is changed, to be planned as the best ones are."""
        best = self.distinct_models()[:1]
        return replace(best[0].candidate, effort=Effort.CLIMB) if best else None

    def _resize(self, candidate: Candidate, most_work: int) -> int:
        """Evaluate resized parts until a model is smaller than this one; returns the work."""
        budget = self.options.search_budget
        resized = [*islice(self._neighbours(candidate, RESIZED), budget.batch)]
        work = 0
        while resized and self._smallest == candidate and work < most_work:
            batch, resized = resized[: budget.resized_batch], resized[budget.resized_batch :]
            self.models.add_changed(batch)
            work += sum(map(self.models.work_of, batch))
        return work

    def _front(self) -> list[Candidate]:
        return [e.candidate for e in self.models.front()]

    def _is_too_large(self, candidate: Candidate) -> bool:
        return self.models.work_of(candidate) > self.options.search_budget.several_orders_model

    def _changed(self, candidate: Candidate) -> Iterator[Candidate]:
        """The candidate with its views bound otherwise, then with one region changed."""
        yield replace(candidate, bind_views=not candidate.bind_views, effort=Effort.CLIMB)
        for changed in self._neighbours(candidate, FASTER):
            yield replace(changed, effort=Effort.CLIMB)

    def _mean_bytes(self) -> int:
        """The bytes of the smallest tiling within a slowdown, averaged over the permitted
        slowdowns: one figure for the whole front."""
        return mean_bytes(self.models.tilings, self.options.searched_slowdown)

    def plan_with_care(self) -> None:
        """Plan the best few models with more effort, within the budget for that. If the arena is
        limited, first plan the smallest models above the limit that are faster than the best one:
        more effort may bring one of them below the limit."""
        budget = self.options.search_budget
        work_left = budget.careful_work
        chosen: list[Candidate] = []
        best = self.distinct_models()[: budget.finalists]
        faster = self._faster_models()[: budget.finalists]
        for candidate in dict.fromkeys(c for c, _ in (*faster, *best)):
            if work_left >= 0:
                work_left -= len(TILE_ORDERS) * self.models.work_of(candidate)
                chosen.append(replace(candidate, effort=Effort.CAREFUL))
        self.models.add(chosen)

    def put_in_saving_regions(self) -> None:
        """Put the regions that save instructions by themselves into the models of the front."""
        saving = self.models.saving_regions(self.order)
        in_order = [c for c in self._front() if c.order == self.order] if saving else []
        self.models.add_changed([
            replace(with_saving_regions(candidate, saving), effort=Effort.CLIMB)
            for candidate in in_order
        ])  # fmt: skip

    def close_gaps(self) -> None:
        """Change one region at a time in the models beside the widest gaps of the front; then, in
        each of them, all those regions at once whose changes together promise to join the front.
        Longer where next to no instruction is allowed: what is free is seldom one change away."""
        if self.is_settled:
            return
        budget = self.options.search_budget
        if self.options.is_nearly_free:
            budget = replace(
                budget,
                gap_work=budget.free_gap_work,
                gap_batches_without_gain=budget.free_gap_batches_without_gain,
                gap_least_gain=budget.free_gap_least_gain,
            )
        gaps = FrontGaps(self.models, self._affordable_changes)
        stop = EarlyStop(budget.gap_batches_without_gain, self._mean_bytes(), budget.gap_least_gain)
        work_left = budget.gap_work
        while work_left > 0 and not stop.is_due:
            batch = [*islice(gaps.untried(), budget.gap_batch)]
            if not batch:
                return
            while batch and work_left > 0:
                self.models.add_changed(batch)
                work_left -= sum(map(self.models.work_of, batch))
                batch = [c for c in gaps.combined() if not self._is_too_large(c)][: budget.batch]
            stop.record(self._mean_bytes())

    def _affordable_changes(self, candidate: Candidate) -> Iterator[Candidate]:
        """The changes of a candidate that do not make it too large."""
        return (c for c in self._changed(candidate) if not self._is_too_large(c))

    def _faster_models(self) -> list[EvaluatedCandidate]:
        """The models above the arena limit that are faster than the best model; none without a
        limit."""
        limit, best = self.options.arena_limit, self.models.best
        if limit is None:
            return []
        return [
            model
            for model in self.distinct_models()
            if model.tiling.bytes > limit and model.tiling.slowdown < best.slowdown
        ]

    def distinct_models(self) -> list[EvaluatedCandidate]:
        """The best candidate for each choice of regions and spellings, the best first. A candidate
        that may use other spellings but costs exactly as much as the one that may not has used
        none: it is a duplicate and is skipped, unless it was planned by first fits only."""
        ranking = self.models.ranking()
        unspelled = {(c.regions, t.slowdown) for c, t in ranking if c.respell is None}
        best: dict[tuple[tuple[Region, ...], int | None], EvaluatedCandidate] = {}
        for model in ranking:
            candidate, tiling = model
            is_as_it_was = (candidate.regions, tiling.slowdown) in unspelled
            if candidate.respell is None or candidate.effort < Effort.CLIMB or not is_as_it_was:
                best.setdefault((candidate.regions, candidate.respell), model)
        return [*best.values()]

    def _plan_spelled_models(self) -> None:
        """Plan the best models with other spellings again with more effort."""
        finalists = self._spelled_models()[: self.options.search_budget.finalists]
        self.models.add(
            [replace(c, effort=Effort.CLIMB) for c in finalists if c.effort < Effort.CLIMB]
        )

    def _spelled_models(self) -> list[Candidate]:
        """The models in which operators may be spelled otherwise, the best first."""
        return [c for c, _ in self.models.ranking() if c.respell is not None]
