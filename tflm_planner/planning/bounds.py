"""How low any plan of a problem can be: lower bounds from sets of buffers that are live together.

Knows intervals and bytes. It must not know allocators, and never looks at a plan.

    live together:  a  b  c  d      permits join a-b and b-c, so {a, b, c} is a component:
                    |--|--|  |      b may lie inside a and c, but a and c still need their own
                                    bytes: at least size(a) + size(c), and size(d) beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tflm_planner.planning.problem import Problem

_EXACT = 10
"""Largest component of permits that is bounded by enumeration."""


def live_bytes(problem: Problem) -> list[tuple[int, int]]:
    """The profile without overlaps: (time, bytes live from then on), at each change."""
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
    """Bytes that every legal plan needs, whatever overlaps it takes.

    At each time the live buffers fall into components joined by permits. Different components
    never share a byte, so their needs add up. A component needs the heaviest set of its buffers
    (or pairs of them, in their smallest footprint) that pairwise have no permit.
    """
    if not problem.overlaps:
        return max((total for _, total in live_bytes(problem)), default=0)
    partners: dict[int, list[int]] = {}
    for i, j in problem.permits:
        partners.setdefault(i, []).append(j)
    footprints = {pair: footprint(problem, *pair) for pair in problem.permits}
    need: dict[frozenset[int], int] = {}
    best = 0
    for fixed, live in _linked_live_sets(problem, partners):
        total = fixed
        for component in _components(partners, live):
            key = frozenset(component)
            if key not in need:
                need[key] = _component_need(problem, component, footprints)
            total += need[key]
        best = max(best, total)
    return best


def footprint(problem: Problem, i: int, j: int) -> int:
    """The fewest bytes, gaps included, that buffers i and j span over all they may do.

    Stacked they need size i + size j. At a permitted distance d of j above i they span
    max(size i, d + size j) - min(0, d), which is convex in d and least at 0: the permitted
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


def _component_need(
    problem: Problem, component: Sequence[int], footprints: dict[tuple[int, int], int]
) -> int:
    if len(component) > _EXACT:
        return _greedy_need(problem, component)
    best = 0

    def take(left: frozenset[int], weight: int) -> None:
        """Branch over what becomes of the first buffer left: alone, in a pair, or not counted."""
        nonlocal best
        if not left:
            best = max(best, weight)
            return
        i = min(left)
        friends = {j for j in left if (i, j) in footprints}
        rest = left - {i}
        take(rest - friends, weight + problem.buffers[i].size)
        if not friends:
            return
        take(rest, weight)
        for j in sorted(friends):
            beside = {k for k in rest if (j, k) in footprints}
            take(rest - friends - beside, weight + footprints[i, j])

    take(frozenset(component), 0)
    return best


def _greedy_need(problem: Problem, component: Sequence[int]) -> int:
    """Weight of a set of mutually unpermitted buffers, largest first: low, but never too high."""
    permits, chosen = problem.permits, list[int]()
    for i in sorted(component, key=lambda i: (-problem.buffers[i].size, i)):
        if all((i, j) not in permits for j in chosen):
            chosen.append(i)
    return sum(problem.buffers[i].size for i in chosen)


def crowds(problem: Problem) -> dict[tuple[int, int], int]:
    """(i, j) with i < j -> the most bytes that live buffers with no permit to either need beside
    the pair, while both live; for every pair that has a permit."""
    partners = _partners(problem)
    footprints = {pair: footprint(problem, *pair) for pair in problem.permits}
    need: dict[frozenset[int], int] = {}
    found = {(i, j): 0 for i, j in problem.permits if i < j}
    for fixed, live in _linked_live_sets(problem, partners):
        present = set(live)
        for i in live:
            for j in partners[i]:
                if i < j and j in present:
                    near = {i, j, *partners[i], *partners[j]}
                    rest = [k for k in live if k not in near]
                    total = fixed
                    for component in _components(partners, rest):
                        key = frozenset(component)
                        if key not in need:
                            need[key] = _component_need(problem, component, footprints)
                        total += need[key]
                    found[i, j] = max(found[i, j], total)
    return found


def _partners(problem: Problem) -> dict[int, list[int]]:
    partners: dict[int, list[int]] = {}
    for i, j in problem.permits:
        partners.setdefault(i, []).append(j)
    return partners
