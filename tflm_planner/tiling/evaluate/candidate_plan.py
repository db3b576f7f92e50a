"""Plans the tiled model of a candidate, in other spellings where the candidate permits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_planner.cost import instructions_of
from tflm_planner.memory.problem import Overlap, Plan, Problem
from tflm_planner.model.ir import Graph, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.tflm.liveness import (
    Timeline,
    planning_problem,
    timeline_of,
    view_aliases,
)
from tflm_planner.tflm.placement import tensor_offsets
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.memo import EvaluationMemo
from tflm_planner.tiling.evaluate.tiled_model import TiledModel
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.spellings import (
    PlanFigures,
    Respelling,
    SpellingChoice,
    SpellingPermission,
    best_spellings,
)
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.spelling import Spelling


@dataclass(frozen=True)
class PlannedCandidate:
    """A tiled model with a plan. spellings: those in which its operators were written anew."""

    tiled: TiledModel
    timeline: Timeline
    problem: Problem
    plan: Plan
    spellings: tuple[Spelling, ...] = ()

    @property
    def height(self) -> int:
        """Bytes of the plan."""
        return self.plan.height(self.problem)

    @property
    def offsets(self) -> dict[Tensor, int]:
        """Tensor -> bytes from the head's start."""
        return tensor_offsets(self.timeline, self.plan)


def plan_candidate(
    tiled: TiledModel, candidate: Candidate, options: TilingOptions, memo: EvaluationMemo
) -> PlannedCandidate:
    """A plan of the model, with operators in other spellings where the candidate permits them."""
    planner = _Planner(options, memo)
    if candidate.respell is None:
        return planner.plan(tiled, candidate)
    return planner.plan_respelled(tiled, candidate, candidate.respell)


@dataclass(frozen=True)
class _Outline:
    """Spellings of operators, and what a plan needs that knows only how near their results may come
    to their operands."""

    spellings: tuple[Spelling, ...]
    height: int
    instructions: int

    @property
    def figures(self) -> PlanFigures:
        """The figures by which spellings are chosen."""
        return PlanFigures(self.height, self.height, self.instructions)


@dataclass(frozen=True)
class _Planner:
    """Plans the tiled models of one candidate."""

    options: TilingOptions
    memo: EvaluationMemo

    def plan(self, tiled: TiledModel, candidate: Candidate) -> PlannedCandidate:
        """A quick plan of the model; in the dialect, if the candidate asks for it, with views
        inside their parents."""
        model, options = tiled.model, self.options
        timeline = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
        problem = planning_problem(timeline, options.input_overlaps_of)
        aliases = self._required(timeline, model.main, candidate)
        plan = self.memo.plans.pack(problem, aliases, candidate.effort.rounds)
        return PlannedCandidate(tiled, timeline, problem, plan)

    def _required(
        self, timeline: Timeline, graph: Graph, candidate: Candidate
    ) -> Sequence[Overlap]:
        """The aliases of views that must lie inside their parents."""
        binds = self.options.dialect and candidate.has_views and candidate.bind_views
        return view_aliases(timeline, graph) if binds else ()

    def plan_respelled(
        self, tiled: TiledModel, candidate: Candidate, most: int
    ) -> PlannedCandidate:
        """The plan with operators in other spellings, within `most` instructions. The spellings are
        chosen by about a dozen quick plans; only the plan of the chosen ones is made with the
        candidate's effort."""
        quick = replace(candidate, effort=min(candidate.effort, Effort.CLIMB))
        planned = self._respell(self.plan(tiled, quick), quick, most)
        if quick == candidate:
            return planned
        return replace(self.plan(planned.tiled, candidate), spellings=planned.spellings)

    def _respell(
        self, as_it_is: PlannedCandidate, candidate: Candidate, most: int
    ) -> PlannedCandidate:
        """The best plan with operators in other spellings, or the given plan. The spellings are
        chosen by plans of the buffers as they are; only the chosen ones are written."""
        tiled = as_it_is.tiled
        spellings = self._best_spellings(as_it_is, candidate, most)
        if not spellings:
            return as_it_is
        spelled = self.plan(tiled.with_spellings(spellings), candidate)
        if spelled.height >= as_it_is.height or self._instructions(spelled) > most:
            return as_it_is
        return replace(spelled, spellings=spellings)

    def _best_spellings(
        self, as_it_is: PlannedCandidate, candidate: Candidate, most: int
    ) -> tuple[Spelling, ...]:
        tiled, options = as_it_is.tiled, self.options
        choice = SpellingChoice(
            tiled.model,
            as_it_is.timeline,
            as_it_is.problem,
            options.kernels,
            rows=options.dialect or options.allows("RESHAPE", tiled.used_kinds),
            memo=self.memo.offers,
        )
        required = self._required(as_it_is.timeline, tiled.model.main, candidate)
        instructions = self._instructions(as_it_is)

        def outline(spellings: tuple[Spelling, ...]) -> _Outline:
            problem, more = choice.outlined(spellings)
            plan = self.memo.plans.pack(problem, required, candidate.effort.rounds)
            return _Outline(spellings, plan.height(problem), instructions + more)

        permission = SpellingPermission(instructions=most)
        respelling = Respelling(outline, lambda outlined: outlined.figures)
        return best_spellings(choice, outline(()), permission, respelling).spellings

    def _instructions(self, planned: PlannedCandidate) -> int:
        return instructions_of(planned.tiled.model, self.options.kernels.target, planned.offsets)
