"""Chooses the order of operators, the aliases and the offsets.

Transforms and the planning problem define what is legal. This module makes candidates, which are
copies of the model in different orders, and takes the one with the smallest head as TFLM will
really place it. If no order saves anything, the order stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tflm_planner.model.clone import clone
from tflm_planner.model.edit import reorder
from tflm_planner.model.ir import Graph, Model
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_plan import (
    MemoryPlan,
    as_tflm_plans,
    chosen_order,
    find_orders,
    place_buffers,
    plan_quickly,
    rank,
)
from tflm_planner.pipeline.planning.respelling import spell_as_evaluated, try_spellings
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.support.garbage import no_collection
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.reorder import (
    ChosenOrder,
    OrderProblem,
    OrderSearch,
    order_problems,
)
from tflm_planner.transforms.schedules import PlanRecipe, quick_order

_LARGE_MODEL = 1_500
"""If a model has a recipe and more operators than this, no further plan is searched: in models of
thousands of tiles, minutes of search found nothing better."""


def plan_memory(
    model: Model,
    options: MemoryOptions,
    on_progress: Progress = silent,
    stop: Stop | None = None,
) -> MemoryPlan:
    """The plan of the best candidate found, which is a normalized and reordered copy of `model`.

    `stop`: the stop of a larger search; without it, the search ends after `options.time_limit`.
    Raises UnsoundPlanError if no plan has the input and the output of every state at one offset.
    """
    with no_collection():
        stop = stop or Stop(options.time_limit)
        unordered = _Unordered.of(model, options)
        best = _plan_memory(unordered, options, on_progress, stop)
        return _check_states(best, options) if options.states else best


@dataclass(frozen=True)
class _Ordered:
    """A reordered copy of a model. places: for each operator in the new order, its position in the
    file."""

    model: Model
    order: ChosenOrder
    places: tuple[int, ...]


@dataclass(frozen=True)
class _Unordered:
    """A normalized model in the order of its file. problems: the order problem of each graph.
    notes: notes of the normalization."""

    model: Model
    problems: dict[Graph, OrderProblem]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, model: Model, options: MemoryOptions) -> _Unordered:
        """A normalized copy of `model`."""
        copy = clone(model)
        notes = tuple(run(copy, Normalize(merges=not options.tiled)))
        return cls(copy, order_problems(copy, options.kernels.scratch_of), notes)

    @property
    def places(self) -> tuple[int, ...]:
        """The file's order, in the form of `_Ordered.places`."""
        return tuple(range(sum(len(graph.ops) for graph in self.model.graphs)))

    @property
    def has_one_order(self) -> bool:
        """Whether only one order of the operators is possible."""
        return not any(problem.plain.is_free for problem in self.problems.values())

    def ordered(
        self, options: MemoryOptions, quick: OrderSearch | None = None, stop: Stop | None = None
    ) -> _Ordered:
        """A copy in the order that the search of `options`, or `quick`, finds."""
        results = find_orders(self.model, options, self.problems, quick, stop)
        copy = clone(self.model)
        place = {op: i for i, op in enumerate(copy.ops())}
        for graph, twin in zip(self.model.graphs, copy.graphs, strict=True):
            reorder(twin, [twin.ops[i] for i in results[graph].order])
        order = chosen_order(self.model, results)
        return _Ordered(copy, order, tuple(place[op] for op in copy.ops()))


def _plan_memory(
    unordered: _Unordered, options: MemoryOptions, on_progress: Progress, stop: Stop
) -> MemoryPlan:
    recipe = options.recipe
    evaluated = None if recipe is None else _by_recipe(unordered, options, recipe)
    if evaluated is None:
        best = _best_order(unordered, options, on_progress, stop)
    else:
        best = evaluated
        is_large = len(unordered.model.main.ops) > _LARGE_MODEL
        if not (best.is_least or is_large or stop.is_over):
            careful = _best_order(unordered, options, on_progress, stop)
            best = _better(best, careful, options)
    if not (options.states or options.bind_views):
        own = as_tflm_plans(unordered.model, best, options)
        best = own if own.head < best.head else best
    if options.spellings is None or not options.overlap:
        return best
    spelled = try_spellings(best, options, options.spellings, on_progress, stop)
    if recipe is None or evaluated is None:
        return spelled
    return _better(spelled, spell_as_evaluated(evaluated, options, recipe), options)


def _better(first: MemoryPlan, second: MemoryPlan, options: MemoryOptions) -> MemoryPlan:
    """The plan with the lower rank; the first one if ranks are equal."""
    return min((first, second), key=lambda plan: rank(plan, options))


def _by_recipe(unordered: _Unordered, options: MemoryOptions, recipe: PlanRecipe) -> MemoryPlan:
    """The plan that a recipe describes, but for its spellings."""
    ordered = unordered.ordered(options, quick_order(recipe.order))
    return plan_quickly(
        ordered.model, options, ordered.order, unordered.notes, recipe.effort.rounds
    )


def _best_order(
    unordered: _Unordered, options: MemoryOptions, on_progress: Progress, stop: Stop
) -> MemoryPlan:
    """The best plan of the requested order and alternative orders."""
    on_progress("ordering operators")
    first = unordered.ordered(options, stop=stop)
    best = place_buffers(first.model, options, first.order, unordered.notes, on_progress, stop)
    tried = {first.places}
    for rival_options in _rivals(best, options, stop):
        if unordered.has_one_order or (rival_options.order == "file" and unordered.places in tried):
            continue
        rival = unordered.ordered(rival_options, stop=stop)
        if rival.places in tried:
            continue
        tried.add(rival.places)
        plan = place_buffers(rival.model, options, rival.order, unordered.notes, on_progress, stop)
        if plan.head < best.head or (plan.head == best.head and not rival.order.changed):
            outcome = replace(rival.order, lower_bound=first.order.lower_bound, optimal=False)
            best = replace(plan, order=outcome)
    return best


def _check_states(best: MemoryPlan, options: MemoryOptions) -> MemoryPlan:
    """Return the plan. Raises UnsoundPlanError unless input and output of every state have the same
    offset."""
    graph, offsets = best.model.main, best.offsets
    for input_place, output_place in options.states:
        before, after = graph.inputs[input_place], graph.outputs[output_place]
        if offsets[before] != offsets[after]:
            raise UnsoundPlanError(
                f"no plan was found that leaves the state {after.name!r} in its place, where the "
                "next invoke looks for it; try --order file"
            )
    return best


def _rivals(best: MemoryPlan, options: MemoryOptions, stop: Stop) -> Iterator[MemoryOptions]:
    """Yield options for two alternative orders as long as the plan does not reach the lower bound
    of its order: the file's order, and the best order without input overlaps (skipped if there is a
    recipe)."""
    plain = () if options.recipe else (replace(options, overlap=False),)
    for rival in (replace(options, order="file"), *plain):
        is_above_bound = best.head > best.order.lower_bound
        if options.order == "best" and is_above_bound and not stop.is_over:
            yield rival
