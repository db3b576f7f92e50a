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

from collections import deque
from collections.abc import Collection

from tflm_planner.planning.order import Dag

_FAR = 1 << 60


class Cuts:
    """Minimum cuts of one DAG."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._count = len(dag.nodes)

    def descendants(self, nodes: Collection[int]) -> frozenset[int]:
        """The nodes and all that wait for one of them."""
        return self._reached(nodes, self._dag.links.succs)

    def ancestors(self, nodes: Collection[int]) -> frozenset[int]:
        """The nodes and all that one of them waits for."""
        return self._reached(nodes, self._dag.links.preds)

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
        must = self.ancestors(nodes)
        net = self._network()
        for n in range(self._count):
            if n in must:
                net.edge(net.source, n, _FAR)
            else:
                net.edge(n, net.sink, price)
        return frozenset(n for n in net.near_source() if n < self._count)

    def before(self, nodes: Collection[int], price: int) -> frozenset[int]:
        """The largest set without the nodes and all that waits for them, that leaves the fewest
        bytes alive, where each operator less costs `price`."""
        never = self.descendants(nodes)
        net = self._network()
        for n in range(self._count):
            if n in never:
                net.edge(n, net.sink, _FAR)
            else:
                net.edge(net.source, n, price)
        far = net.near_sink()
        return frozenset(n for n in range(self._count) if n not in far)

    def _network(self) -> _Network:
        """A node on the source's side has run. A tensor on the sink's side, made on the other,
        lives."""
        dag, links = self._dag, self._dag.links
        net = _Network(self._count + len(dag.sizes))
        for t, size in enumerate(dag.sizes):
            at, maker = self._count + t, links.writer[t]
            net.edge(net.source if maker < 0 else maker, at, size)
            for reader in links.readers[t]:
                net.edge(at, reader, _FAR)
            if t in links.kept:
                net.edge(at, net.sink, _FAR)
        for n, before in enumerate(links.preds):
            for p in before:
                net.edge(n, p, _FAR)
        return net


class _Network:
    """A flow network; the largest flow by Dinitz's algorithm."""

    def __init__(self, count: int) -> None:
        self.source, self.sink = count, count + 1
        self._out: list[list[int]] = [[] for _ in range(count + 2)]
        self._to: list[int] = []
        self._left: list[int] = []
        self._solved = False

    def edge(self, start: int, end: int, room: int) -> None:
        """An edge that so much may flow along."""
        for a, b, r in ((start, end, room), (end, start, 0)):
            self._out[a].append(len(self._to))
            self._to.append(b)
            self._left.append(r)

    def near_source(self) -> set[int]:
        """What the source still reaches when no more can flow: the smallest least cut."""
        self._solve()
        return {n for n, level in enumerate(self._levels()) if level >= 0}

    def near_sink(self) -> set[int]:
        """What still reaches the sink then: its complement is the largest least cut."""
        self._solve()
        seen, todo = {self.sink}, [self.sink]
        while todo:
            n = todo.pop()
            for e in self._out[n]:
                if self._left[e ^ 1] and self._to[e] not in seen:
                    seen.add(self._to[e])
                    todo.append(self._to[e])
        return seen

    def _solve(self) -> None:
        while not self._solved:
            levels = self._levels()
            if levels[self.sink] < 0:
                self._solved = True
                return
            self._block(levels)

    def _levels(self) -> list[int]:
        levels = [-1] * len(self._out)
        levels[self.source] = 0
        todo = deque([self.source])
        while todo:
            n = todo.popleft()
            for e in self._out[n]:
                if self._left[e] and levels[self._to[e]] < 0:
                    levels[self._to[e]] = levels[n] + 1
                    todo.append(self._to[e])
        return levels

    def _block(self, levels: list[int]) -> None:
        """As much as can flow along shortest paths."""
        at = [0] * len(self._out)
        path: list[int] = []
        n = self.source
        while True:
            if n == self.sink:
                least = min(self._left[e] for e in path)
                for e in path:
                    self._left[e] -= least
                    self._left[e ^ 1] += least
                cut = next(i for i, e in enumerate(path) if not self._left[e])
                n = self._to[path[cut] ^ 1]
                del path[cut:]
                continue
            edges = self._out[n]
            while at[n] < len(edges):
                e = edges[at[n]]
                if self._left[e] and levels[self._to[e]] == levels[n] + 1:
                    path.append(e)
                    n = self._to[e]
                    break
                at[n] += 1
            else:
                if n == self.source:
                    return
                levels[n] = -1
                n = self._to[path.pop() ^ 1]
