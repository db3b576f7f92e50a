"""Lower bounds on the height of any plan of a problem.

They come from sets of buffers that live together; where buffers may overlap, pruning the offsets of
pairs (`domains`) raises them. Knows intervals and bytes. It must not know allocators, and never
looks at a plan.

    live together:  a  b  c  d      permits join a-b and b-c, so {a, b, c} is a component:
                    |--|--|  |      b may lie inside a and c, but a and c still need their own
                                    bytes: at least size(a) + size(c), and size(d) beside them.
                                    If b can share 2 bytes with either, a, b and c need all
                                    their bytes but 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from tflm_planner.memory.domains import Pruner
from tflm_planner.memory.problem import UNBOUNDED, Problem

_MOST_ENUMERATED = 10
"""Members of a component of permits of which all sets are looked at."""

_PRUNED_PAIRS = 30_000
"""Pairs looked at to disprove one height: under 50 ms."""


def live_bytes(problem: Problem) -> list[tuple[int, int]]:
    """The profile without overlaps: (time, bytes live from that time on), at each change."""
    change: dict[int, int] = {}
    for b in problem.buffers:
        change[b.start] = change.get(b.start, 0) + b.size
        change[b.end] = change.get(b.end, 0) - b.size
    profile: list[tuple[int, int]] = []
    total = 0
    for time in sorted(change):
        total += change[time]
        profile.append((time, total))
    return profile


def lower_bound(problem: Problem) -> int:
    """A number of bytes that every legal plan needs, whatever overlaps it uses.

    `live_bound`, raised by `pruned_bound` where there are overlaps.
    """
    if not problem.overlaps:
        return live_bound(problem)
    needs = Needs(problem)
    return pruned_bound(
        Pruner(problem, pairwise_bounds(problem, needs)), live_bound(problem, needs)
    )


def live_bound(problem: Problem, needs: Needs | None = None) -> int:
    """The bytes that the buffers live at one time need, at the worst time.

    At each time the live buffers fall into components that are connected by permits. Different
    components never share a byte, so their needs add up. A component needs at least the bytes of
    any of its sets of buffers that pairwise have no permit; a pair with a permit may stand for one
    member, with its `footprint`. `needs`: those of this problem, if they are known.
    """
    if not problem.overlaps:
        return max((total for _, total in live_bytes(problem)), default=0)
    needs = needs or Needs(problem)
    sizes = [b.size for b in problem.buffers]
    most = [
        (fixed + sum(sizes[i] for i in live), k) for k, (fixed, live) in enumerate(needs.moments)
    ]
    best = 0
    for total, k in sorted(most, reverse=True):
        if total <= best:  # the later entries need no more than this one
            break
        fixed, live = needs.moments[k]
        best = max(best, fixed + needs.of(live))
    return best


def pruned_bound(pruner: Pruner, low: int) -> int:
    """The lowest height from the bound `low` on at which every buffer still has an offset.

    Usually that is `low` itself. Otherwise larger and larger heights are tried, then the last
    interval is bisected. Each disproved height is a proof by itself (see `domains`), so a small
    budget makes the bound lower but never wrong.
    """
    return _least_possible(low, pruner.unit, lambda h: pruner.at(h, _PRUNED_PAIRS).possible)


def chained_bound(problem: Problem, low: int) -> int:
    """The lowest height from the bound `low` on that leaves every buffer an offset, given the
    overlaps that buffers must take there: quicker than `pruned_bound`, and mostly lower.

    Two buffers that live together, and have more bytes than the height, must share memory at a
    distance that is permitted. Along a chain of such pairs the distances add up:

        height 100:   |----- a 60 -----|          b must lie at least 8 below a, and c 8 below b:
                    |----- b 60 -----|            so a lies at 16 or above, and ends at 76
                  |----- c 60 -----|
    """
    sizes = [b.size for b in problem.buffers]
    permitted = [
        (sizes[i] + sizes[j], i, j, min(a for a, _ in free), max(b for _, b in free))
        for (i, j), free in problem.permits.items()
        if i < j
    ]
    ends = (d for free in problem.permits.values() for both in free for d in both)
    finite = [d for d in ends if abs(d) < UNBOUNDED]

    def is_possible(height: int) -> bool:
        steps = [
            step
            for both, i, j, least, most in permitted
            if both > height
            for step in ((i, j, least), (j, i, -most))
        ]
        offsets = [0] * len(sizes)
        for _ in sizes:
            raised = False
            for i, j, distance in steps:
                offset = offsets[i] + distance
                if offset > offsets[j]:
                    if offset + sizes[j] > height:
                        return False
                    offsets[j], raised = offset, True
            if not raised:
                return True
        return False  # a circle of distances that lifts itself

    return _least_possible(low, math.gcd(*sizes, *finite) or 1, is_possible)


def _least_possible(low: int, unit: int, is_possible: Callable[[int], bool]) -> int:
    """The lowest multiple of `unit` from the bound `low` on that is not disproved: ever larger
    heights are tried, then bisected."""
    low = -(-low // unit) * unit
    if is_possible(low):
        return low
    step = unit
    while not is_possible(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while low + unit < high:
        middle = (low + high) // (2 * unit) * unit
        if is_possible(middle):
            high = middle
        else:
            low = middle
    return high


def pairwise_bounds(problem: Problem, needs: Needs | None = None) -> dict[tuple[int, int], int]:
    """(i, j), i < j -> the largest number of bytes that other buffers need while both live,
    counting only buffers with no permit to either.

    There is an entry for every pair with a permit. Those buffers never share a byte with the pair.
    """
    needs = needs or Needs(problem)
    partners = needs.partners
    bounds = {(i, j): 0 for i, j in problem.permits if i < j}
    for fixed, live in needs.moments:
        present = set(live)
        for i in live:
            for j in partners[i]:
                if i < j and j in present:
                    near = {i, j, *partners[i], *partners[j]}
                    rest = [k for k in live if k not in near]
                    bounds[i, j] = max(bounds[i, j], fixed + needs.of(rest))
    return bounds


def footprint(problem: Problem, i: int, j: int) -> int:
    """The smallest number of bytes, gaps included, that buffers i and j can span together.

    Stacked they span size i + size j. At a permitted distance d of j above i they span
    max(size i, d + size j) - min(0, d), which is convex in d and smallest at 0: the permitted
    distance nearest to 0 is best.
    """
    a, b = problem.buffers[i].size, problem.buffers[j].size
    best = a + b
    for low, high in problem.permits.get((i, j), ()):
        distance = min(max(0, low), high)
        best = min(best, max(a, distance + b) - min(0, distance))
    return best


def _linked_live_sets(
    problem: Problem, linked: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, list[int]]]:
    """(bytes of live buffers without permits, live buffers with permits) after each start."""
    buffers = problem.buffers
    starts = sorted(range(len(buffers)), key=lambda i: buffers[i].start)
    plain_ends = sorted((buffers[i].end, i) for i in range(len(buffers)) if i not in linked)
    fixed, cursor, ended = 0, 0, 0
    live: list[int] = []
    while cursor < len(starts):
        time = buffers[starts[cursor]].start
        live = [i for i in live if buffers[i].end > time]
        while cursor < len(starts) and buffers[starts[cursor]].start == time:
            i = starts[cursor]
            if i in linked:
                live.append(i)
            else:
                fixed += buffers[i].size
            cursor += 1
        while ended < len(plain_ends) and plain_ends[ended][0] <= time:
            fixed -= buffers[plain_ends[ended][1]].size
            ended += 1
        yield fixed, live


class Needs:
    """The bytes that sets of buffers that live together need, computed for each component of
    permits and cached."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.partners: dict[int, list[int]] = {}
        for i, j in problem.permits:
            self.partners.setdefault(i, []).append(j)
        self._footprints: dict[tuple[int, int], int] = {}
        for i, j in problem.permits:
            if i < j:
                self._footprints[i, j] = self._footprints[j, i] = footprint(problem, i, j)
        self._known: dict[frozenset[int], int] = {}

    @cached_property
    def moments(self) -> list[tuple[int, list[int]]]:
        """(bytes of live buffers without permits, live buffers with permits) at each start."""
        return list(_linked_live_sets(self.problem, self.partners))

    def at(self, time: int) -> int:
        """The bytes that the buffers live at one time need."""
        fixed, linked = 0, list[int]()
        for i, b in enumerate(self.problem.buffers):
            if b.start <= time < b.end:
                if i in self.partners:
                    linked.append(i)
                else:
                    fixed += b.size
        return fixed + self.of(linked)

    def of(self, live: Sequence[int]) -> int:
        """The bytes that these buffers need: the sum over their components, which share no byte."""
        total = 0
        for component in _components(self.partners, live):
            key = frozenset(component)
            if key not in self._known:
                self._known[key] = self._need_of(sorted(component))
            total += self._known[key]
        return total

    def _need_of(self, component: Sequence[int]) -> int:
        """The bytes that the members of a component need: the most that is found of any set of
        them, whose sizes count without what each pair of the set can share (Bonferroni)."""
        members = {i: self.problem.buffers[i].size for i in component}
        shared = {
            i: {
                j: members[i] + members[j] - self._footprints[i, j]
                for j in self.partners[i]
                if j in members
            }
            for i in members
        }
        return _BestSet(shared, members).most


def _components(partners: Mapping[int, Sequence[int]], live: Sequence[int]) -> Iterator[list[int]]:
    """The live buffers in groups that are connected by permits, in the order of `live`."""
    present = set(live)
    seen: set[int] = set()
    for root in live:
        if root in seen:
            continue
        seen.add(root)
        component = [root]
        for i in component:
            fresh = [j for j in partners[i] if j in present and j not in seen]
            seen.update(fresh)
            component.extend(fresh)
        yield component


class _BestSet:
    """A set of members with many bytes. gains: member that is not decided -> what it adds beside
    those that are taken."""

    def __init__(self, shared: Mapping[int, Mapping[int, int]], sizes: Mapping[int, int]) -> None:
        self._shared, self._gains, self._bytes = shared, {**sizes}, 0

    @property
    def most(self) -> int:
        """The bytes of the best set: of all sets where few members are left undecided, otherwise of
        a set to which the member that adds most is taken again and again."""
        self._decide()
        while len(self._gains) > _MOST_ENUMERATED:
            self._take(max(self._gains, key=lambda i: self._gains[i]))
            self._decide()
        return self._bytes + self._best_of(self._gains)

    def _decide(self) -> None:
        """Take the members that add something whichever others are taken, and drop those that add
        nothing, until none is left of either kind."""
        waiting = [*self._gains]
        while waiting:
            i = waiting.pop()
            if i not in self._gains:
                continue
            gain = self._gains[i]
            undecided = [j for j in self._shared[i] if j in self._gains]
            if gain <= 0:
                del self._gains[i]
            elif gain >= sum(self._shared[i][j] for j in undecided):
                self._take(i)
            else:
                continue
            waiting.extend(undecided)

    def _take(self, i: int) -> None:
        self._bytes += self._gains.pop(i)
        for j, most in self._shared[i].items():
            if j in self._gains:
                self._gains[j] -= most

    def _best_of(self, gains: Mapping[int, int]) -> int:
        """The bytes that the best set of undecided members adds."""
        gaining = {i: gain for i, gain in gains.items() if gain > 0}
        if not gaining:
            return 0
        first, gain = next(iter(gaining.items()))
        del gaining[first]
        beside = {i: bytes_ - self._shared[first].get(i, 0) for i, bytes_ in gaining.items()}
        return max(gain + self._best_of(beside), self._best_of(gaining))
