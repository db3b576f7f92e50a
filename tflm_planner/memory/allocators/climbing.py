"""Local search over placement orders, scored by first fit, compiled.

    order    a  b  c  d  e          the item at the peak, or one beneath it, is placed before one
                <-----|             that blocks it; what is placed before both stays where it is

A hill climb in the manner of Vela's: sideways steps are taken, and after a stall the climb
restarts from the best order with a few random swaps. It knows arrays of integers only, and no
clock: the same problem, rounds and seed give the same plan everywhere. It is imported lazily, as
`kernel` is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.kernel import Ints, compiled

_STALL = 60
"""Rounds without progress before a restart."""
_FAR = 1 << 60
_MASK = 0x7FFFFFFF
"""Of what a chance remembers."""


def climb(
    arrays: Arrays,
    order: Sequence[int] | Ints,
    *,
    bound: int = 0,
    rounds: int = 0,
    given: Ints | None = None,
    seed: int = 0,
) -> Ints:
    """The best offsets found in at most `rounds` rounds from a first order; those of the first
    fit in that order at worst. Stops at `bound`. given: offsets of items that stay where they
    are, -1 of all others; those that are in no order have none in the end. seed: of its chances."""
    a = arrays
    given = np.full(len(a.heights), -1, np.int64) if given is None else given
    first = np.asarray(order, np.int64)
    return _climbed(
        a.starts, a.other, a.low, a.high, a.heights, first, given, bound, rounds, seed & _MASK
    )  # fmt: skip


def climb_stages(
    arrays: Arrays,
    stages: Sequence[Sequence[int]],
    orders: Sequence[Ints],
    *,
    bound: int,
    rounds: int,
    work: int,
) -> tuple[Ints, Ints]:
    """Offsets of all items, placed stage after stage, and the height that each stage came to.

    Of a stage those items are placed that no stage before has placed, in the order of `orders`
    in which they come to the least, and then in those that a climb finds, until they lie no higher
    than what was placed before; the first ones than `bound`. rounds: of a climb at most. work:
    rounds times conflicts at most.
    """
    a = arrays
    ends = np.cumsum([0, *map(len, stages)])
    items = np.array([k for stage in stages for k in stage], np.int64)
    ranks = np.empty((len(orders), len(a.heights)), np.int64)
    for rank, order in zip(ranks, orders, strict=True):
        rank[order] = np.arange(len(order))
    return _climbed_stages(
        a.starts, a.other, a.low, a.high, a.heights, items, ends, ranks, bound, rounds, work
    )


@compiled
def _lowest(
    starts: Ints, other: Ints, low: Ints, high: Ints, offsets: Ints,
    position: Ints, item: int, bottoms: Ints, tops: Ints,
) -> int:  # fmt: skip
    """The lowest offset of an item beside those that are placed before it."""
    count, at = 0, position[item]
    for e in range(starts[item], starts[item + 1]):
        if position[other[e]] < at:
            base = offsets[other[e]]
            bottoms[count] = base - high[e]
            tops[count] = base - low[e]
            count += 1
    offset, moved = 0, True
    while moved:  # until no interval holds it; those below are dropped on the way
        moved, left = False, 0
        for e in range(count):
            if tops[e] <= offset:
                continue
            if bottoms[e] < offset:
                offset, moved = tops[e], True
                continue
            bottoms[left], tops[left] = bottoms[e], tops[e]
            left += 1
        count = left
    return offset


@compiled
def _placed(
    starts: Ints, other: Ints, low: Ints, high: Ints, heights: Ints,
    order: Ints, position: Ints, offsets: Ints, bottoms: Ints, tops: Ints,
) -> int:  # fmt: skip
    """First fit of all items of the order; the height."""
    height = 0
    for k in order:
        offsets[k] = _lowest(starts, other, low, high, offsets, position, k, bottoms, tops)
        height = max(height, int(offsets[k] + heights[k]))
    return height


@compiled
def _drawn(chance: Ints, count: int) -> int:
    """A number below `count`, from a linear congruential generator."""
    chance[0] = (chance[0] * 1103515245 + 12345) & _MASK
    return (chance[0] >> 8) % count


@compiled
def _peak(heights: Ints, offsets: Ints, height: int, movable: Ints, chance: Ints) -> int:
    """One of the movable items that reach the top."""
    count = 0
    for k in movable:
        if offsets[k] + heights[k] == height:
            count += 1
    pick = _drawn(chance, count)
    for k in movable:
        if offsets[k] + heights[k] == height:
            if pick == 0:
                return k
            pick -= 1
    return 0


@compiled
def _beneath(
    starts: Ints, other: Ints, rank: Ints, item: int, below: int, chance: Ints
) -> int:  # fmt: skip
    """One of an item's neighbours with a rank from 0 to less than `below`; -1 where there is
    none."""
    count = 0
    for e in range(starts[item], starts[item + 1]):
        if 0 <= rank[other[e]] < below:
            count += 1
    if count == 0:
        return -1
    pick = _drawn(chance, count)
    for e in range(starts[item], starts[item + 1]):
        if 0 <= rank[other[e]] < below:
            if pick == 0:
                return other[e]
            pick -= 1
    return -1


@compiled
def _chosen(
    starts: Ints, other: Ints, heights: Ints, offsets: Ints, height: int,
    movable: Ints, position: Ints, chance: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Which place of the order is to move, and where to."""
    item = _peak(heights, offsets, height, movable, chance)
    for _ in range(_drawn(chance, 3)):
        lower = _beneath(starts, other, offsets, item, offsets[item], chance)
        if lower < 0 or position[lower] < 0:  # it stays where it is
            break
        item = lower
    at = position[item]
    earlier = _beneath(starts, other, position, item, at, chance)
    return at, position[earlier] if earlier >= 0 else _drawn(chance, len(movable))


@compiled
def _move(order: Ints, position: Ints, at: int, target: int) -> None:
    """Move one item of the order; those between make room."""
    item = order[at]
    step = -1 if target < at else 1
    for p in range(at, target, step):
        order[p] = order[p + step]
        position[order[p]] = p
    order[target] = item
    position[item] = target


@compiled
def _replaced(
    starts: Ints, other: Ints, low: Ints, high: Ints, heights: Ints,
    order: Ints, position: Ints, offsets: Ints, stop: int,
    at: int, target: int, state: tuple[Ints, Ints, Ints], bottoms: Ints, tops: Ints,
) -> int:  # fmt: skip
    """First fit again after a move from `at` to `target`, of those alone that may lie elsewhere
    now: the item itself, neighbours that it changed sides with, and neighbours behind whatever
    did move. state: marks of items, and what was changed (items, and their offsets before). The
    number of changes; -1 - number as soon as an item reaches `stop`."""
    marks, changed, before = state
    begin, end = min(at, target), max(at, target)
    waiting, changes = 1, 0
    marks[order[target]] = 1
    for e in range(starts[order[target]], starts[order[target] + 1]):
        if begin <= position[other[e]] <= end and not marks[other[e]]:
            marks[other[e]] = 1
            waiting += 1
    reached = False
    for p in range(begin, len(order)):
        if not waiting:
            break
        k = order[p]
        if not marks[k]:
            continue
        marks[k] = 0
        waiting -= 1
        if reached:  # marks are taken away, nothing else
            continue
        offset = _lowest(starts, other, low, high, offsets, position, k, bottoms, tops)
        if offset == offsets[k]:
            continue
        changed[changes], before[changes] = k, offsets[k]
        changes += 1
        offsets[k] = offset
        if offset + heights[k] >= stop:
            reached = True
            continue
        for e in range(starts[k], starts[k + 1]):
            if p < position[other[e]] < _FAR and not marks[other[e]]:
                marks[other[e]] = 1
                waiting += 1
    return -1 - changes if reached else changes


@compiled
def _top(order: Ints, offsets: Ints, heights: Ints) -> int:
    """The highest end of an item of the order."""
    height = 0
    for k in order:
        height = max(height, int(offsets[k] + heights[k]))
    return height


@compiled
def _climbed(
    starts: Ints, other: Ints, low: Ints, high: Ints, heights: Ints,
    first: Ints, given: Ints, bound: int, rounds: int, seed: int,
) -> Ints:  # fmt: skip
    count, degree = len(first), 0
    order, movable, offsets = first.copy(), np.sort(first), given.copy()
    position, chance = np.full(len(heights), _FAR, np.int64), np.full(1, seed, np.int64)
    for k in range(len(heights)):
        if given[k] >= 0:
            position[k] = -1  # before all others
    for p in range(count):
        position[order[p]] = p
        degree = max(degree, int(starts[order[p] + 1] - starts[order[p]]))
    bottoms, tops = np.empty(degree, np.int64), np.empty(degree, np.int64)
    height = _placed(starts, other, low, high, heights, order, position, offsets, bottoms, tops)
    limit, stall = height, 0
    best, best_order, best_offsets = height, order.copy(), offsets.copy()
    size = len(heights)
    state = np.zeros(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    for _ in range(rounds):
        if best <= bound or count < 2:
            break
        shaken = stall >= _STALL
        if shaken:
            order[:] = best_order
            for _ in range(1 + _drawn(chance, 4)):
                i, j = _drawn(chance, count), _drawn(chance, count)
                order[i], order[j] = order[j], order[i]
            for p in range(count):
                position[order[p]] = p
            stall = 0
        at, target = _chosen(starts, other, heights, offsets, limit, movable, position, chance)
        _move(order, position, at, target)
        if shaken:
            reached = _placed(
                starts, other, low, high, heights, order, position, offsets, bottoms, tops
            )
        else:
            changes = _replaced(
                starts, other, low, high, heights, order, position, offsets, limit + 1,
                at, target, state, bottoms, tops,
            )  # fmt: skip
            if changes < 0:
                for c in range(-1 - changes):
                    offsets[state[1][c]] = state[2][c]
                _move(order, position, target, at)
                stall += 1
                continue
            reached = _top(order, offsets, heights)
            stall = 0 if reached < limit else stall + 1
        limit = reached
        if reached < best:
            best, best_order, best_offsets = reached, order.copy(), offsets.copy()
    return best_offsets


@compiled
def _climbed_stages(
    starts: Ints, other: Ints, low: Ints, high: Ints, heights: Ints,
    items: Ints, ends: Ints, ranks: Ints, bound: int, rounds: int, work: int,
) -> tuple[Ints, Ints]:  # fmt: skip
    size = len(heights)
    offsets, tops = np.full(size, -1, np.int64), np.zeros(len(ends) - 1, np.int64)
    position, enough = np.full(size, _FAR, np.int64), bound
    degree = int((starts[1:] - starts[:-1]).max())
    bottoms, upper = np.empty(degree, np.int64), np.empty(degree, np.int64)
    for s in range(len(ends) - 1):
        listed = items[ends[s] : ends[s + 1]]
        fresh = np.sort(listed[offsets[listed] < 0])
        if len(fresh) == 0:
            continue
        least, best = _FAR, np.empty(len(fresh), np.int64)
        for r in range(len(ranks)):
            order = fresh[np.argsort(ranks[r][fresh])]
            for p in range(len(order)):
                position[order[p]] = p
            top = _placed(
                starts, other, low, high, heights, order, position, offsets, bottoms, upper
            )
            if top < least:
                least, best[:] = top, offsets[fresh]
            if least <= enough:
                break
        offsets[fresh] = best
        if rounds > 0 and least > enough:
            conflicts = int((starts[fresh + 1] - starts[fresh] + 1).sum())
            order = fresh[np.argsort(best, kind="mergesort")]
            offsets[fresh] = -1
            most = min(rounds, work // conflicts + 1)
            offsets = _climbed(starts, other, low, high, heights, order, offsets, enough, most, 0)
            least = (offsets[fresh] + heights[fresh]).max()
        position[fresh] = -1
        tops[s] = least
        enough = tops.max()
    return offsets, tops
