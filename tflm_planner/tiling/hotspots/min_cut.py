"""Where little lives: the cheapest places of a graph to stop before and behind some operators.

    a fat --+-- shrink --> y          before | a | x  shrink  shrink | y  z   behind
            +-- shrink --> z                 +---+-------------------+
    The frontier behind an operator: all that has to run first, and those consumers that leave
    fewer bytes alive once they have run too. Each operator taken costs `price` bytes, so that a
    small one keeps the frontier near by.

A set of operators that has run (an ideal of the graph) leaves alive the tensors that it made and
that somebody else reads; the ideal of the least weight is a minimum cut (Picard 1976). It knows a
DAG and bytes; it must not know what operators do.
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
_FAR = 1 << 60


class MinimumCuts:
    """Minimum cuts of one DAG."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self._count = len(dag.nodes)

    def descendants(self, nodes: Collection[int]) -> frozenset[int]:
        """The nodes and all that wait for one of them."""
        return self._reached(nodes, self.dag.links.succs)

    def ancestors(self, nodes: Collection[int]) -> frozenset[int]:
        """The nodes and all that one of them waits for."""
        return self._reached(nodes, self.dag.links.preds)

    def _reached(
        self, nodes: Collection[int], edges: tuple[tuple[int, ...], ...]
    ) -> frozenset[int]:
        seen, todo = {*nodes}, [*nodes]
        while todo:
            for n in edges[todo.pop()]:
                if n not in seen:
                    seen.add(n)
                    todo.append(n)
        return frozenset(seen)

    def behind(self, nodes: Collection[int], price: int) -> frozenset[int]:
        """The smallest set that holds the nodes and all that they wait for, and that leaves the
        fewest bytes alive, where each operator more costs `price`."""
        must = self._mask(self.ancestors(nodes))
        cut = self._network.cut(np.where(must, _FAR, 0), np.where(must, 0, price))
        return self._network.near_source(cut)

    def before(self, nodes: Collection[int], price: int) -> frozenset[int]:
        """The largest set without the nodes and all that waits for them, that leaves the fewest
        bytes alive, where each operator less costs `price`."""
        never = self._mask(self.descendants(nodes))
        cut = self._network.cut(np.where(never, 0, price), np.where(never, _FAR, 0))
        return frozenset(range(self._count)) - self._network.near_sink(cut)

    def _mask(self, nodes: Collection[int]) -> Bools:
        found = np.zeros(self._count, np.bool_)
        found[list(nodes)] = True
        return found

    @cached_property
    def _network(self) -> _Network:
        """A node on the source's side has run. A tensor on the sink's side, made on the other,
        lives."""
        dag, links = self.dag, self.dag.links
        source = self._count + len(dag.sizes)
        sink = source + 1
        edges = [(source, n, 0) for n in range(self._count)]
        edges += [(n, sink, 0) for n in range(self._count)]
        for t, size in enumerate(dag.sizes):
            at, maker = self._count + t, links.writer[t]
            edges.append((source if maker < 0 else maker, at, size))
            edges += [(at, reader, _FAR) for reader in links.readers[t]]
            if t in links.kept:
                edges.append((at, sink, _FAR))
        edges += [(n, p, _FAR) for n, before in enumerate(links.preds) for p in before]
        return _Network.of(self._count, sink + 1, edges)


@dataclass(frozen=True)
class _Network:
    """A flow network. Vertices: operators first, source and sink last. Edges lie in pairs, there
    and back; the first ones lead from the source to each operator, then from each to the sink.

    starts, out: the edges that leave each vertex. to, room: where an edge leads, and how much may
    flow along it.
    """

    count: int
    starts: Ints
    out: Ints
    to: Ints
    room: Ints

    @staticmethod
    def of(count: int, vertices: int, edges: Sequence[tuple[int, int, int]]) -> _Network:
        """Of edges (start, end, room). count: operators."""
        table = np.array(edges, np.int64)
        ends, room = np.zeros((2, 2 * len(edges)), np.int64)
        ends[::2], ends[1::2], room[::2] = table[:, 1], table[:, 0], table[:, 2]
        begins = np.empty_like(ends)
        begins[::2], begins[1::2] = table[:, 0], table[:, 1]
        starts = np.zeros(vertices + 1, np.int64)
        starts[1:] = np.cumsum(np.bincount(begins, minlength=vertices))
        return _Network(count, starts, np.argsort(begins, kind="stable"), ends, room)

    def cut(self, given: Ints, taken: Ints) -> Ints:
        """What room is left when no more can flow. given, taken: room from the source to each
        operator, and from each to the sink."""
        room = self.room.copy()
        room[: 4 * self.count : 2] = np.concatenate((given, taken))
        _max_flow(self.starts, self.out, self.to, room, len(self.starts) - 3, len(self.starts) - 2)
        return room

    def near_source(self, room: Ints) -> frozenset[int]:
        """Operators that the source still reaches: the smallest least cut."""
        levels = np.empty(len(self.starts) - 1, np.int64)
        _reached(self.starts, self.out, self.to, room, len(levels) - 2, levels)
        return frozenset(np.flatnonzero(levels[: self.count] >= 0).tolist())

    def near_sink(self, room: Ints) -> frozenset[int]:
        """Operators that still reach the sink: all but those of the largest least cut."""
        back = room.reshape(-1, 2)[:, ::-1].reshape(-1)
        seen = np.empty(len(self.starts) - 1, np.int64)
        _reached(self.starts, self.out, self.to, back, len(seen) - 1, seen)
        return frozenset(np.flatnonzero(seen[: self.count] >= 0).tolist())


def warm_up() -> None:
    """Load what is compiled here, and compile it where that was never done on this machine."""
    none = np.zeros(0, np.int64)
    _max_flow(np.zeros(3, np.int64), none, none, none, 0, 1)
    _reached(np.zeros(3, np.int64), none, none, none, 0, np.zeros(2, np.int64))


@compiled
def _reached(
    starts: Ints, out: Ints, to: Ints, room: Ints, root: int, levels: Ints
) -> None:  # fmt: skip
    """Steps from a vertex to every other one along edges with room; -1 where none leads."""
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
            if room[e] > 0 and levels[to[e]] < 0:
                levels[to[e]] = levels[n] + 1
                queue[end] = to[e]
                end += 1


@compiled
def _max_flow(starts: Ints, out: Ints, to: Ints, room: Ints, source: int, sink: int) -> None:
    """Let as much flow as can, along shortest paths first (Dinitz 1970)."""
    count = starts.size - 1
    levels, at, path = (
        np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    )  # fmt: skip
    _reached(starts, out, to, room, source, levels)
    while levels[sink] >= 0:
        for n in range(count):
            at[n] = starts[n]
        n, steps = source, 0
        while True:
            if n == sink:
                least = room[path[0]]
                for k in range(steps):
                    if room[path[k]] < least:
                        least = room[path[k]]
                cut = steps
                for k in range(steps):
                    room[path[k]] -= least
                    room[path[k] ^ 1] += least
                    if cut == steps and room[path[k]] == 0:
                        cut = k
                n, steps = to[path[cut] ^ 1], cut
                continue
            while at[n] < starts[n + 1]:
                e = out[at[n]]
                if room[e] > 0 and levels[to[e]] == levels[n] + 1:
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
        _reached(starts, out, to, room, source, levels)


__all__ = ["MinimumCuts"]
