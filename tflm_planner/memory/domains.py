"""The offsets at which each buffer can still lie below a given height, pruned by arc consistency.

Knows intervals and bytes. It must not know allocators, nor time limits.

    height - - - - - - - - - - - - - -      A buffer's domain is a set of offsets. If the offset of
              :        : |########| c       a neighbour i lies in [l, h], that of j must lie in
              : b |####|########| :         [l, h] + the distances that i and j may have. Two large
        a |####|####|    :        :         neighbours of b prune its domain from both sides; the
    0   - - - - - - - - - - - - - -         pruning propagates along a chain of overlaps.

Why it is a valid bound: a legal plan below the height has an offset in every initial domain,
[0, height - size]. A step removes from domain j only offsets that are legal with no offset left in
domain i; so by induction the plan's offsets are never removed. Hence an empty domain disproves the
height, whatever the number and order of steps.

The distances of a pair are those that are not forbidden and that leave enough space for the other
buffers: while both live, buffers with no permit to either need `crowd` bytes beside them, so the
pair must share at least size + size + crowd - height bytes.

For chains (each buffer lives together with the next only, as in a model without branches) arc
consistency is decisive: the graph of pairs is a tree, and from consistent domains offsets can be
picked one after the other without backtracking (Freuder 1982). That is how plans are found in
which many layers slide through one buffer. For other problems picking is a heuristic.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tflm_planner.memory.problem import UNBOUNDED, Problem

LowHigh = tuple[int, int]
"""Open for forbidden distances, closed for possible offsets and distances."""
Domain = list[LowHigh]
"""Closed intervals, ascending, not adjacent."""

_MOST_INTERVALS = 24
"""A domain of more intervals is widened: its narrowest gaps are filled."""


def forbidden(problem: Problem, i: int, j: int) -> list[LowHigh]:
    """Forbidden open intervals of `offset[j] - offset[i]` of two buffers that live together."""
    low, high = -problem.buffers[j].size, problem.buffers[i].size
    permits = problem.permits.get((i, j))
    if permits is None:
        return [(low, high)]
    gaps: list[LowHigh] = []
    for free_low, free_high in sorted(permits):
        if free_low > low:
            gaps.append((low, min(free_low, high)))
        low = max(low, free_high)
        if low >= high:
            return gaps
    gaps.append((low, high))
    return gaps


@dataclass(frozen=True, slots=True)
class _Arc:
    """An edge from one buffer to a neighbour: the distances that the neighbour may have."""

    to: int
    windows: Domain
    widest: int
    """Width of the widest gap between two windows: a contiguous domain at least as wide prunes
    nothing."""


@dataclass(frozen=True, slots=True)
class _Tight:
    """A buffer and a neighbour that may overlap. roomy: the arc between them at heights where they
    need not overlap. gaps: forbidden distances. first, second: their sizes. need: both sizes, plus
    the bytes that other buffers need beside them."""

    of: int
    roomy: _Arc
    gaps: list[LowHigh]
    first: int
    second: int
    need: int


@dataclass
class Domains:
    """The domains of all buffers below one height; all numbers in units of the problem's grid."""

    walls: list[list[tuple[int, int, int]]]
    """For each buffer, the buffers that live at the same time and may not share memory with it:
    (neighbour, its size, the buffer's size)."""
    arcs: list[list[_Arc]]
    """For each buffer, the buffers that live at the same time and may overlap it at some
    distances."""
    spans: list[Domain]
    possible: bool = True
    steps: int = 0
    """Pairs looked at so far."""

    def copy(self) -> Domains:
        """The same domains, to be narrowed independently."""
        return Domains(self.walls, self.arcs, list(self.spans), self.possible)

    def propagate(self, changed: Iterable[int], budget: int) -> bool:
        """Prune the neighbours of `changed`, then the neighbours of those that changed, and so on.
        False when a domain becomes empty. After `budget` steps it ends, so that domains may be
        wider than necessary.
        """
        queue = deque(changed)
        waiting = set(queue)
        stop = self.steps + budget
        while queue and self.possible and self.steps < stop:
            i = queue.popleft()
            waiting.discard(i)
            for j in self._prune_around(i):
                if j not in waiting:
                    waiting.add(j)
                    queue.append(j)
        return self.possible

    def _prune_around(self, i: int) -> Iterator[int]:
        """Prune the neighbours of buffer i. Yields those whose domains changed."""
        spans = self.spans
        source = spans[i]
        least, most = source[0][0], source[-1][1]
        for to, under, above in self.walls[i]:
            below, over = most - under, least + above
            old = spans[to]
            if over - below > 1 and below < old[-1][1] and over > old[0][0]:
                self.steps += 1
                if self._narrow(to, _subtract(old, below, over)):
                    yield to
                if not self.possible:
                    return
        room = most - least if len(source) == 1 else -1
        for arc in self.arcs[i]:
            if arc.widest - 2 >= room:
                self.steps += 1
                if self._narrow(arc.to, _reachable_part(source, arc.windows, spans[arc.to])):
                    yield arc.to
                if not self.possible:
                    return

    def _narrow(self, i: int, span: Domain) -> bool:
        """Replace the domain of buffer i by a part of it. Returns whether that changes it."""
        if span == self.spans[i]:
            return False
        self.spans[i] = span
        self.possible = bool(span)
        return True

    def fix(self, i: int, offset: int, budget: int) -> bool:
        """Place buffer i and propagate. Its neighbours are pruned exactly whatever the budget is,
        so that the plan is legal if all buffers are placed and no domain becomes empty."""
        self.spans[i] = [(offset, offset)]
        return self.propagate((i,), max(budget, 1))


class Pruner:
    """Computes the domains of one problem below any height. `unit`: bytes of the grid; every size
    and distance is a multiple of it, and hence every height worth trying."""

    def __init__(self, problem: Problem, crowd: Mapping[LowHigh, int]) -> None:
        """crowd: (i, j), i < j, for all pairs with permits -> bytes that others need beside
        them."""
        finite = [d for o in problem.overlaps for d in (o.low, o.high) if abs(d) < UNBOUNDED]
        self.unit = unit = math.gcd(*(b.size for b in problem.buffers), *finite) or 1
        self.problem = problem
        self.sizes = [b.size // unit for b in problem.buffers]
        self._last = (-1, -1), Domains([], [], [])
        self._crowd = {pair: need // unit for pair, need in crowd.items()}
        self._walls: list[list[tuple[int, int, int]]] = []
        self._tight: list[_Tight] = []
        for i, near in enumerate(problem.neighbours):
            walls = list[tuple[int, int, int]]()
            self._walls.append(walls)
            for j in near:
                if (min(i, j), max(i, j)) in self._crowd:
                    gaps = [(a // unit, b // unit) for a, b in forbidden(problem, i, j)]
                    a, b = self.sizes[i], self.sizes[j]
                    widest = max((y - x for x, y in gaps), default=0)
                    arc = _Arc(j, _windows(gaps, -UNBOUNDED, UNBOUNDED), widest)
                    need = a + b + self._crowd[min(i, j), max(i, j)]
                    self._tight.append(_Tight(i, arc, gaps, a, b, need))
                else:
                    walls.append((j, self.sizes[j], self.sizes[i]))

    def at(self, height: int, budget: int) -> Domains:
        """Domains below `height` bytes, made consistent as far as `budget` steps allow. They are
        cached, so narrow only a copy of them."""
        if (height, budget) != self._last[0]:
            self._last = (height, budget), self._propagate_below(height, budget)
        return self._last[1]

    def _propagate_below(self, height: int, budget: int) -> Domains:
        top = height // self.unit
        spans: list[Domain] = [[(0, top - size)] for size in self.sizes]
        if any(size > top for size in self.sizes):
            return Domains([], [], spans, possible=False)
        arcs: list[list[_Arc]] = [[] for _ in spans]
        for pair in self._tight:
            shared, arc = pair.need - top, pair.roomy
            if shared > 0:
                windows = _windows(pair.gaps, shared - pair.second, pair.first - shared)
                arc = _Arc(arc.to, windows, UNBOUNDED)
            if not arc.windows:
                return Domains([], [], spans, possible=False)
            arcs[pair.of].append(arc)
        domains = Domains(self._walls, arcs, spans)
        domains.propagate(range(len(spans)), budget)
        return domains


def _windows(gaps: Sequence[LowHigh], low: int, high: int) -> Domain:
    """The parts of [low, high] outside the open intervals `gaps`."""
    windows: Domain = []
    start = low
    for a, b in gaps:
        if start <= min(a, high):
            windows.append((start, min(a, high)))
        start = max(start, b)
    if start <= high:
        windows.append((start, high))
    return windows


def _reachable_part(source: Domain, windows: Domain, old: Domain) -> Domain:
    """The members of `old` that are a sum of a member of `source` and a member of `windows`."""
    if len(source) > 1 or len(old) > 1:
        return _intersect(old, _add_spans(source, windows, old[0][0], old[-1][1]))
    ((x, y),), ((low, high),) = source, old  # the common case, which needs little work
    reachable: Domain = []
    for a, b in windows:
        first, last = x + a, y + b
        if first > high:
            break
        if last < low:
            continue
        if first < low:
            first = low
        if last > high:
            last = high
        if reachable and first <= reachable[-1][1] + 1:
            reachable[-1] = (reachable[-1][0], last)
        else:
            reachable.append((first, last))
    return reachable


def _add_spans(source: Domain, windows: Domain, low: int, high: int) -> Domain:
    """All sums of a member of `source` and one of `windows`, within [low, high]."""
    sums: Domain = []
    for a, b in windows:
        for x, y in source:
            first, last = max(x + a, low), min(y + b, high)
            if first <= last:
                sums.append((first, last))
    if len(sums) < 2:
        return sums
    sums.sort()
    united = [sums[0]]
    for first, last in sums[1:]:
        if first <= united[-1][1] + 1:
            if last > united[-1][1]:
                united[-1] = (united[-1][0], last)
        else:
            united.append((first, last))
    return (
        united if len(united) <= _MOST_INTERVALS or len(source) == 1 else _fill_narrow_gaps(united)
    )


def _subtract(span: Domain, low: int, high: int) -> Domain:
    """The span without the open interval (low, high)."""
    outside: Domain = []
    for first, last in span:
        if last <= low or first >= high:
            outside.append((first, last))
            continue
        if first <= low:
            outside.append((first, low))
        if last >= high:
            outside.append((high, last))
    return outside


def _fill_narrow_gaps(span: Domain) -> Domain:
    """The span with its narrowest gaps filled, so that `_MOST_INTERVALS` pieces are left."""
    gaps = sorted(range(1, len(span)), key=lambda k: (span[k - 1][1] - span[k][0], k))
    cuts = sorted(gaps[: _MOST_INTERVALS - 1])
    edges = [0, *cuts, len(span)]
    return [(span[a][0], span[b - 1][1]) for a, b in pairwise(edges)]


def _intersect(one: Domain, other: Domain) -> Domain:
    """The intersection of two spans."""
    common: Domain = []
    p = q = 0
    while p < len(one) and q < len(other):
        first = max(one[p][0], other[q][0])
        last = min(one[p][1], other[q][1])
        if first <= last:
            common.append((first, last))
        if one[p][1] < other[q][1]:
            p += 1
        else:
            q += 1
    return common
