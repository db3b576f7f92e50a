"""The climb of `local`, compiled: for searches that plan hundreds of candidates.

    order    a  b  c  d  e          the item at the peak, or one beneath it, is placed before one
                <-----|             that blocks it; what is placed before both stays where it is

It knows arrays of integers only, and no clock: the same problem and rounds give the same plan
everywhere. It is imported lazily, as `kernel` is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflm_planner.planning.allocators.arrays import Arrays
from tflm_planner.planning.allocators.kernel import Ints, compiled

_STALL = 60
"""Rounds without progress before a restart."""
_FAR = 1 << 60


def climb(
    arrays: Arrays,
    order: Sequence[int] | Ints,
    *,
    bound: int = 0,
    rounds: int = 0,
    given: Ints | None = None,
) -> Ints:
    """The best offsets found in at most `rounds` rounds from a first order; those of the first
    fit in that order at worst. Stops at `bound`. given: offsets of items that stay where they
    are, -1 of all others; those that are in no order have none in the end."""
    a = arrays
    given = np.full(len(a.heights), -1, np.int64) if given is None else given
    first = np.asarray(order, np.int64)
    return _climbed(a.starts, a.other, a.low, a.high, a.heights, first, given, bound, rounds)


@compiled
def _placed(
    starts: Ints, other: Ints, low: Ints, high: Ints, heights: Ints,
    order: Ints, begin: int, offsets: Ints, stop: int, bottoms: Ints, tops: Ints,
) -> int:  # fmt: skip
    """First fit of the items from `begin` on; those before have offsets, all others -1. The
    height, or `stop` as soon as that is reached."""
    height = 0
    for p in range(begin):
        height = max(height, int(offsets[order[p]] + heights[order[p]]))
    for p in range(begin, len(order)):
        k = order[p]
        count = 0
        for e in range(starts[k], starts[k + 1]):
            base = offsets[other[e]]
            if base >= 0:
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
        offsets[k] = offset
        height = max(height, int(offset + heights[k]))
        if height >= stop:
            return stop
    return height


@compiled
def _drawn(chance: Ints, count: int) -> int:
    """A number below `count`, from a linear congruential generator."""
    chance[0] = (chance[0] * 1103515245 + 12345) & 0x7FFFFFFF
    return (chance[0] >> 8) % count


@compiled
def _peak(heights: Ints, offsets: Ints, height: int, position: Ints, chance: Ints) -> int:
    """One of the items of the order that reach the top."""
    count = 0
    for k in range(len(heights)):
        if position[k] < _FAR and offsets[k] + heights[k] == height:
            count += 1
    pick = _drawn(chance, count)
    for k in range(len(heights)):
        if position[k] < _FAR and offsets[k] + heights[k] == height:
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
def _moved(
    starts: Ints, other: Ints, heights: Ints, offsets: Ints, height: int,
    order: Ints, position: Ints, chance: Ints,
) -> int:  # fmt: skip
    """Move one item forward in `order`; the first place that changed."""
    for p in range(len(order)):
        position[order[p]] = p
    item = _peak(heights, offsets, height, position, chance)
    for _ in range(_drawn(chance, 3)):
        lower = _beneath(starts, other, offsets, item, offsets[item], chance)
        if lower < 0 or position[lower] == _FAR:  # it stays where it is
            break
        item = lower
    at = position[item]
    earlier = _beneath(starts, other, position, item, at, chance)
    target = position[earlier] if earlier >= 0 else _drawn(chance, len(order))
    step = -1 if target < at else 1
    for p in range(at, target, step):
        order[p] = order[p + step]
    order[target] = item
    return min(at, target)


@compiled
def _climbed(
    starts: Ints, other: Ints, low: Ints, high: Ints, heights: Ints,
    first: Ints, given: Ints, bound: int, rounds: int,
) -> Ints:  # fmt: skip
    count = len(first)
    bottoms, tops = np.empty(len(other) + 1, np.int64), np.empty(len(other) + 1, np.int64)
    position, chance = np.full(len(heights), _FAR, np.int64), np.zeros(1, np.int64)
    order, offsets = first.copy(), given.copy()
    height = _placed(starts, other, low, high, heights, order, 0, offsets, _FAR, bottoms, tops)
    actual, limit, stall = height, height, 0
    best, best_order, best_offsets = height, order.copy(), offsets.copy()
    for _ in range(rounds):
        if best <= bound or count < 2:
            break
        shaken = stall >= _STALL
        if shaken:
            order[:] = best_order
            for _ in range(1 + _drawn(chance, 4)):
                i, j = _drawn(chance, count), _drawn(chance, count)
                order[i], order[j] = order[j], order[i]
            limit, stall = _FAR, 0
        trial, made = order.copy(), offsets.copy()
        begin = _moved(starts, other, heights, offsets, actual, trial, position, chance)
        if shaken:
            begin = 0
        for p in range(begin, count):
            made[trial[p]] = -1
        stop = limit + 1 if limit < _FAR else _FAR
        reached = _placed(
            starts, other, low, high, heights, trial, begin, made, stop, bottoms, tops
        )
        if reached >= stop:
            stall += 1
            continue
        stall = 0 if reached < limit else stall + 1
        order, offsets, actual, limit = trial, made, reached, reached
        if reached < best:
            best, best_order, best_offsets = reached, order.copy(), offsets.copy()
    return best_offsets
