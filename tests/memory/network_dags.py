"""Graphs shaped like published networks, of any size: sizes of int8 tensors, no operators' meaning.

NASNet-like and DARTS-like cells stacked, a region cut into tiles, HRNet-like parallel branches,
RandWire stages (Watts-Strogatz, Erdos-Renyi, Barabasi-Albert), a DenseNet-like stack of
concatenations, and a chain.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from tflm_planner.memory.order import Absorb, Dag, Node


class Builder:
    """Grows a Dag one operator at a time; each call returns the tensor it writes."""

    def __init__(self, size: int) -> None:
        self.sizes = [size]
        self.nodes: list[Node] = []

    def op(self, reads: Iterable[int], size: int) -> int:
        """One operator with one result of `size` bytes, rounded up to 16."""
        self.sizes.append(-(-size // 16) * 16)
        self.nodes.append(Node(tuple(reads), (len(self.sizes) - 1,)))
        return len(self.sizes) - 1

    def view(self, reads: list[int]) -> int:
        """A concatenation whose operands lie inside its result, so that it needs no memory."""
        y = self.op(reads, sum(self.sizes[t] for t in reads))
        absorbs = tuple(Absorb(t, self.sizes[t]) for t in reads)
        self.nodes[-1] = replace(self.nodes[-1], absorbs=absorbs)
        return y

    def run(self, x: int, *sizes: int) -> int:
        """A chain of operators after x."""
        for size in sizes:
            x = self.op((x,), size)
        return x

    def dag(self, out: int) -> Dag:
        """The graph with output `out`."""
        return Dag.of(tuple(self.sizes), tuple(self.nodes), (0,), (out,))


def chain(length: int = 10_000) -> Dag:
    """A chain with a skip connection every third node."""
    b, x, rng = Builder(4096), 0, random.Random(1)
    while len(b.nodes) < length:
        y = b.run(x, 16 * rng.randint(1, 400), b.sizes[x])
        x = b.op((x, y), b.sizes[x])
    return b.dag(x)


def densenet(blocks: int = 4, layers: int = 24, growth: int = 32) -> Dag:
    """Each layer concatenates its result to all before it."""
    b, side, channels = Builder(32 * 32 * 64), 32, 64
    x = 0
    for _ in range(blocks):
        for _ in range(layers):
            y = b.run(x, side * side * 4 * growth, side * side * growth)
            channels += growth
            x = b.op((x, y), side * side * channels)
        channels, side = channels // 2, max(side // 2, 1)
        x = b.run(x, 4 * side * side * channels, side * side * channels)
    return b.dag(x)


def nasnet(cells: int = 4, filters: int = 44, side: int = 224) -> Dag:
    """NASNet-A mobile: stem, two stem reductions, 3 stacks of normal cells."""
    b = Builder(side * side * 3)
    s = side // 2 - 1
    stem = b.op((0,), s * s * 32)
    p, h, ps, hs = stem, stem, s, s

    def sep(x: int, s_in: int, s_out: int, f: int) -> int:
        c = b.sizes[x] // (s_in * s_in)
        return b.run(x, s_in * s_in * c, s_out * s_out * c, *[s_out * s_out * f] * 4)

    def adjust(p: int, ps: int, hs: int, f: int) -> int:
        size = hs * hs
        c = b.sizes[p] // (ps * ps)
        x = b.op((p,), ps * ps * c)
        if ps == hs:
            return b.run(x, size * f)
        left = b.run(x, size * c, size * f // 2)
        right = b.run(x, (ps + 1) * (ps + 1) * c, ps * ps * c, size * c, size * f // 2)
        return b.op((left, right), size * f)

    def reduction(p: int, h: int, ps: int, hs: int, f: int) -> tuple[int, int]:
        p = adjust(p, ps, hs, f)
        x = b.run(h, b.sizes[h], hs * hs * f)
        o = (hs + 1) // 2
        size = o * o * f
        x1 = b.op((sep(x, hs, o, f), sep(p, hs, o, f)), size)
        x2 = b.op((b.op((x,), size), sep(p, hs, o, f)), size)
        x3 = b.op((b.op((x,), size), sep(p, hs, o, f)), size)
        x4 = b.op((x2, b.op((x1,), size)), size)
        x5 = b.op((sep(x1, o, o, f), b.op((x,), size)), size)
        return b.op((x2, x3, x4, x5), 4 * size), o

    def normal(p: int, h: int, ps: int, hs: int, f: int) -> int:
        p = adjust(p, ps, hs, f)
        x = b.run(h, b.sizes[h], hs * hs * f)
        size = hs * hs * f
        x1 = b.op((sep(x, hs, hs, f), sep(p, hs, hs, f)), size)
        x2 = b.op((sep(p, hs, hs, f), sep(p, hs, hs, f)), size)
        x3 = b.op((b.op((x,), size), p), size)
        x4 = b.op((b.op((p,), size), b.op((p,), size)), size)
        x5 = b.op((sep(x, hs, hs, f), x), size)
        return b.op((p, x1, x2, x3, x4, x5), 6 * size)

    for f in (filters // 4, filters // 2):
        new, o = reduction(p, h, ps, hs, f)
        p, ps, h, hs = h, hs, new, o
    for stack in range(3):
        f = filters << stack
        if stack:
            new, o = reduction(p, h, ps, hs, f)
            p, ps, h, hs = h, hs, new, o
        for _ in range(cells):
            p, ps, h = h, hs, normal(p, h, ps, hs, f)
    x = b.run(h, b.sizes[h], b.sizes[h] // (hs * hs), 1001, 1001)
    return b.dag(x)


def darts(cells: int = 20, channels: int = 36, side: int = 32) -> Dag:
    """DARTS second order: normal cells, reductions at one and two thirds of the depth."""
    b = Builder(side * side * 3)
    stem = b.op((0,), side * side * channels * 3)
    p, h, hs, f = stem, stem, side, channels
    for cell in range(cells):
        reduce = cell in (cells // 3, 2 * cells // 3)
        f = f * 2 if reduce else f
        o = hs // 2 if reduce else hs
        a = b.run(p, b.sizes[p], hs * hs * f)
        c = b.run(h, b.sizes[h], hs * hs * f)
        size = o * o * f

        def sep(x: int, s: int = hs * hs * f, size: int = size) -> int:
            return b.run(x, s, *[size] * 5) if b.sizes[x] == s else b.run(x, *[size] * 6)

        n1 = b.op((sep(a), sep(c)), size)
        n2 = b.op((sep(a), sep(c)), size)
        if reduce:
            n3 = b.op((n1, b.op((c,), size)), size)
            n4 = b.op((n1, b.op((a,), size)), size)
        else:
            n3 = b.op((sep(c), a), size)
            n4 = b.op((b.run(n1, size, size), a), size)
        p, h, hs = h, b.op((n1, n2, n3, n4), 4 * size), o
    return b.dag(b.run(h, 4 * f, 1000))


def tiles(count: int = 32, depth: int = 3, side: int = 64, channels: int = 16) -> Dag:
    """Inverted bottlenecks cut into bands of rows with recomputed halo, in the worst file order:
    all tiles abreast. Operands of a CONCATENATION are views of its result.
    """
    b = Builder(side * side * channels)
    row = side * channels

    def rows(tile: int, left: int) -> int:
        return side // count + left * (1 if tile in (0, count - 1) else 2)

    front = [b.op((0,), rows(t, depth) * row) for t in range(count)]
    for left in reversed(range(depth)):
        front = [b.op((x,), rows(t, left + 1) * row * 6) for t, x in enumerate(front)]
        front = [b.op((x,), rows(t, left) * row * 6) for t, x in enumerate(front)]
        front = [b.op((x,), rows(t, left) * row) for t, x in enumerate(front)]
    while len(front) > 1:
        groups = [front[i : i + 10] for i in range(0, len(front), 10)]
        front = [b.view(group) for group in groups]
    return b.dag(b.run(front[0], side * side * channels // 4, 1000))


def hrnet(stages: int = 3, modules: int = 2, filters: int = 18, side: int = 64) -> Dag:
    """Branches of 1/1, 1/2, 1/4, ... resolution; each module ends with an exchange of all."""
    b = Builder(side * side * 3)

    def size(i: int) -> int:
        return (side >> i) ** 2 * (filters << i)

    branches = [b.run(0, size(0)), b.run(0, size(0), size(1))]
    for stage in range(stages):
        for _ in range(modules):
            for i in range(len(branches)):
                for _ in range(4):
                    y = b.run(branches[i], size(i), size(i))
                    branches[i] = b.op((branches[i], y), size(i))
            branches = [_exchange(b, branches, i, size, side, filters) for i in range(stage + 2)]
        if stage < stages - 1:
            branches.append(b.run(branches[-1], size(len(branches))))
    full = [b.run(x, size(0) << i) if i else x for i, x in enumerate(branches)]
    return b.dag(b.run(b.op(full, sum(b.sizes[x] for x in full)), side * side * 17))


def _exchange(
    b: Builder, branches: list[int], i: int, size: Callable[[int], int], side: int, filters: int
) -> int:
    total = branches[i]
    for j, x in enumerate(branches):
        if j < i:
            steps = [(side >> k) ** 2 * (filters << j) for k in range(j + 1, i)]
            total = b.op((total, b.run(x, *steps, size(i))), size(i))
        elif j > i:
            total = b.op((total, b.run(x, (side >> j) ** 2 * (filters << i), size(i))), size(i))
    return b.op((total,), size(i))


def randwire(kind: str, nodes: int = 32, stages: int = 3, seed: int = 0) -> Dag:
    """RandWire: stages of random graphs; each node adds its operands, then relu, dw, pw."""
    b, side, channels = Builder(224 * 224 * 3), 56, 78
    x = b.op((0,), 112 * 112 * channels // 2)
    rng = random.Random(seed)
    for _ in range(stages):
        edges = _EDGES[kind](nodes, rng)
        size_in, side = b.sizes[x], side // 2
        size = side * side * channels
        made: dict[int, int] = {}
        for v in range(nodes):
            operands = [made[u] for u in range(v) if (u, v) in edges]
            y = x if not operands else operands[0]
            for other in operands[1:]:
                y = b.op((y, other), size)
            made[v] = b.run(y, size if operands else size_in, size, size)
        ends = [v for v in range(nodes) if not any((v, w) in edges for w in range(nodes))]
        x = made[ends[0]]
        for v in ends[1:]:
            x = b.op((x, made[v]), size)
        channels *= 2
    return b.dag(b.run(x, 1280, 1000))


def _watts_strogatz(n: int, rng: random.Random) -> set[tuple[int, int]]:
    edges: set[tuple[int, int]] = set()
    for u in range(n):
        for k in (1, 2):
            v = (u + k) % n
            while rng.random() < 0.75:
                v = rng.randrange(n)
                if v != u and (min(u, v), max(u, v)) not in edges:
                    break
            edges.add((min(u, v), max(u, v)))
    return edges - {(u, u) for u in range(n)}


def _erdos_renyi(n: int, rng: random.Random) -> set[tuple[int, int]]:
    return {(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.2}


def _barabasi_albert(n: int, rng: random.Random) -> set[tuple[int, int]]:
    m, edges = 5, set[tuple[int, int]]()
    ends = list(range(m))
    for v in range(m, n):
        chosen: set[int] = set()
        while len(chosen) < m:
            chosen.add(rng.choice(ends))
        edges |= {(u, v) for u in chosen}
        ends += [*chosen, *[v] * m]
    return edges


_EDGES = {"ws": _watts_strogatz, "er": _erdos_renyi, "ba": _barabasi_albert}

NETWORKS: dict[str, Callable[[], Dag]] = {
    "chain": chain,
    "densenet": densenet,
    "nasnet": nasnet,
    "darts": darts,
    "tiles": tiles,
    "hrnet": hrnet,
    "randwire-ws": lambda: randwire("ws"),
    "randwire-er": lambda: randwire("er"),
    "randwire-ba": lambda: randwire("ba"),
    "randwire-64": lambda: randwire("er", nodes=64),
}
