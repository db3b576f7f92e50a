"""Finds the cheapest cuts of a graph before and after some operators: the cuts across which the
fewest bytes live.

    large --+-- shrink --> y        before | large  shrink  shrink | y  z    after
            +-- shrink --> z               +-----------------------+

The set before the later cut contains the operators and all that must run before them; it also
contains consumers if that lowers the bytes that live after it. Each operator in the set costs
`price` bytes, so that a small gain does not move the cut far away.

After a set of operators that contains all its predecessors (an ideal of the graph) has run, those
tensors live that it made and that other operators read. The ideal after which the fewest bytes live
is a minimum cut (Picard 1976). This module knows a DAG and bytes; it must not know what operators
do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tflm_planner.memory.allocators.machine_code import Ints, compiled
from tflm_planner.memory.order import Dag

Bools = np.ndarray[Any, np.dtype[np.bool_]]
_INFINITE = 1 << 60


class MinimumCuts:
    """Minimum cuts of one DAG."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self._count = len(dag.nodes)

    def descendants(self, nodes: Collection[int]) -> frozenset[int]:
        """The nodes and their descendants: all nodes that wait for one of them."""
        return self._reachable(nodes, self.dag.links.succs)

    def ancestors(self, nodes: Collection[int]) -> frozenset[int]:
        """The nodes and their ancestors: all nodes that one of them waits for."""
        return self._reachable(nodes, self.dag.links.preds)

    def _reachable(
        self, nodes: Collection[int], edges: tuple[tuple[int, ...], ...]
    ) -> frozenset[int]:
        seen, todo = {*nodes}, [*nodes]
        while todo:
            for n in edges[todo.pop()]:
                if n not in seen:
                    seen.add(n)
                    todo.append(n)
        return frozenset(seen)

    def after(self, nodes: Collection[int], price: int) -> frozenset[int]:
        """The cheapest set that contains `nodes` and their ancestors. A set costs the bytes alive
        after it, plus `price` per operator. The smallest set wins ties."""
        required = self._mask(self.ancestors(nodes))
        capacity = self._network.residual_capacity(
            np.where(required, _INFINITE, 0), np.where(required, 0, price)
        )
        return self._network.source_side(capacity)

    def before(self, nodes: Collection[int], price: int) -> frozenset[int]:
        """The cheapest set that contains neither `nodes` nor their descendants. A set costs the
        bytes alive after it, plus `price` per operator left out. The largest set wins ties."""
        excluded = self._mask(self.descendants(nodes))
        capacity = self._network.residual_capacity(
            np.where(excluded, 0, price), np.where(excluded, _INFINITE, 0)
        )
        return frozenset(range(self._count)) - self._network.sink_side(capacity)

    def _mask(self, nodes: Collection[int]) -> Bools:
        mask = np.zeros(self._count, np.bool_)
        mask[list(nodes)] = True
        return mask

    @cached_property
    def _network(self) -> _Network:
        """The network for cuts: the nodes on the source's side are those that have run. A tensor
        lives if its writer has run and one of its readers has not: an infinite edge then keeps it
        on the sink's side, and the cut pays its bytes."""
        dag, links = self.dag, self.dag.links
        source = self._count + len(dag.sizes)
        sink = source + 1
        edges = [(source, n, 0) for n in range(self._count)]
        edges += [(n, sink, 0) for n in range(self._count)]
        for t, size in enumerate(dag.sizes):
            at, maker = self._count + t, links.writer[t]
            edges.append((source if maker < 0 else maker, at, size))
            edges += [(at, reader, _INFINITE) for reader in links.readers[t]]
            if t in links.outputs:
                edges.append((at, sink, _INFINITE))
        edges += [(n, p, _INFINITE) for n, before in enumerate(links.preds) for p in before]
        return _Network.of(self._count, sink + 1, edges)


@dataclass(frozen=True)
class _Network:
    """A flow network. Vertices: operators first, then tensors, source and sink last. Edges come in
    pairs, an edge and its reverse; the first pairs lead from the source to each operator, then from
    each operator to the sink."""

    count: int
    """Number of operators."""
    starts: Ints
    """For each vertex, where the edges that leave it begin in `out`."""
    out: Ints
    """Numbers of edges, grouped by the vertex that they leave."""
    to: Ints
    """The vertex that each edge leads to."""
    capacity: Ints
    """Bytes that may flow along each edge."""

    @staticmethod
    def of(count: int, vertices: int, edges: Sequence[tuple[int, int, int]]) -> _Network:
        """The network of edges (start, end, capacity). count: operators."""
        table = np.array(edges, np.int64)
        ends, capacity = np.zeros((2, 2 * len(edges)), np.int64)
        ends[::2], ends[1::2], capacity[::2] = table[:, 1], table[:, 0], table[:, 2]
        begins = np.empty_like(ends)
        begins[::2], begins[1::2] = table[:, 0], table[:, 1]
        starts = np.zeros(vertices + 1, np.int64)
        starts[1:] = np.cumsum(np.bincount(begins, minlength=vertices))
        return _Network(count, starts, np.argsort(begins, kind="stable"), ends, capacity)

    def residual_capacity(self, from_source: Ints, to_sink: Ints) -> Ints:
        """The capacity that each edge has left after a maximum flow. from_source, to_sink: capacity
        from the source to each operator, and from each operator to the sink."""
        capacity = self.capacity.copy()
        capacity[: 4 * self.count : 2] = np.concatenate((from_source, to_sink))
        _max_flow(
            self.starts, self.out, self.to, capacity, len(self.starts) - 3, len(self.starts) - 2
        )
        return capacity

    def source_side(self, capacity: Ints) -> frozenset[int]:
        """Operators that the source still reaches: the smallest of all minimum cuts."""
        levels = np.empty(len(self.starts) - 1, np.int64)
        _breadth_first(self.starts, self.out, self.to, capacity, len(levels) - 2, levels)
        return frozenset(np.flatnonzero(levels[: self.count] >= 0).tolist())

    def sink_side(self, capacity: Ints) -> frozenset[int]:
        """Operators that still reach the sink: all that are not in the largest minimum cut."""
        back = capacity.reshape(-1, 2)[:, ::-1].reshape(-1)
        levels = np.empty(len(self.starts) - 1, np.int64)
        _breadth_first(self.starts, self.out, self.to, back, len(levels) - 1, levels)
        return frozenset(np.flatnonzero(levels[: self.count] >= 0).tolist())


def warm_up() -> None:
    """Load the compiled functions; compile them if that was never done on this machine."""
    none = np.zeros(0, np.int64)
    _max_flow(np.zeros(3, np.int64), none, none, none, 0, 1)
    _breadth_first(np.zeros(3, np.int64), none, none, none, 0, np.zeros(2, np.int64))


@compiled
def _breadth_first(
    starts: Ints, out: Ints, to: Ints, capacity: Ints, root: int, levels: Ints
) -> None:  # fmt: skip
    """Write to `levels` the number of steps from the root to every vertex along edges with capacity
    left; -1 if there is no path."""
    for n in range(levels.size):
        levels[n] = -1
    levels[root] = 0
    queue = np.empty(levels.size, np.int64)
    queue[0] = root
    first, end = 0, 1
    while first < end:
        n = queue[first]
        first += 1
        for k in range(starts[n], starts[n + 1]):
            e = out[k]
            if capacity[e] > 0 and levels[to[e]] < 0:
                levels[to[e]] = levels[n] + 1
                queue[end] = to[e]
                end += 1


@compiled
def _max_flow(starts: Ints, out: Ints, to: Ints, capacity: Ints, source: int, sink: int) -> None:
    """The maximum flow, along shortest paths first (Dinitz 1970). Changes `capacity`."""
    count = starts.size - 1
    levels, at, path = (
        np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    )  # fmt: skip
    _breadth_first(starts, out, to, capacity, source, levels)
    while levels[sink] >= 0:
        for n in range(count):
            at[n] = starts[n]
        n, steps = source, 0
        while True:
            if n == sink:
                least = capacity[path[0]]
                for k in range(steps):
                    if capacity[path[k]] < least:
                        least = capacity[path[k]]
                cut = steps
                for k in range(steps):
                    capacity[path[k]] -= least
                    capacity[path[k] ^ 1] += least
                    if cut == steps and capacity[path[k]] == 0:
                        cut = k
                n, steps = to[path[cut] ^ 1], cut
                continue
            while at[n] < starts[n + 1]:
                e = out[at[n]]
                if capacity[e] > 0 and levels[to[e]] == levels[n] + 1:
                    break
                at[n] += 1
            if at[n] < starts[n + 1]:
                path[steps] = out[at[n]]
                steps += 1
                n = to[path[steps - 1]]
                continue
            if n == source:
                break
            levels[n] = -1
            steps -= 1
            n = to[path[steps] ^ 1]
        _breadth_first(starts, out, to, capacity, source, levels)


__all__ = ["MinimumCuts"]
