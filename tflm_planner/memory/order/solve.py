"""The front door: the best order within a budget, and how far it can be from the optimum.

This module knows a DAG and bytes. Segments between gates are solved one at a time, the one with the
highest peak first, and only while the peak of the whole graph can still fall: a segment that does
not determine the peak keeps the order of the file, and a graph whose file order is optimal keeps
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from tflm_planner.memory.budgets import DEFAULT_ORDER_BUDGET, OrderBudget
from tflm_planner.memory.order.baselines import file_order, reverse_post_order
from tflm_planner.memory.order.beam import beam_search, improve, renumber
from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.dag import Dag, peak
from tflm_planner.memory.order.exact import ExactSearch
from tflm_planner.memory.order.fusing import BitGraph
from tflm_planner.memory.order.segments import bound_of, live_at_boundaries, segments
from tflm_planner.support.stopping import Stop

OrderMethod = Literal["best", "file", "rpo", "beam", "exact"]
OrderProgress = Callable[[int, int], None]
"""Called with (smallest peak so far, lower bound), both in bytes and for the whole graph."""


@dataclass(frozen=True)
class OrderResult:
    """An order of all nodes and what is known about it. Sizes are in bytes."""

    order: tuple[int, ...]
    peak: int
    lower_bound: int
    """No order has a smaller peak; equal to `peak` when `optimal`."""
    optimal: bool
    method: str
    """The search that made the order: "file", "rpo", "beam" or "exact"; if segments differ, the
    last in this list."""


def best_order(
    dag: Dag,
    *,
    method: OrderMethod = "best",
    stop: Stop | None = None,
    seed: int = 0,
    budget: OrderBudget = DEFAULT_ORDER_BUDGET,
    on_progress: OrderProgress | None = None,
) -> OrderResult:
    """The order of operators with the smallest peak of live bytes that the method finds.

    "best" searches each segment exactly, up to the budget's states, and runs beams if a first short
    search does not solve it; "exact" searches longer, without beams; "beam" searches without exact
    search, so that only bounds can prove its result optimal. Never worse than file order; the
    result is file order itself if nothing is better. Same graph, method, seed and budget give the
    same order unless `stop` ends the search, which then returns the best order so far.

    Raises ValueError when the graph is invalid (see `Dag.of`) or the method is unknown.
    """
    if method not in get_args(OrderMethod):
        raise ValueError(f"no method {method!r}: choose best, file, rpo, beam or exact")
    states = budget.exact_segment_states if method == "exact" else budget.segment_states
    allowance = _Allowance(budget, states, budget.full_budget_segments * states)
    solver = _Solver(dag, method, seed, allowance, Clock(stop), on_progress)
    solver.run()
    order, made_by = solver.order()
    height, bound = peak(dag, order), solver.bound
    in_file = peak(dag, file_order(dag)) if order != file_order(dag) else height
    if height >= in_file:
        order, made_by, height = file_order(dag), "file", in_file
    bound = min(bound, height)
    return OrderResult(order, height, bound, bound == height, made_by)


@dataclass
class _Allowance:
    """Budget of exact searches in states: per segment, and what is left for all segments."""

    budget: OrderBudget
    per_segment: int
    left: int


class _OrderedSegment:
    """A segment whose order is free: its graph, its best order so far, its peak."""

    def __init__(self, dag: Dag, start: int) -> None:
        self.dag, self.start = dag, start
        self.order, self.made_by = file_order(dag), "file"
        self.peak = peak(dag, self.order)
        self.open = True

    def offer(self, order: tuple[int, ...], made_by: str) -> None:
        """Takes the order if its peak is smaller than that of the best order so far."""
        height = peak(self.dag, order)
        if height < self.peak:
            self.order, self.peak, self.made_by = order, height, made_by


class _Solver:
    """Has the best order of every segment at any time, so that a stop loses nothing."""

    def __init__(
        self,
        dag: Dag,
        method: str,
        seed: int,
        allowance: _Allowance,
        clock: Clock,
        on_progress: OrderProgress | None = None,
    ) -> None:
        self.dag, self.method, self.seed, self.allowance = dag, method, seed, allowance
        self.clock, self.on_progress = clock, on_progress
        self.parts: list[_OrderedSegment] = []
        self.free = segments(dag)
        self.bound = bound_of(dag, live_at_boundaries(dag), self.free)

    def run(self) -> None:
        """Solves the open segment with the highest peak, again and again, until the peak of the
        graph cannot fall or is equal to the bound."""
        if self.method == "file":
            return
        self.parts = [_OrderedSegment(part, start) for start, _, part in self.free]
        self._report()
        while self.parts:
            part = max(self.parts, key=lambda p: (p.peak, p.open))
            if not part.open or part.peak <= self.bound:
                return
            part.open = False
            if part.dag.links.unread:
                self._solve_first_step(part)
            else:
                self._solve(part)
            self._report()

    def order(self) -> tuple[tuple[int, ...], str]:
        """The best order of all nodes so far, and what made it."""
        order = list(file_order(self.dag))
        for part in self.parts:
            for i, node in enumerate(part.order):
                order[part.start + i] = part.start + node
        methods = {part.made_by for part in self.parts}
        return tuple(order), next((m for m in ("exact", "beam", "rpo") if m in methods), "file")

    def _solve(self, part: _OrderedSegment) -> None:
        part.offer(reverse_post_order(part.dag), "rpo")
        if part.peak <= self.bound or self.method == "rpo":
            return
        graph = BitGraph(part.dag)
        search = ExactSearch(graph, level=self.bound, ceiling=part.peak)
        budget, most = self.allowance.budget, self.allowance.per_segment
        if self.method != "exact":
            most = min(most, budget.segment_work // len(part.dag.nodes))
        if self.method != "beam" and self._explore(
            part, search, min(budget.first_dive_states, most)
        ):
            return
        if self.method != "exact":
            self._approximate(part, graph)
            search.ceiling = part.peak
        if self.method != "beam":
            self._explore(part, search, min(most, search.states + self.allowance.left))
            self.allowance.left -= search.states

    def _explore(self, part: _OrderedSegment, search: ExactSearch, budget: int) -> bool:
        """Searches exactly up to `budget` states in total; True when the segment is solved."""
        while True:
            step = self.allowance.budget.first_dive_states
            result = search.run(min(search.states + step, budget), self.clock)
            self.bound = max(self.bound, result.bound)
            if result.blocks is not None:
                part.offer(search.graph.order(result.blocks), "exact")
            if result.complete or result.states >= budget or self.clock.spent():
                return result.complete
            self._report()

    def _approximate(self, part: _OrderedSegment, graph: BitGraph) -> None:
        budget = self.allowance.budget
        for width in budget.beam_widths:
            if width * budget.states_per_beam_width > self.allowance.per_segment:
                return
            blocks = beam_search(
                graph,
                width=width,
                floor=self.bound,
                ceiling=part.peak,
                seed=self.seed,
                clock=self.clock,
            )
            if blocks is not None:
                part.offer(graph.order(blocks), "beam")
            better = improve(
                part.dag,
                part.order,
                floor=self.bound,
                windows=budget.window_lengths,
                budget=budget.window_states,
                clock=self.clock,
            )
            part.offer(better, "beam")
            if part.peak <= self.bound:
                return
            self._report()

    def _solve_first_step(self, part: _OrderedSegment) -> None:
        """Inputs that no node reads count in the first step only, so every source is tried as the
        first node.

        With its first node fixed, a segment begins with a gate, and these bytes are a constant.
        """
        dag, bounds = part.dag, list[int]()
        sources = [i for i, before in enumerate(dag.links.preds) if not before]
        for first in sources:
            rest = [i for i in range(len(dag.nodes)) if i != first]
            tied = renumber(dag, (first, *rest))
            others = {i + (i < first) for i in sources if i != first}
            nodes = tuple(
                replace(n, after=(*n.after, 0)) if i in others else n
                for i, n in enumerate(tied.nodes)
            )
            fixed = tied.with_nodes(nodes)
            solver = _Solver(fixed, self.method, self.seed, self.allowance, self.clock)
            solver.run()
            order, made_by = solver.order()
            part.offer(tuple((first, *rest)[i] for i in order), made_by)
            bounds.append(min(solver.bound, peak(solver.dag, order)))
        self.bound = max(self.bound, min(bounds))

    def _report(self) -> None:
        if self.on_progress is not None:
            height = max((p.peak for p in self.parts), default=self.bound)
            self.on_progress(max(height, self.bound), self.bound)
