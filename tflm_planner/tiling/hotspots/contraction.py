"""An order in which chosen regions of a graph run in one piece each, with little alive around them.

    nodes    0  1  [2  5  6]  3  4  [7  8]        a region is one node of a smaller graph, of which
    regions        |-------|        |----|        the best order is known to be found

It knows a DAG and bytes; it must not know what operators do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tflm_planner.memory.order import Absorb, Dag, Node, OrderResult, best_order

_STATES = 5_000
"""Of the search for an order."""


@dataclass(frozen=True)
class ContractedRegion:
    """Nodes that run in one piece, in tiles. workspace: bytes that tiles take beside what enters
    and what leaves, about."""

    nodes: frozenset[int]
    workspace: int


@dataclass(frozen=True)
class ContractedOrder:
    """order: of all nodes. spans: of each region, first place and the one behind its last. peak:
    bytes, with the guessed workspace of regions."""

    order: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    peak: int


def close_groups(dag: Dag, chosen: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Disjoint convex sets, none of which waits for itself through others; those given, joined
    where they meet."""
    groups = [_convex(dag, nodes) for nodes in chosen]
    while True:
        groups = _disjoint(dag, groups)
        cycle = _cycle(dag, groups)
        if not cycle:
            return groups
        joined = frozenset[int]().union(*(groups[k] for k in cycle))
        groups = [g for k, g in enumerate(groups) if k not in cycle] + [_convex(dag, joined)]


def _disjoint(dag: Dag, groups: list[frozenset[int]]) -> list[frozenset[int]]:
    done: list[frozenset[int]] = []
    todo = [*groups]
    while todo:
        group = todo.pop()
        meets = [other for other in done if other & group]
        if meets:
            done = [other for other in done if not other & group]
            todo.append(_convex(dag, group.union(*meets)))
        else:
            done.append(group)
    return sorted(done, key=min)


def _convex(dag: Dag, nodes: frozenset[int]) -> frozenset[int]:
    """The nodes with all that lies on paths between them."""
    links = dag.links
    behind, before = [False] * len(dag.nodes), [False] * len(dag.nodes)
    for n in range(len(dag.nodes)):
        behind[n] = n in nodes or any(behind[p] for p in links.preds[n])
    for n in reversed(range(len(dag.nodes))):
        before[n] = n in nodes or any(before[s] for s in links.succs[n])
    return frozenset(n for n in range(len(dag.nodes)) if behind[n] and before[n])


def _cycle(dag: Dag, groups: Sequence[frozenset[int]]) -> list[int]:
    """Groups that wait for each other in a circle; none where all is well."""
    graph = _ContractedGraph(dag, tuple(ContractedRegion(g, 0) for g in groups))
    stuck = graph.stuck
    return [k for k, _ in enumerate(groups) if k in stuck]


def best_contracted_order(dag: Dag, regions: Sequence[ContractedRegion]) -> ContractedOrder:
    """The order with the lowest peak known in which each region runs in one piece. `regions`: as
    `closed` gives them."""
    small = _ContractedGraph(dag, tuple(regions))
    found: OrderResult = best_order(small.dag, budget=_STATES)
    order: list[int] = []
    spans: dict[int, tuple[int, int]] = {}
    for place in found.order:
        group = small.units[place]
        start = len(order)
        order += small.members(group)
        if group < len(regions):
            spans[group] = start, len(order)
    return ContractedOrder(tuple(order), tuple(spans[k] for k in range(len(regions))), found.peak)


class _ContractedGraph:
    """A graph with each region as one node. Units: regions by number, then single nodes."""

    def __init__(self, dag: Dag, regions: tuple[ContractedRegion, ...]) -> None:
        self._dag, self._regions = dag, regions
        count = len(regions)
        self._of = {n: k for k, r in enumerate(regions) for n in r.nodes}
        for n in range(len(dag.nodes)):
            self._of.setdefault(n, count + n)
        self._units = list(dict.fromkeys(self._of[n] for n in range(len(dag.nodes))))

    def members(self, unit: int) -> list[int]:
        """Its nodes, in file order."""
        count = len(self._regions)
        return sorted(self._regions[unit].nodes) if unit < count else [unit - count]

    @cached_property
    def _before(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {u: set() for u in self._units}
        for n, preds in enumerate(self._dag.links.preds):
            found[self._of[n]] |= {self._of[p] for p in preds} - {self._of[n]}
        return found

    @cached_property
    def _sorted(self) -> tuple[list[int], set[int]]:
        """Units in a valid order, near the file's, and those that none has."""
        left = {u: len(before) for u, before in self._before.items()}
        after: dict[int, list[int]] = {u: [] for u in self._units}
        for u, before in self._before.items():
            for b in before:
                after[b].append(u)
        ready = [u for u in self._units if not left[u]]
        order: list[int] = []
        while ready:
            unit = ready.pop(0)
            order.append(unit)
            for u in after[unit]:
                left[u] -= 1
                if not left[u]:
                    ready.append(u)
        return order, {u for u, n in left.items() if n}

    @property
    def stuck(self) -> set[int]:
        """Units that wait for each other, or for some that do."""
        return self._sorted[1]

    @property
    def units(self) -> list[int]:
        """In the order of the nodes of `dag`."""
        return self._sorted[0]

    @cached_property
    def dag(self) -> Dag:
        """The smaller graph."""
        assert not self.stuck, "regions that wait for each other"
        place = {u: k for k, u in enumerate(self.units)}
        nodes = tuple(self._node(u, place) for u in self.units)
        return Dag(self._dag.sizes, nodes, self._dag.inputs, self._dag.outputs)

    def _node(self, unit: int, place: dict[int, int]) -> Node:
        if unit >= len(self._regions):
            node = self._dag.nodes[unit - len(self._regions)]
            after = tuple(sorted({place[self._of[p]] for p in node.after}))
            return Node(
                node.reads, node.writes, after, node.absorbs, node.exclusive, node.workspace
            )
        return self._node_of(self._regions[unit], unit, place)

    def _node_of(self, region: ContractedRegion, unit: int, place: dict[int, int]) -> Node:
        """What enters dies row by row while what leaves is made."""
        dag, links = self._dag, self._dag.links
        inner = region.nodes
        reads = dict.fromkeys(t for n in sorted(inner) for t in dag.nodes[n].reads)
        writes = dict.fromkeys(t for n in sorted(inner) for t in dag.nodes[n].writes)
        entering = tuple(t for t in reads if links.writer[t] not in inner)
        leaving = tuple(
            t for t in writes if t in links.kept or any(r not in inner for r in links.readers[t])
        )
        after = {place[self._of[p]] for n in inner for p in dag.nodes[n].after}
        size_in = sum(dag.sizes[t] for t in entering)
        size_out = sum(dag.sizes[t] for t in leaving)
        share = min(1.0, size_out / max(size_in, 1))
        absorbs = tuple(Absorb(t, int(dag.sizes[t] * share)) for t in entering)
        return Node(
            entering, leaving, tuple(sorted(after - {place[unit]})), absorbs, False,
            region.workspace,
        )  # fmt: skip
