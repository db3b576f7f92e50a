"""Chooses: which operator order, which aliases, which offsets.

Legality lives in the passes and the planning problem; here candidates are made, compared by the
head that TFLM will really take, and the lowest wins. An order that saves nothing is not taken:
the operators then stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.memory.allocators import Solution, best_of
from tflm_planner.memory.allocators.packing import pack
from tflm_planner.memory.bounds import live_bound
from tflm_planner.memory.order import Dag, OrderResult, best_order
from tflm_planner.memory.problem import Overlap, Plan, Problem
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import reorder
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.support.garbage import no_collection
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.liveness import (
    Timeline,
    loop_aliases,
    planning_problem,
    timeline_of,
    view_aliases,
    with_input_overlaps,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.sharing import RemainingCopies, taken_input_overlaps
from tflm_planner.tflm.targets import Target
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
    ChosenOrder,
    OrderProblem,
    OrderSearch,
    Reorder,
    order_problems,
)
from tflm_planner.transforms.schedules import quick_order
from tflm_planner.transforms.spelling import Respell, Spelling

Progress = Callable[[str], None]

_LARGE = 1_500
"""Operators of a model that was planned before, beyond which nothing else is looked for: minutes
of search for an order and a packing found nothing in models of thousands of tiles."""
_STATES = 60_000
"""Of the search for an order of a model that was planned before."""


@dataclass(frozen=True)
class MemoryPlan:
    """A model with its operators in some order, and a plan for it."""

    model: Model
    line: Timeline
    problem: Problem
    solution: Solution
    order: ChosenOrder
    head: int
    notes: tuple[str, ...]

    @property
    def is_least(self) -> bool:
        """Whether no order and no plan can be lower."""
        return self.head <= self.order.lower_bound

    @property
    def offsets(self) -> dict[Tensor, int]:
        """Tensor -> bytes from the head's start; scratch is TFLM's own to place."""
        return dict(zip(self.line.planned, self.solution.plan.offsets, strict=False))


def silent(_: str) -> None:
    """A listener to progress that does nothing."""


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
    file_order = _current_orders(model)
    frames = order_problems(model, options.kernels.scratch_of)
    by_recipe = _plan_by_recipe(model, options, frames, notes) if options.recipe else None
    if by_recipe is not None and (
        by_recipe[0].is_least or len(model.main.ops) > _LARGE or stop.is_over
    ):
        best, wanted = by_recipe
    else:
        _apply_orders(model, file_order)
        best, wanted = _plan_best_order(model, options, frames, notes, report_progress, stop)
    if by_recipe is not None and by_recipe[0].head < best.head:
        best, wanted = by_recipe
    _apply_orders(model, wanted)
    if options.dilate and options.overlap:
        best = _try_dilation(best, options, report_progress, stop)
    if not (options.states or options.bind_views):
        best = _unless_tflms_own_is_lower(best, file_order, options)
    if options.spellings is not None and options.overlap:
        best = _try_spellings(best, options, options.spellings, report_progress, stop)
    return _check_states(best, options) if options.states else best


def _current_orders(model: Model) -> dict[Graph, list[Op]]:
    """Graph -> its operators in their present order."""
    return {g: list(g.ops) for g in model.graphs}


def _plan_by_recipe(
    model: Model, options: MemoryOptions, frames: dict[Graph, OrderProblem], notes: tuple[str, ...]
) -> tuple[MemoryPlan, dict[Graph, list[Op]]]:
    """What the recipe comes to, with its order. Puts the model into it."""
    recipe = options.recipe
    assert recipe is not None
    order = _order_operators(model, options, frames, quick_order(recipe.schedule))
    return _plan_quickly(model, options, order, notes, recipe.rounds), _current_orders(model)


def _plan_quickly(
    model: Model,
    options: MemoryOptions,
    order: ChosenOrder,
    notes: tuple[str, ...],
    rounds: int | None = None,
) -> MemoryPlan:
    """A plan of the model as it is ordered, packed in so many rounds."""
    line = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    problem = planning_problem(line, options.input_overlaps_of)
    overlaps = _required_overlaps(line, model, options)
    plan = pack(problem, overlaps) if rounds is None else pack(problem, overlaps, rounds)
    height, bound = plan.height(problem), live_bound(problem)
    solution = Solution(plan, height, bound, height <= bound, "local")
    return MemoryPlan(model, line, problem, solution, order, _head_of(line, plan), notes)


def _plan_best_order(
    model: Model,
    options: MemoryOptions,
    frames: dict[Graph, OrderProblem],
    notes: tuple[str, ...],
    report_progress: Progress,
    stop: Stop,
) -> tuple[MemoryPlan, dict[Graph, list[Op]]]:
    """The best of the order asked for and its rivals, with that order."""
    file_order = _current_orders(model)
    report_progress("ordering operators")
    first = _order_operators(model, options, frames, stop=stop)
    wanted = _current_orders(model)
    tried = [wanted]
    best = _place_buffers(model, options, first, notes, report_progress, stop)
    for rival_options in _rivals(best, options, stop):
        if _was_tried(rival_options, frames, file_order in tried):
            continue
        _apply_orders(model, file_order)
        result = _order_operators(model, rival_options, frames, stop=stop)
        ordered = _current_orders(model)
        if ordered in tried:
            continue
        tried.append(ordered)
        rival = _place_buffers(model, options, result, notes, report_progress, stop)
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


def _required_overlaps(line: Timeline, model: Model, options: MemoryOptions) -> tuple[Overlap, ...]:
    """The aliases that every plan must take."""
    views = view_aliases(line, model.main) if options.bind_views else ()
    place = {t: i for i, t in enumerate(line.planned)}
    pairs = [(model.main.inputs[i], model.main.outputs[j]) for i, j in options.states]
    return (*views, *(Overlap(place[a], place[b], 0, 0) for a, b in pairs))


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
    chosen = _current_orders(model)
    line = best.line
    if chosen != file_order:
        _apply_orders(model, file_order)
        line = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    own = placement_of(line)
    head = own.head
    if head >= best.head:
        _apply_orders(model, chosen)
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
    """The best candidate with 1x1 convolutions dilated where that lowers the head: all at first,
    then only those that use the freedom they got."""
    model = best.model
    everyone = {op for op in model.ops() if dilatable(op)}
    run(model, Dilate(everyone))
    all_dilated = _place_buffers(model, options, best.order, best.notes, report_progress, stop)
    overlapping = {
        s.op for s in taken_input_overlaps(all_dilated.line, all_dilated.offsets, options.kernels)
    }
    idle = everyone - overlapping
    run(model, Undilate(idle))
    few_dilated = _place_buffers(model, options, best.order, best.notes, report_progress, stop)
    if few_dilated.head >= best.head:
        run(model, Undilate(everyone))
        note = "dilating 1x1 convolutions would save nothing; left as they were"
        return replace(best, notes=(*best.notes, note))
    # The order stays, but what bounds it has changed.
    bounds = _order_operators(model, replace(options, order="file"))
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
        return _with_figures(_plan_quickly(model, options, best.order, notes, rounds), options)

    report_progress("spelling operators otherwise")
    spelled = best_spellings(choice, _with_figures(best, options), permission, plan).plan
    if spelled is best:
        return best
    # The order stays, but what bounds it has changed.
    bounds = _order_operators(spelled.model, replace(options, order="file"))
    order = replace(best.order, peak=bounds.peak, lower_bound=bounds.lower_bound, optimal=False)
    careful = _place_buffers(spelled.model, options, order, spelled.notes, report_progress, stop)
    return careful if careful.head <= spelled.head else replace(spelled, order=order)


def _with_figures(memory_plan: MemoryPlan, options: MemoryOptions) -> Respelled[MemoryPlan]:
    """A plan with its arena and instructions; in the dialect, which drops views, its head stands
    for the arena."""
    model, offsets, target = memory_plan.model, memory_plan.offsets, options.kernels.target
    arena = memory_plan.head if options.bind_views else arena_of(model, target, offsets).arena
    instructions = count_instructions(memory_plan, target)
    return Respelled(memory_plan, arena, memory_plan.head, instructions)


def count_instructions(memory_plan: MemoryPlan, target: Target) -> int:
    """Instructions of one inference, with what the plan saves in copies."""
    copies = RemainingCopies(memory_plan.offsets)
    return latency_of(
        memory_plan.model, target, in_place=copies.in_place, turn_bytes=copies.turn_bytes
    ).instructions


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
    return _order_operators(model, options).lower_bound


def _rivals(best: MemoryPlan, options: MemoryOptions, stop: Stop) -> Iterator[MemoryOptions]:
    """Searches for other orders, while the best one is not what its order promised: file order,
    in case packing undoes the gain, and the best order for a plan without input overlaps, unless a
    trial has left one that is good."""
    plain = () if options.recipe else (replace(options, overlap=False),)
    for rival in (replace(options, order="file"), *plain):
        unkept = best.head > best.order.lower_bound
        if options.order == "best" and unkept and not stop.is_over:
            yield rival


def _apply_orders(model: Model, orders: dict[Graph, list[Op]]) -> None:
    for graph in model.graphs:
        reorder(graph, orders[graph])


def _order_operators(
    model: Model,
    options: MemoryOptions,
    frames: dict[Graph, OrderProblem] | None = None,
    quick: OrderSearch | None = None,
    stop: Stop | None = None,
) -> ChosenOrder:
    """Order every graph. `frames`: of the present order, if they are known. `quick`: in place of
    the search that `options` ask for, which `stop` may end."""
    before = [op for g in model.graphs for op in g.ops]

    def find(dag: Dag) -> OrderResult:
        return best_order(dag, method=options.order, stop=stop, seed=options.seed)

    if options.recipe is not None and options.order == "best":
        quick = quick or quick_order("best", _STATES)
    reorder = Reorder(
        quick or find, options.kernels.scratch_of, options.input_overlaps_of, frames or {}
    )
    results = reorder.results(model)
    after = [op for g in model.graphs for op in g.ops]
    changed = any(a is not b for a, b in zip(before, after, strict=True))
    main = results[model.main]
    optimal = all(r.optimal for r in results.values())
    return ChosenOrder(main.method, changed, main.peak, main.lower_bound, optimal)


def _place_buffers(
    model: Model,
    options: MemoryOptions,
    order: ChosenOrder,
    notes: tuple[str, ...],
    report_progress: Progress,
    stop: Stop,
) -> MemoryPlan:
    line = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    best: MemoryPlan | None = None
    plain = planning_problem(line)
    full = with_input_overlaps(plain, line, options.input_overlaps_of) if options.overlap else plain
    for problem in (full,) if full is plain or options.recipe else (full, plain):
        report_progress(f"packing {len(problem.buffers)} buffers")
        solution = best_of(
            problem,
            allocators=(options.allocator,),
            stop=stop,
            effort=options.effort,
            say=report_progress,
            seed=options.seed,
            required=_required_overlaps(line, model, options),
            on_progress=lambda name, height, bound: report_progress(
                f"packing: {height:,} B with {name}, bound {bound:,} B"
            ),
        )
        head = _head_of(line, solution.plan)
        if best is None or head < best.head:
            best = MemoryPlan(model, line, problem, solution, order, head, notes)
        if best.head == best.solution.lower_bound or stop.is_over:
            break  # else freedom may have led the heuristics astray: try without input overlaps
    assert best is not None
    return best if stop.is_over else _join_loop_variables(best, options)


def _join_loop_variables(best: MemoryPlan, options: MemoryOptions) -> MemoryPlan:
    """As low, but with the variables of loops in one place, if that is possible: they are copied
    at every turn otherwise."""
    wanted = loop_aliases(best.line)
    if not wanted or options.bind_views:
        return best
    joined = best_of(best.problem, allocators=("greedy",), seed=options.seed, required=wanted)
    head = _head_of(best.line, joined.plan)
    if head > best.head:
        return best
    solution = replace(
        best.solution, plan=joined.plan, height=joined.height, allocator=joined.allocator
    )
    return replace(best, solution=solution, head=head)


def _head_of(line: Timeline, plan: Plan) -> int:
    """The head that TFLM takes for a plan: its own placement of scratch included."""
    return placement_of(line, dict(zip(line.planned, plan.offsets, strict=False))).head
