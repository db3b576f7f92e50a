"""A plan of a model's memory: an order of its operators, and an offset for each buffer.

It has the steps from which `memory_search` makes plans: order the operators, place the buffers
(carefully or quickly), and compute the head that TFLM really takes, including its own placement of
scratch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.memory.allocators import AllocatorOptions, Listener, Solution, best_of
from tflm_planner.memory.allocators.packing import pack
from tflm_planner.memory.bounds import live_bound
from tflm_planner.memory.order import Dag, OrderResult, best_order
from tflm_planner.memory.problem import Overlap, Plan, Problem
from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Graph, Model, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.liveness import (
    Timeline,
    loop_aliases,
    planning_problem,
    timeline_of,
    view_aliases,
    with_input_overlaps,
)
from tflm_planner.tflm.placement import placement_of, tensor_offsets
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dialect import Dialect
from tflm_planner.transforms.reorder import (
    ChosenOrder,
    OrderProblem,
    OrderSearch,
    Reorder,
)
from tflm_planner.transforms.schedules import ORDER_STATES, quick_order


@dataclass(frozen=True)
class PlacedModel:
    """A model and the offsets of its tensors. offsets: tensor -> bytes from the head's start. They
    do not include scratch, which TFLM places itself."""

    model: Model
    offsets: dict[Tensor, int]

    def copy(self) -> PlacedModel:
        """A deep copy, which transforms may change."""
        model = clone(self.model)
        twins = dict(zip(self.model.tensors(), model.tensors(), strict=True))
        return PlacedModel(model, {twins[t]: offset for t, offset in self.offsets.items()})


@dataclass(frozen=True)
class MemoryPlan:
    """A plan for `model`, whose operators are in the order of execution. The model must not be
    changed any more; later transforms change copies."""

    model: Model
    timeline: Timeline
    problem: Problem
    solution: Solution
    order: ChosenOrder
    head: int
    notes: tuple[str, ...]

    @property
    def is_least(self) -> bool:
        """Whether no other order and plan can have a smaller head."""
        return self.head <= self.order.lower_bound

    @property
    def offsets(self) -> dict[Tensor, int]:
        """Tensor -> bytes from the head's start, without scratch, which TFLM places itself."""
        return tensor_offsets(self.timeline, self.solution.plan)

    @property
    def placed(self) -> PlacedModel:
        """The model with these offsets."""
        return PlacedModel(self.model, self.offsets)


def find_orders(
    model: Model,
    options: MemoryOptions,
    graph_problems: dict[Graph, OrderProblem] | None = None,
    quick: OrderSearch | None = None,
    stop: Stop | None = None,
) -> dict[Graph, OrderResult]:
    """Find an order for every graph; the model is not changed. `graph_problems`: the order problems
    of the current order, if the caller has them. `quick`: a search that replaces the one of
    `options`. `stop`: can end the search of `options`."""

    def find(dag: Dag) -> OrderResult:
        return best_order(dag, method=options.order, stop=stop, seed=options.seed)

    if options.recipe is not None and options.order == "best":
        quick = quick or quick_order("best", ORDER_STATES)
    reordering = Reorder(
        quick or find, options.kernels.scratch_of, options.input_overlaps_of, graph_problems or {}
    )
    return reordering.find(model)


def chosen_order(model: Model, results: Mapping[Graph, OrderResult]) -> ChosenOrder:
    """A summary, for reports, of the orders found for all graphs."""
    main = results[model.main]
    changed = any(r.order != tuple(range(len(graph.ops))) for graph, r in results.items())
    optimal = all(r.optimal for r in results.values())
    return ChosenOrder(main.method, changed, main.peak, main.lower_bound, optimal)


def place_buffers(
    model: Model,
    options: MemoryOptions,
    order: ChosenOrder,
    notes: tuple[str, ...],
    on_progress: Progress,
    stop: Stop,
) -> MemoryPlan:
    """The best plan of the model in its current order, with the allocators of `options`."""
    timeline = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    best: MemoryPlan | None = None
    plain = planning_problem(timeline)
    full = (
        with_input_overlaps(plain, timeline, options.input_overlaps_of)
        if options.overlap
        else plain
    )
    allocators = AllocatorOptions(
        (options.allocator,),
        exact_effort=options.exact_effort,
        climb_effort=options.climb_effort,
        seed=options.seed,
    )
    for problem in (full,) if full is plain or options.recipe else (full, plain):
        on_progress(f"packing {len(problem.buffers)} buffers")
        solution = best_of(
            problem,
            allocators,
            required=_required_overlaps(timeline, model, options),
            stop=stop,
            listener=_listener(on_progress),
        )
        head = _head_of(timeline, solution.plan)
        if best is None or head < best.head:
            best = MemoryPlan(
                model=model,
                timeline=timeline,
                problem=problem,
                solution=solution,
                order=order,
                head=head,
                notes=notes,
            )
        if best.head == best.solution.lower_bound or stop.is_over:
            break  # else retry without input overlaps, which can mislead heuristics
    assert best is not None
    return best if stop.is_over else _join_loop_variables(best, options)


def _listener(on_progress: Progress) -> Listener:
    return Listener(
        lambda name, height, bound: on_progress(
            f"packing: {height:,} B with {name}, bound {bound:,} B"
        ),
        on_progress,
    )


def plan_quickly(
    model: Model,
    options: MemoryOptions,
    order: ChosenOrder,
    notes: tuple[str, ...],
    rounds: int | None = None,
) -> MemoryPlan:
    """A plan of the model in its current order, packed in `rounds` rounds (None: the default)."""
    timeline = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    problem = planning_problem(timeline, options.input_overlaps_of)
    overlaps = _required_overlaps(timeline, model, options)
    plan = pack(problem, overlaps) if rounds is None else pack(problem, overlaps, rounds)
    height, bound = plan.height(problem), live_bound(problem)
    solution = Solution(plan, height, bound, height <= bound, "local")
    return MemoryPlan(
        model=model,
        timeline=timeline,
        problem=problem,
        solution=solution,
        order=order,
        head=_head_of(timeline, plan),
        notes=notes,
    )


def _required_overlaps(
    timeline: Timeline, model: Model, options: MemoryOptions
) -> tuple[Overlap, ...]:
    """The overlaps that every plan must use: views with `bind_views`, and states."""
    binds, copying = options.bind_views, options.copying
    views = view_aliases(timeline, model.main, copying) if binds else ()
    place = {t: i for i, t in enumerate(timeline.planned)}
    pairs = [(model.main.inputs[i], model.main.outputs[j]) for i, j in options.states]
    return (*views, *(Overlap(place[a], place[b], 0, 0) for a, b in pairs))


def _join_loop_variables(best: MemoryPlan, options: MemoryOptions) -> MemoryPlan:
    """A plan with the same head in which the variables of loops share memory, if there is one;
    otherwise `best`, in which they are copied in every turn."""
    aliases = loop_aliases(best.timeline)
    if not aliases or options.bind_views:
        return best
    greedy = AllocatorOptions(("greedy",), seed=options.seed)
    joined = best_of(best.problem, greedy, required=aliases)
    head = _head_of(best.timeline, joined.plan)
    if head > best.head:
        return best
    solution = replace(
        best.solution, plan=joined.plan, height=joined.height, allocator=joined.allocator
    )
    return replace(best, solution=solution, head=head)


def _head_of(timeline: Timeline, plan: Plan) -> int:
    """The head that TFLM takes with a plan, including its own placement of scratch."""
    return placement_of(timeline, tensor_offsets(timeline, plan)).head


def count_instructions(memory_plan: MemoryPlan, target: Target) -> int:
    """Instructions of one inference. Copies that the plan makes unnecessary are not counted."""
    return latency_of(memory_plan.model, target, memory_plan.offsets).instructions


def as_tflm_plans(
    model: Model,
    before: MemoryPlan,
    options: MemoryOptions,
    offsets: Mapping[Tensor, int] | None = None,
) -> MemoryPlan:
    """TFLM's own plan of a model in its current order, as a replacement of the plan `before`.
    offsets: those that the file already carries."""
    timeline = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    own = placement_of(timeline, offsets)
    solution = replace(
        before.solution, plan=own.plan, height=own.head, optimal=False, allocator="TFLM's own"
    )
    order = replace(before.order, changed=False, optimal=False)
    problem = planning_problem(timeline, options.input_overlaps_of)
    return MemoryPlan(
        model=model,
        timeline=timeline,
        problem=problem,
        solution=solution,
        order=order,
        head=own.head,
        notes=before.notes,
    )


def rank(memory_plan: MemoryPlan, options: MemoryOptions) -> tuple[bool, int, int]:
    """A key by which the better of two plans is the smaller one: whether it takes more instructions
    than preferred, bytes of the head in the file that will be written, then instructions."""
    placed, head = memory_plan.placed, memory_plan.head
    if options.in_dialect:
        placed = _in_dialect(placed)
        timeline = timeline_of(placed.model, options.kernels.scratch_of)
        head = placement_of(timeline, placed.offsets).head
    instructions = latency_of(placed.model, options.kernels.target, placed.offsets).instructions
    preferred = None if options.spellings is None else options.spellings.preferred
    return preferred is not None and instructions > preferred, head, instructions


def _in_dialect(placed: PlacedModel) -> PlacedModel:
    """A copy without the operators that make views. TFLM then places scratch by other life spans,
    so that of two plans with equal heads one may be lower (in FBNet-A by 7,200 B)."""
    copy = placed.copy()
    run(copy.model, Dialect(copy.offsets))
    return copy
