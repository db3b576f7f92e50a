"""Plans the tiled model of a candidate, in other spellings where the candidate permits them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.cost import instructions_of
from tflm_planner.memory.problem import Plan, Problem
from tflm_planner.model.ir import Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.tflm.liveness import (
    Timeline,
    planning_problem,
    timeline_of,
    view_aliases,
)
from tflm_planner.tflm.placement import placement_of, tensor_offsets
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
    """A tiled model with a plan."""

    tiled: TiledModel
    timeline: Timeline
    problem: Problem
    plan: Plan

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
        binds = options.dialect and candidate.has_views and candidate.bind_views
        aliases = view_aliases(timeline, model.main) if binds else ()
        plan = self.memo.plans.pack(problem, aliases, candidate.effort.rounds)
        return PlannedCandidate(tiled, timeline, problem, plan)

    def plan_respelled(
        self, tiled: TiledModel, candidate: Candidate, most: int
    ) -> PlannedCandidate:
        """The plan with operators in other spellings, within `most` instructions. The spellings are
        chosen by about a dozen quick plans; only the plan of the chosen ones is made with the
        candidate's effort."""
        quick = replace(candidate, effort=min(candidate.effort, Effort.CLIMB))
        planned = self._respell(self.plan(tiled, quick), quick, most)
        return planned if quick == candidate else self.plan(planned.tiled, candidate)

    def _respell(
        self, as_it_is: PlannedCandidate, candidate: Candidate, most: int
    ) -> PlannedCandidate:
        """The best plan with operators in other spellings, or the given plan."""
        tiled, options = as_it_is.tiled, self.options
        target = options.kernels.target

        def respell(spellings: tuple[Spelling, ...]) -> PlannedCandidate:
            return self.plan(tiled.with_spellings(spellings), candidate)

        def measure(planned: PlannedCandidate) -> PlanFigures:
            head = placement_of(planned.timeline, planned.offsets).head
            instructions = instructions_of(planned.tiled.model, target, planned.offsets)
            return PlanFigures(head, head, instructions)

        choice = SpellingChoice(
            tiled.model,
            as_it_is.timeline,
            as_it_is.problem,
            options.kernels,
            rows=options.dialect or options.allows("RESHAPE", tiled.used_kinds),
            memo=self.memo.offers,
        )
        permission = SpellingPermission(instructions=most)
        return best_spellings(choice, as_it_is, permission, Respelling(respell, measure))
