"""The best order of a graph in which each of some regions runs without interruption.

    nodes    0  1  [2  5  6]  3  4  [7  8]        each region becomes one node of a smaller graph,
    regions        |-------|        |----|        whose best order is searched

It knows a DAG and bytes; it must not know what operators do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tflm_planner.memory.budgets import OrderBudget
from tflm_planner.memory.order import Absorb, Dag, Node, OrderResult, best_order
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.tiling.estimate.interval import Interval


@dataclass(frozen=True)
class ContractedRegion:
    """Nodes that run one right after another, in tiles."""

    nodes: frozenset[int]
    workspace: int
    """Approximate bytes that the tiles need in addition to the tensors that enter and leave."""


@dataclass(frozen=True)
class ContractedOrder:
    """An order in which every region runs without interruption."""

    order: tuple[int, ...]
    """All nodes in this order."""
    intervals: tuple[Interval, ...]
    """For each region, its positions in `order`."""
    peak: int
    """Peak bytes, with the assumed workspace of the regions."""


def close_groups(dag: Dag, chosen: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Disjoint convex groups that contain the chosen ones, such that each can run without
    interruption. Groups that overlap, or that wait for each other, are merged."""
    groups = [_convex_hull(dag, nodes) for nodes in chosen]
    while True:
        groups = _merge_overlapping(dag, groups)
        cycle = _waiting_groups(dag, groups)
        if not cycle:
            return groups
        joined = frozenset[int]().union(*(groups[k] for k in cycle))
        groups = [g for k, g in enumerate(groups) if k not in cycle] + [_convex_hull(dag, joined)]


def _merge_overlapping(dag: Dag, groups: list[frozenset[int]]) -> list[frozenset[int]]:
    disjoint: list[frozenset[int]] = []
    todo = [*groups]
    while todo:
        group = todo.pop()
        overlapping = [other for other in disjoint if other & group]
        if overlapping:
            disjoint = [other for other in disjoint if not other & group]
            todo.append(_convex_hull(dag, group.union(*overlapping)))
        else:
            disjoint.append(group)
    return sorted(disjoint, key=min)


def _convex_hull(dag: Dag, nodes: frozenset[int]) -> frozenset[int]:
    """The nodes together with all nodes on paths between them."""
    links = dag.links
    after, before = [False] * len(dag.nodes), [False] * len(dag.nodes)
    for n in range(len(dag.nodes)):
        after[n] = n in nodes or any(after[p] for p in links.preds[n])
    for n in reversed(range(len(dag.nodes))):
        before[n] = n in nodes or any(before[s] for s in links.succs[n])
    return frozenset(n for n in range(len(dag.nodes)) if after[n] and before[n])


def _waiting_groups(dag: Dag, groups: Sequence[frozenset[int]]) -> list[int]:
    """Indices of the groups that wait for each other in a cycle; empty if all can run."""
    graph = _ContractedGraph(dag, tuple(ContractedRegion(g, 0) for g in groups))
    stuck = graph.stuck_units
    return [k for k, _ in enumerate(groups) if k in stuck]


def best_contracted_order(
    dag: Dag, regions: Sequence[ContractedRegion], budget: SearchBudget = DEFAULT_BUDGET
) -> ContractedOrder:
    """The order with the lowest peak found in which each region runs without interruption. regions:
    as returned by `close_groups`."""
    graph = _ContractedGraph(dag, tuple(regions))
    result: OrderResult = best_order(
        graph.dag, budget=OrderBudget(segment_states=budget.contracted_order_states)
    )
    order: list[int] = []
    intervals: dict[int, Interval] = {}
    for place in result.order:
        unit = graph.units[place]
        start = len(order)
        order += graph.members(unit)
        if unit < len(regions):
            intervals[unit] = Interval(start, len(order))
    return ContractedOrder(
        tuple(order), tuple(intervals[k] for k in range(len(regions))), result.peak
    )


class _ContractedGraph:
    """A graph in which each region is one node.

    A unit is a region or a node outside all regions. Units are numbered: regions first, then nodes.
    """

    def __init__(self, dag: Dag, regions: tuple[ContractedRegion, ...]) -> None:
        self._dag, self._regions = dag, regions
        count = len(regions)
        self._unit_of = {n: k for k, r in enumerate(regions) for n in r.nodes}
        for n in range(len(dag.nodes)):
            self._unit_of.setdefault(n, count + n)
        self._units = list(dict.fromkeys(self._unit_of[n] for n in range(len(dag.nodes))))

    def members(self, unit: int) -> list[int]:
        """The nodes of a unit, in file order."""
        count = len(self._regions)
        return sorted(self._regions[unit].nodes) if unit < count else [unit - count]

    @cached_property
    def _units_before(self) -> dict[int, set[int]]:
        """For each unit, the units that it waits for."""
        before: dict[int, set[int]] = {u: set() for u in self._units}
        for n, preds in enumerate(self._dag.links.preds):
            unit = self._unit_of[n]
            before[unit] |= {self._unit_of[p] for p in preds} - {unit}
        return before

    @cached_property
    def _sorted(self) -> tuple[list[int], set[int]]:
        """Units in a valid order near the file's, and the units that no valid order can contain."""
        waiting = {u: len(before) for u, before in self._units_before.items()}
        after: dict[int, list[int]] = {u: [] for u in self._units}
        for u, before in self._units_before.items():
            for b in before:
                after[b].append(u)
        ready = [u for u in self._units if not waiting[u]]
        order: list[int] = []
        while ready:
            unit = ready.pop(0)
            order.append(unit)
            for u in after[unit]:
                waiting[u] -= 1
                if not waiting[u]:
                    ready.append(u)
        return order, {u for u, n in waiting.items() if n}

    @property
    def stuck_units(self) -> set[int]:
        """Units that wait for each other, or for units that do."""
        return self._sorted[1]

    @property
    def units(self) -> list[int]:
        """The unit of each node of `self.dag`."""
        return self._sorted[0]

    @cached_property
    def dag(self) -> Dag:
        """The smaller graph."""
        assert not self.stuck_units, "regions that wait for each other"
        place = {u: k for k, u in enumerate(self.units)}
        nodes = tuple(self._node(u, place) for u in self.units)
        return Dag.of(self._dag.sizes, nodes, self._dag.inputs, self._dag.outputs)

    def _node(self, unit: int, place: dict[int, int]) -> Node:
        if unit < len(self._regions):
            return self._region_node(self._regions[unit], unit, place)
        node = self._dag.nodes[unit - len(self._regions)]
        after = tuple(sorted({place[self._unit_of[p]] for p in node.after}))
        return Node(node.reads, node.writes, after, node.absorbs, node.exclusive, node.workspace)

    def _region_node(self, region: ContractedRegion, unit: int, place: dict[int, int]) -> Node:
        """A region as one node: its inputs die row by row while its results are made."""
        dag, links = self._dag, self._dag.links
        inner = region.nodes
        reads = dict.fromkeys(t for n in sorted(inner) for t in dag.nodes[n].reads)
        writes = dict.fromkeys(t for n in sorted(inner) for t in dag.nodes[n].writes)
        entering = tuple(t for t in reads if links.writer[t] not in inner)
        leaving = tuple(
            t for t in writes if t in links.outputs or any(r not in inner for r in links.readers[t])
        )
        after = {place[self._unit_of[p]] for n in inner for p in dag.nodes[n].after}
        size_in = sum(dag.sizes[t] for t in entering)
        size_out = sum(dag.sizes[t] for t in leaving)
        share = min(1.0, size_out / max(size_in, 1))
        absorbs = tuple(Absorb(t, int(dag.sizes[t] * share)) for t in entering)
        return Node(
            entering, leaving, tuple(sorted(after - {place[unit]})), absorbs, False,
            region.workspace,
        )  # fmt: skip
