"""Changes the spellings of operators in a planned model if that lowers its arena."""

from __future__ import annotations

from dataclasses import replace

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_plan import (
    MemoryPlan,
    chosen_order,
    count_instructions,
    find_orders,
    place_buffers,
    plan_quickly,
    rank,
)
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.liveness import planning_problem
from tflm_planner.tiling.spellings import (
    PlanFigures,
    Respelling,
    SpellingChoice,
    SpellingPermission,
    best_spellings,
)
from tflm_planner.transforms.base import run
from tflm_planner.transforms.reorder import ChosenOrder
from tflm_planner.transforms.schedules import PlanRecipe
from tflm_planner.transforms.spelling import Respell, Spelling


def try_spellings(
    best: MemoryPlan,
    options: MemoryOptions,
    permission: SpellingPermission,
    on_progress: Progress,
    stop: Stop,
) -> MemoryPlan:
    """The best plan with other spellings of operators; `best` itself if none lowers the arena."""
    choice = _choice_of(best, options, rows=permission.rows)
    rounds = options.recipe.effort.rounds if options.recipe else None

    def respell(spellings: tuple[Spelling, ...]) -> MemoryPlan:
        model = clone(best.model)
        notes = (*best.notes, *run(model, Respell(spellings)))
        return plan_quickly(model, options, best.order, notes, rounds)

    on_progress("spelling operators otherwise")
    respelling = Respelling(respell, lambda plan: _figures_of(plan, options))
    spelled = best_spellings(choice, best, permission, respelling)
    if spelled is best:
        return best
    order = _bounded_anew(best.order, spelled.model, options)
    careful = place_buffers(spelled.model, options, order, spelled.notes, on_progress, stop)
    if rank(careful, options) < rank(spelled, options):
        return careful
    return replace(spelled, order=order)


def spell_as_evaluated(start: MemoryPlan, options: MemoryOptions, recipe: PlanRecipe) -> MemoryPlan:
    """The plan with the spellings that an evaluation chose; `start`, the plan that the recipe
    describes without them, if it chose none."""
    if not recipe.spellings:
        return start
    model = clone(start.model)
    notes = (*start.notes, *run(model, Respell(recipe.spellings)))
    order = _bounded_anew(start.order, model, options)
    return plan_quickly(model, options, order, notes, recipe.effort.rounds)


def _bounded_anew(order: ChosenOrder, model: Model, options: MemoryOptions) -> ChosenOrder:
    """The order, which stays, with the bounds of a model in other spellings."""
    bounds = chosen_order(model, find_orders(model, replace(options, order="file")))
    return replace(order, peak=bounds.peak, lower_bound=bounds.lower_bound, optimal=False)


def least_head_respelled(memory_plan: MemoryPlan, options: MemoryOptions) -> int:
    """A lower bound on the head of all plans of the model in its order, whatever its spellings."""
    return _choice_of(memory_plan, options, rows=True).floor


def _choice_of(memory_plan: MemoryPlan, options: MemoryOptions, *, rows: bool) -> SpellingChoice:
    """The spellings of a planned model. rows: whether those in rows are permitted."""
    timeline = memory_plan.timeline
    problem = planning_problem(timeline, options.input_overlaps_of)
    return SpellingChoice(memory_plan.model, timeline, problem, options.kernels, rows=rows)


def _figures_of(memory_plan: MemoryPlan, options: MemoryOptions) -> PlanFigures:
    """The arena and instructions of a plan. With `bind_views`, the head is used instead of the
    arena."""
    model, offsets, target = memory_plan.model, memory_plan.offsets, options.kernels.target
    arena = memory_plan.head if options.bind_views else arena_of(model, target, offsets).arena
    return PlanFigures(arena, memory_plan.head, count_instructions(memory_plan, target))
