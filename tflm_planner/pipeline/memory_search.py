"""Chooses: which operator order, which aliases, which offsets.

Legality lives in the passes and the planning problem; here candidates are made, compared by the
head that TFLM will really take, and the lowest wins. An order that saves nothing is not taken:
the operators then stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.pipeline.memory_plan import (
    MemoryPlan,
    Progress,
    apply_orders,
    count_instructions,
    current_orders,
    order_operators,
    place_buffers,
    plan_quickly,
    silent,
)
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.support.garbage import no_collection
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.liveness import (
    planning_problem,
    timeline_of,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.sharing import taken_input_overlaps
from tflm_planner.tiling.spellings import (
    Respelled,
    SpellingChoice,
    SpellingPermission,
    best_spellings,
)
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dilate import Dilate, Undilate, dilatable
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.reorder import (
    OrderProblem,
    order_problems,
)
from tflm_planner.transforms.schedules import quick_order
from tflm_planner.transforms.spelling import Respell, Spelling

_LARGE = 1_500
"""Operators of a model that was planned before, beyond which nothing else is looked for: minutes
of search for an order and a packing found nothing in models of thousands of tiles."""


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
    frames = order_problems(model, options.kernels.scratch_of)
    by_recipe = _plan_by_recipe(model, options, frames, notes) if options.recipe else None
    if by_recipe is not None and (
        by_recipe[0].is_least or len(model.main.ops) > _LARGE or stop.is_over
    ):
        best, wanted = by_recipe
    else:
        apply_orders(model, file_order)
        best, wanted = _plan_best_order(model, options, frames, notes, report_progress, stop)
    if by_recipe is not None and by_recipe[0].head < best.head:
        best, wanted = by_recipe
    apply_orders(model, wanted)
    if options.dilate and options.overlap:
        best = _try_dilation(best, options, report_progress, stop)
    if not (options.states or options.bind_views):
        best = _unless_tflms_own_is_lower(best, file_order, options)
    if options.spellings is not None and options.overlap:
        best = _try_spellings(best, options, options.spellings, report_progress, stop)
    return _check_states(best, options) if options.states else best


def _plan_by_recipe(
    model: Model, options: MemoryOptions, frames: dict[Graph, OrderProblem], notes: tuple[str, ...]
) -> tuple[MemoryPlan, dict[Graph, list[Op]]]:
    """What the recipe comes to, with its order. Puts the model into it."""
    recipe = options.recipe
    assert recipe is not None
    order = order_operators(model, options, frames, quick_order(recipe.schedule))
    return plan_quickly(model, options, order, notes, recipe.rounds), current_orders(model)


def _plan_best_order(
    model: Model,
    options: MemoryOptions,
    frames: dict[Graph, OrderProblem],
    notes: tuple[str, ...],
    report_progress: Progress,
    stop: Stop,
) -> tuple[MemoryPlan, dict[Graph, list[Op]]]:
    """The best of the order asked for and its rivals, with that order."""
    file_order = current_orders(model)
    report_progress("ordering operators")
    first = order_operators(model, options, frames, stop=stop)
    wanted = current_orders(model)
    tried = [wanted]
    best = place_buffers(model, options, first, notes, report_progress, stop)
    for rival_options in _rivals(best, options, stop):
        if _was_tried(rival_options, frames, file_order in tried):
            continue
        apply_orders(model, file_order)
        result = order_operators(model, rival_options, frames, stop=stop)
        ordered = current_orders(model)
        if ordered in tried:
            continue
        tried.append(ordered)
        rival = place_buffers(model, options, result, notes, report_progress, stop)
        if rival.head < best.head or (rival.head == best.head and not result.changed):
            outcome = replace(result, lower_bound=first.lower_bound, optimal=False)
            best = replace(rival, order=outcome)
            wanted = ordered
    return best, wanted


def _check_states(best: MemoryPlan, options: MemoryOptions) -> MemoryPlan:
    """The candidate, if every state stays where it is. Raises UnsoundPlanError."""
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
    options: MemoryOptions, frames: dict[Graph, OrderProblem], file_order_tried: bool
) -> bool:
    """Whether a search for an order would only find one that was tried."""
    only_one = not any(frame.plain.is_free for frame in frames.values())
    return only_one or (options.order == "file" and file_order_tried)


def _unless_tflms_own_is_lower(
    best: MemoryPlan, file_order: dict[Graph, list[Op]], options: MemoryOptions
) -> MemoryPlan:
    """The candidate, or what TFLM itself would do, should luck have been on its side."""
    model = best.model
    chosen = current_orders(model)
    line = best.line
    if chosen != file_order:
        apply_orders(model, file_order)
        line = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    own = placement_of(line)
    head = own.head
    if head >= best.head:
        apply_orders(model, chosen)
        return best
    problem = planning_problem(line)
    solution = replace(
        best.solution, plan=own.plan, height=head, optimal=False, allocator="TFLM's own"
    )
    order = replace(best.order, changed=False, optimal=False)
    return replace(best, line=line, problem=problem, solution=solution, order=order, head=head)


def _try_dilation(
    best: MemoryPlan, options: MemoryOptions, report_progress: Progress, stop: Stop
) -> MemoryPlan:
    """The best candidate with 1x1 convolutions dilated where that lowers the head, and not at the
    cost of the arena: all at first, then only those that use the freedom they got."""
    model, target = best.model, options.kernels.target
    arena = arena_of(model, target, best.offsets).arena
    everyone = {op for op in model.ops() if dilatable(op)}
    run(model, Dilate(everyone))
    all_dilated = place_buffers(model, options, best.order, best.notes, report_progress, stop)
    overlapping = {
        s.op for s in taken_input_overlaps(all_dilated.line, all_dilated.offsets, options.kernels)
    }
    idle = everyone - overlapping
    run(model, Undilate(idle))
    few_dilated = place_buffers(model, options, best.order, best.notes, report_progress, stop)
    dilated_arena = arena_of(model, target, few_dilated.offsets).arena
    if few_dilated.head >= best.head or dilated_arena > arena:
        run(model, Undilate(everyone))
        note = "dilating 1x1 convolutions would save nothing; left as they were"
        return replace(best, notes=(*best.notes, note))
    # The order stays, but what bounds it has changed.
    bounds = order_operators(model, replace(options, order="file"))
    order = replace(best.order, peak=bounds.peak, lower_bound=bounds.lower_bound, optimal=False)
    notes = (*best.notes, _describe_dilation(everyone, overlapping, options))
    return replace(few_dilated, order=order, notes=notes)


def _try_spellings(
    best: MemoryPlan,
    options: MemoryOptions,
    permission: SpellingPermission,
    report_progress: Progress,
    stop: Stop,
) -> MemoryPlan:
    """The best plan with operators spelled otherwise where that lowers the arena."""
    problem = planning_problem(best.line, options.input_overlaps_of)
    choice = SpellingChoice(best.model, best.line, problem, options.kernels, rows=permission.rows)
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
    return careful if careful.head <= spelled.head else replace(spelled, order=order)


def _with_figures(memory_plan: MemoryPlan, options: MemoryOptions) -> Respelled[MemoryPlan]:
    """A plan with its arena and instructions; in the dialect, which drops views, its head stands
    for the arena."""
    model, offsets, target = memory_plan.model, memory_plan.offsets, options.kernels.target
    arena = memory_plan.head if options.bind_views else arena_of(model, target, offsets).arena
    instructions = count_instructions(memory_plan, target)
    return Respelled(memory_plan, arena, memory_plan.head, instructions)


def _describe_dilation(everyone: set[Op], overlapping: set[Op], options: MemoryOptions) -> str:
    used = everyone & overlapping
    scratch = max((sum(options.kernels.scratch_of(op)) for op in used), default=0)
    return (
        f"{len(used)} 1x1 convolutions got a dilation of 2 (same result): they leave CMSIS-NN's "
        f"1x1 kernel for the slower general one, with up to {scratch:,} bytes of scratch"
    )


def lowest_peak(model: Model, options: MemoryOptions) -> int:
    """Bytes of head that no order of the operators can go below. Changes `model`."""
    run(model, Normalize())
    return order_operators(model, options).lower_bound


def _rivals(best: MemoryPlan, options: MemoryOptions, stop: Stop) -> Iterator[MemoryOptions]:
    """Searches for other orders, while the best one is not what its order promised: file order,
    in case packing undoes the gain, and the best order for a plan without input overlaps, unless a
    trial has left one that is good."""
    plain = () if options.recipe else (replace(options, overlap=False),)
    for rival in (replace(options, order="file"), *plain):
        unkept = best.head > best.order.lower_bound
        if options.order == "best" and unkept and not stop.is_over:
            yield rival
