"""Items: the units that allocators place. An item is a group of buffers at fixed distances.

This module knows intervals and bytes. It must not know TFLite, nor how offsets are searched.

    a  |######|                 With the alias a-b taken, a and b are one item. It conflicts with c
    b         |######|          wherever one of its buffers does: offset c - offset ab must lie
    c      |#####|              outside the open intervals that a and b forbid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tflm_planner.memory.problem import Overlap, Plan, Problem


@dataclass(frozen=True)
class Items:
    """A problem in which some aliases are bound, so that the offsets of items determine those of
    the buffers. Made by `bind` and `choose_all`."""

    problem: Problem
    members: tuple[tuple[int, ...], ...]
    """The buffers of each item, in the problem's order."""
    owner: tuple[int, ...]
    """The item of each buffer."""
    shift: tuple[int, ...]
    """Bytes from the offset of each buffer's item to the buffer; the lowest buffer of an item is at
    0."""
    aliases: tuple[Overlap, ...]
    """The aliases that are bound."""
    heights: tuple[int, ...] = field(repr=False, compare=False)
    """Bytes from each item's offset to its top."""

    @staticmethod
    def of(
        problem: Problem, members: tuple[tuple[int, ...], ...],
        owner: tuple[int, ...], shift: tuple[int, ...], aliases: tuple[Overlap, ...],
    ) -> Items:  # fmt: skip
        """The items with these members at these distances."""
        tops = [up + b.size for up, b in zip(shift, problem.buffers, strict=True)]
        heights = tuple(max(tops[i] for i in m) for m in members)
        return Items(problem, members, owner, shift, aliases, heights)

    def __len__(self) -> int:
        return len(self.members)

    def plan(self, offsets: Sequence[int]) -> Plan:
        """The plan of the buffers that follows from the offsets of the items."""
        return Plan(tuple(offsets[k] + s for k, s in zip(self.owner, self.shift, strict=True)))


def spans_of(items: Items) -> list[tuple[int, int]]:
    """The life span of each item, from its first start to its last end."""
    buffers = items.problem.buffers
    return [
        (min(buffers[i].start for i in m), max(buffers[i].end for i in m)) for m in items.members
    ]


def areas_of(items: Items) -> list[int]:
    """For each item the sum of bytes times steps of its buffers. Bytes that two of its buffers
    share count twice."""
    areas = [b.size * (b.end - b.start) for b in items.problem.buffers]
    return [sum(areas[i] for i in m) for m in items.members]


def isolate(items: Items) -> Items:
    """The same items, where only the bound aliases and the overlaps with unbounded distance are
    permitted.

    Pairs then have a single forbidden interval, which an exact search can exhaust.
    """
    bound = set(items.aliases)
    overlaps = tuple(o for o in items.problem.overlaps if not o.is_alias or o in bound)
    return replace(items, problem=items.problem.permitting(overlaps))


def without_aliases(problem: Problem) -> Problem:
    """The same problem without any alias; overlaps with unbounded distance are kept."""
    return problem.permitting(tuple(o for o in problem.overlaps if not o.is_alias))


def bind(problem: Problem, aliases: Iterable[Overlap]) -> Items:
    """Items of a problem with these aliases taken; an alias that contradicts an earlier one is
    dropped.

    An alias is dropped when it would place two buffers of a group so that they share bytes at a
    time when both live and no permit allows that distance.
    """
    aliases = tuple(aliases)
    if not aliases:
        return _apart(problem)
    groups = _Groups(problem)
    taken = tuple(o for o in aliases if groups.join(o))
    return groups.items(taken)


def _apart(problem: Problem) -> Items:
    """Each buffer is an item."""
    count = len(problem.buffers)
    members, sizes = tuple((i,) for i in range(count)), tuple(b.size for b in problem.buffers)
    return Items(problem, members, tuple(range(count)), (0,) * count, (), sizes)


def choose_all(problem: Problem, first: Sequence[Overlap] = ()) -> Items:
    """Items with a maximal consistent set of aliases: first those of `first`, then the others in
    order of the bytes that they save, most first."""
    preferred = set(first)
    rest = sorted(
        (o for o in problem.overlaps if o.is_alias and o not in preferred),
        key=lambda o: (-shared_bytes(problem, o), o.first, o.second, o.low),
    )
    return bind(problem, (*first, *rest))


def taken_aliases(problem: Problem, plan: Plan) -> list[Overlap]:
    """The aliases of the problem that a plan uses."""
    at = plan.offsets
    return [o for o in problem.overlaps if o.is_alias and at[o.second] - at[o.first] == o.low]


def shared_bytes(problem: Problem, alias: Overlap) -> int:
    """The bytes that both buffers of an alias occupy when it is taken."""
    a, b = problem.buffers[alias.first].size, problem.buffers[alias.second].size
    return max(0, min(a, alias.low + b) - max(0, alias.low))


def alias_sets(problem: Problem, limit: int) -> tuple[list[Items], bool]:
    """At most `limit` different consistent sets of aliases, and whether these are all.

    The first set is a maximal consistent one, the second is empty. Then, for each alias that the
    first set lacks, comes a maximal set that has it. Then, if there are few aliases, comes every
    subset.
    """
    aliases = [o for o in problem.overlaps if o.is_alias]
    full = choose_all(problem)
    distinct: dict[tuple[tuple[int, ...], tuple[int, ...]], Items] = {}

    def keep(items: Items) -> None:
        if len(distinct) < limit:
            distinct.setdefault((items.owner, items.shift), items)

    keep(full)
    keep(bind(problem, ()))
    for left_out in sorted(set(aliases) - set(full.aliases), key=aliases.index):
        keep(choose_all(problem, (left_out,)))
    if 1 << len(aliases) > 4 * limit:
        return list(distinct.values()), False
    for mask in range(1 << len(aliases)):
        subset = [o for k, o in enumerate(aliases) if mask >> k & 1]
        items = bind(problem, subset)
        if len(distinct) >= limit:
            return list(distinct.values()), False
        keep(items)
    return list(distinct.values()), True


def maximal_live_sets(items: Items) -> Iterator[list[int]]:
    """Sets of buffers that live together, without those that an earlier or later set contains."""
    buffers = items.problem.buffers
    starts = sorted(range(len(buffers)), key=lambda i: (buffers[i].start, i))
    ends = sorted(range(len(buffers)), key=lambda i: (buffers[i].end, i))
    live: dict[int, None] = {}
    cursor, has_grown = 0, False
    for i in ends:
        while cursor < len(starts) and buffers[starts[cursor]].start < buffers[i].end:
            live[starts[cursor]] = None
            cursor, has_grown = cursor + 1, True
        if has_grown:
            yield list(live)
            has_grown = False
        del live[i]


def windows(items: Items, live: Sequence[int]) -> dict[int, tuple[int, int, int]]:
    """Item -> (bottom, top, bytes used) of its buffers in `live`, relative to the item's offset."""
    stretches_of: dict[int, list[tuple[int, int]]] = {}
    for i in live:
        low = items.shift[i]
        stretches_of.setdefault(items.owner[i], []).append(
            (low, low + items.problem.buffers[i].size)
        )
    used_windows: dict[int, tuple[int, int, int]] = {}
    for k, stretches in stretches_of.items():
        used, top = 0, 0
        for low, high in sorted(stretches):
            used += max(0, high - max(low, top))
            top = max(top, high)
        used_windows[k] = (min(stretches)[0], top, used)
    return used_windows


def heaviest(items: Items) -> int:
    """The largest number of bytes that items use at one time: a lower bound if no overlap has
    unbounded distance."""
    return max(
        (
            sum(used for _, _, used in windows(items, live).values())
            for live in maximal_live_sets(items)
        ),
        default=0,
    )


class _Groups:
    """Union-find of buffers with distances: `joint` is each buffer's group, `shift` its
    distance."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        count = len(problem.buffers)
        self.joint = list(range(count))
        self.shift = [0] * count
        self.members: dict[int, list[int]] = {i: [i] for i in range(count)}

    def join(self, alias: Overlap) -> bool:
        """Merge the groups of an alias, unless two buffers of the merged group would collide. The
        smaller group is added to the larger."""
        i, j, distance = alias.first, alias.second, alias.low
        a, b = self.joint[i], self.joint[j]
        if a == b:
            return self.shift[j] - self.shift[i] == distance
        if len(self.members[a]) < len(self.members[b]):
            i, j, distance, a, b = j, i, -distance, b, a
        move = self.shift[i] + distance - self.shift[j]
        if not self._fits(a, b, move):
            return False
        for m in self.members[b]:
            self.joint[m] = a
            self.shift[m] += move
        self.members[a].extend(self.members.pop(b))
        return True

    def _fits(self, a: int, b: int, move: int) -> bool:
        """Whether group b can be merged into group a when b's shifts grow by `move`."""
        buffers, problem = self.problem.buffers, self.problem
        for m in self.members[b]:
            low = self.shift[m] + move
            for near in problem.neighbours[m]:
                distance = self.shift[near] - low
                if (
                    self.joint[near] == a
                    and -buffers[near].size < distance < buffers[m].size
                    and not problem.may_share(m, near, distance)
                ):
                    return False
        return True

    def items(self, aliases: tuple[Overlap, ...]) -> Items:
        groups = sorted(sorted(m) for m in self.members.values())
        owner, shift = [0] * len(self.joint), [0] * len(self.joint)
        for k, group in enumerate(groups):
            bottom = min(self.shift[i] for i in group)
            for i in group:
                owner[i], shift[i] = k, self.shift[i] - bottom
        members = tuple(map(tuple, groups))
        return Items.of(self.problem, members, tuple(owner), tuple(shift), aliases)
