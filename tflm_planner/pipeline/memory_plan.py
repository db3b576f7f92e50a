"""Chooses: which operator order, which aliases, which offsets.

Legality lives in the passes and the planning problem; here candidates are made, compared by the
head that TFLM will really take, and the lowest wins. An order that saves nothing is not taken:
the operators then stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from tflm_planner.cost import latency_of
from tflm_planner.memory.allocators import NAMES, Solution, best_of
from tflm_planner.memory.allocators.packing import ROUNDS, pack
from tflm_planner.memory.bounds import live_bound
from tflm_planner.memory.order import Dag, Method, OrderResult, best_order
from tflm_planner.memory.problem import Overlap, Plan, Problem
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import reorder
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.support.errors import UnsoundPlanError, UsageError
from tflm_planner.support.garbage import no_collection
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.liveness import (
    InputOverlapRule,
    Timeline,
    loop_aliases,
    no_input_overlaps,
    planning_problem,
    timeline,
    view_aliases,
    with_input_overlaps,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.sharing import RemainingCopies, taken_input_overlaps
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tiling.spellings import (
    Respelled,
    SpellingChoice,
    SpellingPermission,
    best_spellings,
)
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dilate import Dilate, Undilate, dilatable
from tflm_planner.transforms.normalize import Normalize, entry_graphs
from tflm_planner.transforms.reorder import OrderProblem, OrderSearch, Reorder, order_problems
from tflm_planner.transforms.schedules import PlanRecipe, quick_order
from tflm_planner.transforms.spelling import Respell, Spelling

Progress = Callable[[str], None]
Stripping = Literal["nothing", "unread", "unread by TFLM"]
"""What is dropped from a file: nothing, what no runtime reads, or what TFLM does not read."""

_LARGE = 1_500
"""Operators of a model that was planned before, beyond which nothing else is looked for: minutes
of search for an order and a packing found nothing in models of thousands of tiles."""
_STATES = 60_000
"""Of the search for an order of a model that was planned before."""
ORDERS: tuple[str, ...] = get_args(Method)
ALLOCATORS = NAMES


@dataclass(frozen=True)
class MemoryOptions:
    """order: one of ORDERS. allocator: one of ALLOCATORS. time_limit: seconds for all searching,
    tiles included; None: until everything is tried, which is counted, so that the same comes out
    on any machine. effort: of exact packing, relative to the usual one.
    seed: of every random choice. machine: the target; its scratch and contracts. overlap:
    whether results may overlap operands where the target's contracts allow it. dilate: whether
    1x1 convolutions may be dilated for that (`transforms.dilate`). spellings: how much slower
    operators may be spelled for it (`tiling.spellings`); None: none is. bind_views: whether views
    must be taken (SLICE and CONCATENATION then copy onto themselves, and the dialect drops them).
    states: (input, output) of the main graph, by position: the output is laid over the input, so
    that the next invoke finds there what this one left. strip: what is dropped from the file in
    the end (`finishing`). recipe: of a plan to begin with, so that none comes out that is worse;
    it needs no time."""

    order: Method = "best"
    allocator: str = "best"
    time_limit: float | None = None
    seed: int = 0
    kernels: TargetKernels = field(default_factory=kernels_of)
    overlap: bool = True
    dilate: bool = False
    spellings: SpellingPermission | None = None
    bind_views: bool = False
    states: tuple[tuple[int, int], ...] = ()
    strip: Stripping = "nothing"
    recipe: PlanRecipe | None = None
    effort: float = 1.0

    @property
    def input_overlaps_of(self) -> InputOverlapRule:
        """Which results may overlap operands, as far as it is wanted."""
        return self.kernels.input_overlaps_of if self.overlap else no_input_overlaps

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UsageError(f"order {self.order!r} is unknown; choose from {', '.join(ORDERS)}")
        if self.allocator not in ALLOCATORS:
            raise UsageError(
                f"allocator {self.allocator!r} is unknown; choose from {', '.join(ALLOCATORS)}"
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise UsageError(f"time limit {self.time_limit} is not a positive number of seconds")


@dataclass(frozen=True)
class ChosenOrder:
    """The order of one candidate: what the searches of all graphs said, the main graph's last.

    changed: whether any graph runs in another order than its file. peak, lower_bound: live bytes
    of the main graph, bodies and scratch included.
    """

    method: str
    changed: bool
    peak: int
    lower_bound: int
    optimal: bool


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


def _plan_memory(model: Model, options: MemoryOptions, say: Progress, stop: Stop) -> MemoryPlan:
    notes = tuple(run(model, Normalize()))
    file_order = _orders(model)
    frames = order_problems(model, options.kernels.scratch_of)
    begun = _from_recipe(model, options, frames, notes) if options.recipe else None
    if begun is not None and (begun[0].is_least or len(model.main.ops) > _LARGE or stop.is_over):
        best, wanted = begun
    else:
        _apply(model, file_order)
        best, wanted = _best_order(model, options, frames, notes, say, stop)
    if begun is not None and begun[0].head < best.head:
        best, wanted = begun
    _apply(model, wanted)
    if options.dilate and options.overlap:
        best = _try_dilation(best, options, say, stop)
    if not (options.states or options.bind_views):
        best = _no_worse(best, file_order, options)
    if options.spellings is not None and options.overlap:
        best = _try_spellings(best, options, options.spellings, say, stop)
    return _check_states(best, options) if options.states else best


def _orders(model: Model) -> dict[Graph, list[Op]]:
    """Graph -> its operators in their present order."""
    return {g: list(g.ops) for g in model.graphs}


def _from_recipe(
    model: Model, options: MemoryOptions, frames: dict[Graph, OrderProblem], notes: tuple[str, ...]
) -> tuple[MemoryPlan, dict[Graph, list[Op]]]:
    """What the recipe comes to, with its order. Puts the model into it."""
    recipe = options.recipe
    assert recipe is not None
    found = _order(model, options, frames, quick_order(recipe.schedule))
    return _packed(model, options, found, notes, recipe.rounds), _orders(model)


def _packed(
    model: Model, options: MemoryOptions, order: ChosenOrder, notes: tuple[str, ...], rounds: int
) -> MemoryPlan:
    """A quick plan of the model as it is ordered."""
    line = timeline(model, options.kernels.scratch_of, entries=entry_graphs(model))
    problem = planning_problem(line, options.input_overlaps_of)
    plan = pack(problem, _required(line, model, options), rounds)
    height, bound = plan.height(problem), live_bound(problem)
    solution = Solution(plan, height, bound, height <= bound, "local")
    return MemoryPlan(model, line, problem, solution, order, _head(line, plan), notes)


def _best_order(
    model: Model,
    options: MemoryOptions,
    frames: dict[Graph, OrderProblem],
    notes: tuple[str, ...],
    say: Progress,
    stop: Stop,
) -> tuple[MemoryPlan, dict[Graph, list[Op]]]:
    """The best of the order asked for and its rivals, with that order."""
    file_order = _orders(model)
    say("ordering operators")
    found = _order(model, options, frames, stop=stop)
    wanted = _orders(model)
    tried = [wanted]
    best = _plan(model, options, found, notes, say, stop)
    for rival_options in _rivals(best, options, stop):
        if _is_known(rival_options, frames, file_order in tried):
            continue
        _apply(model, file_order)
        result = _order(model, rival_options, frames, stop=stop)
        ordered = _orders(model)
        if ordered in tried:
            continue
        tried.append(ordered)
        rival = _plan(model, options, result, notes, say, stop)
        if rival.head < best.head or (rival.head == best.head and not result.changed):
            outcome = replace(result, lower_bound=found.lower_bound, optimal=False)
            best = replace(rival, order=outcome)
            wanted = ordered
    return best, wanted


def _check_states(best: MemoryPlan, options: MemoryOptions) -> MemoryPlan:
    """The candidate, if every state stays where it is. Raises UnsoundPlanError."""
    graph, offsets = best.model.main, best.offsets
    for given, left in options.states:
        before, after = graph.inputs[given], graph.outputs[left]
        if offsets[before] != offsets[after]:
            raise UnsoundPlanError(
                f"no plan was found that leaves the state {after.name!r} in its place, where the "
                "next invoke looks for it; try --order file"
            )
    return best


def _required(line: Timeline, model: Model, options: MemoryOptions) -> tuple[Overlap, ...]:
    """The aliases that every plan must take."""
    views = view_aliases(line, model.main) if options.bind_views else ()
    place = {t: i for i, t in enumerate(line.planned)}
    pairs = [(model.main.inputs[i], model.main.outputs[j]) for i, j in options.states]
    return (*views, *(Overlap(place[a], place[b], 0, 0) for a, b in pairs))


def _is_known(
    options: MemoryOptions, frames: dict[Graph, OrderProblem], file_order_tried: bool
) -> bool:
    """Whether a search for an order would only find one that was tried."""
    only_one = not any(frame.plain.is_free for frame in frames.values())
    return only_one or (options.order == "file" and file_order_tried)


def _no_worse(
    best: MemoryPlan, file_order: dict[Graph, list[Op]], options: MemoryOptions
) -> MemoryPlan:
    """The candidate, or what TFLM itself would do, should luck have been on its side."""
    model = best.model
    found = {g: list(g.ops) for g in model.graphs}
    line = best.line
    if found != file_order:
        _apply(model, file_order)
        line = timeline(model, options.kernels.scratch_of, entries=entry_graphs(model))
    own = placement_of(line)
    head = own.head
    if head >= best.head:
        _apply(model, found)
        return best
    problem = planning_problem(line)
    solution = replace(
        best.solution, plan=own.plan, height=head, optimal=False, allocator="TFLM's own"
    )
    order = replace(best.order, changed=False, optimal=False)
    return replace(best, line=line, problem=problem, solution=solution, order=order, head=head)


def _try_dilation(
    best: MemoryPlan, options: MemoryOptions, say: Progress, stop: Stop
) -> MemoryPlan:
    """The best candidate with 1x1 convolutions dilated where that lowers the head: all at first,
    then only those that use the freedom they got."""
    model = best.model
    everyone = {op for op in model.ops() if dilatable(op)}
    run(model, Dilate(everyone))
    bold = _plan(model, options, best.order, best.notes, say, stop)
    trailing = {s.op for s in taken_input_overlaps(bold.line, bold.offsets, options.kernels)}
    idle = everyone - trailing
    run(model, Undilate(idle))
    frugal = _plan(model, options, best.order, best.notes, say, stop)
    if frugal.head >= best.head:
        run(model, Undilate(everyone))
        note = "dilating 1x1 convolutions would save nothing; left as they were"
        return replace(best, notes=(*best.notes, note))
    # The order stays, but what bounds it has changed.
    bounds = _order(model, replace(options, order="file"))
    order = replace(best.order, peak=bounds.peak, lower_bound=bounds.lower_bound, optimal=False)
    notes = (*best.notes, _price(everyone, trailing, options))
    return replace(frugal, order=order, notes=notes)


def _try_spellings(
    best: MemoryPlan,
    options: MemoryOptions,
    permission: SpellingPermission,
    say: Progress,
    stop: Stop,
) -> MemoryPlan:
    """The best candidate with operators spelled otherwise where that lowers the arena."""
    problem = planning_problem(best.line, options.input_overlaps_of)
    choice = SpellingChoice(best.model, best.line, problem, options.kernels, rows=permission.rows)

    def plan(spellings: tuple[Spelling, ...]) -> Respelled[MemoryPlan]:
        model = clone(best.model)
        notes = (*best.notes, *run(model, Respell(spellings)))
        return _counted(_packed(model, options, best.order, notes, rounds), options)

    say("spelling operators otherwise")
    rounds = options.recipe.rounds if options.recipe else ROUNDS
    found = best_spellings(choice, _counted(best, options), permission, plan).plan
    if found is best:
        return best
    # The order stays, but what bounds it has changed.
    bounds = _order(found.model, replace(options, order="file"))
    order = replace(best.order, peak=bounds.peak, lower_bound=bounds.lower_bound, optimal=False)
    careful = _plan(found.model, options, order, found.notes, say, stop)
    return careful if careful.head <= found.head else replace(found, order=order)


def _counted(made: MemoryPlan, options: MemoryOptions) -> Respelled[MemoryPlan]:
    """A plan with its figures; in the dialect, which drops views, the arena is its head."""
    target, copies = options.kernels.target, RemainingCopies(made.offsets)
    arena = made.head if options.bind_views else arena_of(made.model, target, made.offsets).arena
    latency = latency_of(made.model, target, in_place=copies.in_place, turn_bytes=copies.turn_bytes)
    return Respelled(made, arena, made.head, latency.instructions)


def _price(everyone: set[Op], trailing: set[Op], options: MemoryOptions) -> str:
    used = everyone & trailing
    scratch = max((sum(options.kernels.scratch_of(op)) for op in used), default=0)
    return (
        f"{len(used)} 1x1 convolutions got a dilation of 2 (same result): they leave CMSIS-NN's "
        f"1x1 kernel for the slower general one, with up to {scratch:,} bytes of scratch"
    )


def lowest_peak(model: Model, options: MemoryOptions) -> int:
    """Bytes of head that no order of the operators can go below. Changes `model`."""
    run(model, Normalize())
    return _order(model, options).lower_bound


def _rivals(best: MemoryPlan, options: MemoryOptions, stop: Stop) -> Iterator[MemoryOptions]:
    """Searches for other orders, while the best one is not what its order promised: file order,
    in case packing undoes the gain, and the best order for a plan without input overlaps, unless a
    trial has left one that is good."""
    plain = () if options.recipe else (replace(options, overlap=False),)
    for rival in (replace(options, order="file"), *plain):
        unkept = best.head > best.order.lower_bound
        if options.order == "best" and unkept and not stop.is_over:
            yield rival


def _apply(model: Model, orders: dict[Graph, list[Op]]) -> None:
    for graph in model.graphs:
        reorder(graph, orders[graph])


def _order(
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


def _plan(
    model: Model,
    options: MemoryOptions,
    order: ChosenOrder,
    notes: tuple[str, ...],
    say: Progress,
    stop: Stop,
) -> MemoryPlan:
    line = timeline(model, options.kernels.scratch_of, entries=entry_graphs(model))
    best: MemoryPlan | None = None
    plain = planning_problem(line)
    full = with_input_overlaps(plain, line, options.input_overlaps_of) if options.overlap else plain
    for problem in (full,) if full is plain or options.recipe else (full, plain):
        say(f"packing {len(problem.buffers)} buffers")
        solution = best_of(
            problem,
            allocators=(options.allocator,),
            stop=stop,
            effort=options.effort,
            say=say,
            seed=options.seed,
            required=_required(line, model, options),
            on_progress=lambda name, height, bound: say(
                f"packing: {height:,} B with {name}, bound {bound:,} B"
            ),
        )
        head = _head(line, solution.plan)
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
    found = best_of(best.problem, allocators=("greedy",), seed=options.seed, required=wanted)
    head = _head(best.line, found.plan)
    if head > best.head:
        return best
    return replace(best, solution=replace(best.solution, plan=found.plan, height=found.height,
                                          allocator=found.allocator), head=head)  # fmt: skip


def _head(line: Timeline, plan: Plan) -> int:
    """The head that TFLM takes for a plan: its own placement of scratch included."""
    return placement_of(line, dict(zip(line.planned, plan.offsets, strict=False))).head
