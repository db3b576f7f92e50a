"""Chooses the order of operators, the aliases and the offsets.

The passes and the planning problem know what is legal. This module makes candidates and compares
them by the head that TFLM will really take; the lowest wins. If no order saves anything, the
operators stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tflm_planner.memory.allocators.packing import ROUNDS
from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.pipeline.memory_plan import (
    MemoryPlan,
    apply_orders,
    count_instructions,
    current_orders,
    order_operators,
    place_buffers,
    plan_quickly,
    rank,
)
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.support.garbage import no_collection
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.liveness import (
    planning_problem,
    timeline_of,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tiling.spellings import (
    Respelled,
    SpellingChoice,
    SpellingPermission,
    best_spellings,
)
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.reorder import (
    OrderProblem,
    order_problems,
)
from tflm_planner.transforms.schedules import quick_order
from tflm_planner.transforms.spelling import Respell, Spelling

_LARGE = 1_500
"""A model that was planned before and has more operators than this is not searched again: minutes
of search found nothing better in models of thousands of tiles."""


def plan_memory(
    model: Model,
    options: MemoryOptions,
    on_progress: Progress | None = None,
    stop: Stop | None = None,
) -> MemoryPlan:
    """The best candidate found. Changes `model` (cleans it up and orders it).

    `stop`: of a search that this is a step of; by itself it ends after `options.time_limit`.
    """
    with no_collection():
        stop = stop or Stop(options.time_limit)
        return _plan_memory(model, options, on_progress or silent, stop)


def _plan_memory(
    model: Model, options: MemoryOptions, report_progress: Progress, stop: Stop
) -> MemoryPlan:
    notes = tuple(run(model, Normalize()))
    file_order = current_orders(model)
    graph_problems = order_problems(model, options.kernels.scratch_of)
    by_recipe = _plan_by_recipe(model, options, graph_problems, notes) if options.recipe else None
    if by_recipe is not None and (
        by_recipe[0].is_least or len(model.main.ops) > _LARGE or stop.is_over
    ):
        best, best_orders = by_recipe
    else:
        apply_orders(model, file_order)
        best, best_orders = _plan_best_order(
            model, options, graph_problems, notes, report_progress, stop
        )
    if by_recipe is not None and best is not by_recipe[0]:
        best, best_orders = _lower((best, best_orders), by_recipe, options)
    apply_orders(model, best_orders)
    if not (options.states or options.bind_views):
        best = _unless_tflms_own_is_lower(best, file_order, options)
    if options.spellings is not None and options.overlap:
        unspelled_orders = current_orders(model)
        best = _try_spellings(best, options, options.spellings, report_progress, stop)
        if options.recipe is not None:
            best_rank = rank(best, options)
            apply_orders(model, file_order)
            as_evaluated = _spell_as_evaluated(model, options, graph_problems, notes, stop)
            if as_evaluated is not None and rank(as_evaluated, options) < best_rank:
                best = as_evaluated
            apply_orders(model, unspelled_orders)
    return _check_states(best, options) if options.states else best


_Ordered = tuple[MemoryPlan, dict[Graph, list[Op]]]
"""A plan, and the order of the operators that it is for."""


def _lower(careful: _Ordered, evaluated: _Ordered, options: MemoryOptions) -> _Ordered:
    """The plan that was made with care, if it is better than the one that the search evaluated.
    Leaves the model in some order."""
    ranks: list[tuple[int, int]] = []
    for memory_plan, orders in (careful, evaluated):
        apply_orders(memory_plan.model, orders)
        ranks.append(rank(memory_plan, options))
    return careful if ranks[0] < ranks[1] else evaluated


def _plan_by_recipe(
    model: Model,
    options: MemoryOptions,
    graph_problems: dict[Graph, OrderProblem],
    notes: tuple[str, ...],
) -> _Ordered:
    """The plan that the recipe leads to, and its order. The model is left in that order."""
    recipe = options.recipe
    assert recipe is not None
    order = order_operators(model, options, graph_problems, quick_order(recipe.schedule))
    return plan_quickly(model, options, order, notes, recipe.rounds), current_orders(model)


def _plan_best_order(
    model: Model,
    options: MemoryOptions,
    graph_problems: dict[Graph, OrderProblem],
    notes: tuple[str, ...],
    report_progress: Progress,
    stop: Stop,
) -> _Ordered:
    """The best of the order asked for and its rivals, with that order."""
    file_order = current_orders(model)
    report_progress("ordering operators")
    first = order_operators(model, options, graph_problems, stop=stop)
    best_orders = current_orders(model)
    tried = [best_orders]
    best = place_buffers(model, options, first, notes, report_progress, stop)
    for rival_options in _rivals(best, options, stop):
        if _was_tried(rival_options, graph_problems, file_order in tried):
            continue
        apply_orders(model, file_order)
        rival_order = order_operators(model, rival_options, graph_problems, stop=stop)
        rival_orders = current_orders(model)
        if rival_orders in tried:
            continue
        tried.append(rival_orders)
        rival = place_buffers(model, options, rival_order, notes, report_progress, stop)
        if rival.head < best.head or (rival.head == best.head and not rival_order.changed):
            outcome = replace(rival_order, lower_bound=first.lower_bound, optimal=False)
            best = replace(rival, order=outcome)
            best_orders = rival_orders
    return best, best_orders


def _check_states(best: MemoryPlan, options: MemoryOptions) -> MemoryPlan:
    """The candidate. Raises UnsoundPlanError unless every state has its input and its output in one
    place."""
    graph, offsets = best.model.main, best.offsets
    for input_place, output_place in options.states:
        before, after = graph.inputs[input_place], graph.outputs[output_place]
        if offsets[before] != offsets[after]:
            raise UnsoundPlanError(
                f"no plan was found that leaves the state {after.name!r} in its place, where the "
                "next invoke looks for it; try --order file"
            )
    return best


def _was_tried(
    options: MemoryOptions, graph_problems: dict[Graph, OrderProblem], file_order_tried: bool
) -> bool:
    """Whether a search for an order would only find one that was tried."""
    only_one = not any(frame.plain.is_free for frame in graph_problems.values())
    return only_one or (options.order == "file" and file_order_tried)


def _unless_tflms_own_is_lower(
    best: MemoryPlan, file_order: dict[Graph, list[Op]], options: MemoryOptions
) -> MemoryPlan:
    """The candidate, or the plan that TFLM itself would make, if that happens to be lower."""
    model = best.model
    chosen = current_orders(model)
    timeline = best.timeline
    if chosen != file_order:
        apply_orders(model, file_order)
        timeline = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    own = placement_of(timeline)
    head = own.head
    if head >= best.head:
        apply_orders(model, chosen)
        return best
    problem = planning_problem(timeline)
    solution = replace(
        best.solution, plan=own.plan, height=head, optimal=False, allocator="TFLM's own"
    )
    order = replace(best.order, changed=False, optimal=False)
    return replace(
        best, timeline=timeline, problem=problem, solution=solution, order=order, head=head
    )


def _try_spellings(
    best: MemoryPlan,
    options: MemoryOptions,
    permission: SpellingPermission,
    report_progress: Progress,
    stop: Stop,
) -> MemoryPlan:
    """The best plan with operators spelled otherwise where that lowers the arena."""
    problem = planning_problem(best.timeline, options.input_overlaps_of)
    choice = SpellingChoice(
        best.model, best.timeline, problem, options.kernels, rows=permission.rows
    )
    rounds = options.recipe.rounds if options.recipe else None

    def plan(spellings: tuple[Spelling, ...]) -> Respelled[MemoryPlan]:
        model = clone(best.model)
        notes = (*best.notes, *run(model, Respell(spellings)))
        return _with_figures(plan_quickly(model, options, best.order, notes, rounds), options)

    report_progress("spelling operators otherwise")
    spelled = best_spellings(choice, _with_figures(best, options), permission, plan).plan
    if spelled is best:
        return best
    # The order stays, but what bounds it has changed.
    bounds = order_operators(spelled.model, replace(options, order="file"))
    order = replace(best.order, peak=bounds.peak, lower_bound=bounds.lower_bound, optimal=False)
    careful = place_buffers(spelled.model, options, order, spelled.notes, report_progress, stop)
    if rank(careful, options) < rank(spelled, options):
        return careful
    return replace(spelled, order=order)


def _spell_as_evaluated(
    model: Model,
    options: MemoryOptions,
    graph_problems: dict[Graph, OrderProblem],
    notes: tuple[str, ...],
    stop: Stop,
) -> MemoryPlan | None:
    """The plan with the spellings that the search chose when it evaluated the recipe: from a quick
    plan in the recipe's order, not from the best plan, whose order may be another. None if none of
    them lowers the arena. Leaves the model in the recipe's order."""
    recipe, permission = options.recipe, options.spellings
    assert recipe is not None
    assert permission is not None
    quick = replace(options, recipe=replace(recipe, rounds=min(recipe.rounds, ROUNDS)))
    start, _ = _plan_by_recipe(model, quick, graph_problems, notes)
    spelled = _try_spellings(start, quick, permission, silent, stop)
    if spelled is start:
        return None
    careful = plan_quickly(spelled.model, options, spelled.order, spelled.notes, recipe.rounds)
    return min((spelled, careful), key=lambda plan: rank(plan, options))


def _with_figures(memory_plan: MemoryPlan, options: MemoryOptions) -> Respelled[MemoryPlan]:
    """A plan with its arena and instructions. In the dialect, which drops views, its head is used
    in place of the arena."""
    model, offsets, target = memory_plan.model, memory_plan.offsets, options.kernels.target
    arena = memory_plan.head if options.bind_views else arena_of(model, target, offsets).arena
    instructions = count_instructions(memory_plan, target)
    return Respelled(memory_plan, arena, memory_plan.head, instructions)


def _rivals(best: MemoryPlan, options: MemoryOptions, stop: Stop) -> Iterator[MemoryOptions]:
    """Options for searches of other orders, as long as the best plan is higher than its order
    promised: file order, in case packing undoes the gain, and the best order for a plan without
    input overlaps, unless a trial has already left a good one."""
    plain = () if options.recipe else (replace(options, overlap=False),)
    for rival in (replace(options, order="file"), *plain):
        unkept = best.head > best.order.lower_bound
        if options.order == "best" and unkept and not stop.is_over:
            yield rival
