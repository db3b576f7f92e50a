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
from tflm_planner.memory.allocators.machine_code import Ints, compiled, int64

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
    a, size = arrays, len(arrays.heights)
    offsets = np.full(size, -1, np.int64) if given is None else given.copy()
    first = np.array(order, np.int64)
    position = np.where(offsets >= 0, -1, _FAR)  # what is placed comes before all others
    _climbed(
        a.starts, a.other, a.low, a.high, a.heights, first, np.sort(first), offsets, position,
        bound, rounds, seed & _MASK, *_workspace(a),
    )  # fmt: skip
    return offsets


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
    size = len(a.heights)
    numbers = np.arange(size)
    ranks = np.empty((len(orders) + 1, size), np.int64)
    for rank, order in zip(ranks, (*orders, numbers), strict=True):
        rank[order] = np.arange(len(order))
    offsets, reached = np.full(size, -1, np.int64), np.zeros(len(stages), np.int64)
    position = np.full(size, _FAR, np.int64)
    _climbed_stages(
        a.starts, a.other, a.low, a.high, a.heights, items, ends, ranks, bound, rounds, work,
        offsets, reached, position, *_workspace(a),
    )  # fmt: skip
    return offsets, reached


def _workspace(arrays: Arrays) -> tuple[Ints, Ints]:
    """Room for the intervals that are forbidden to one item."""
    degree = int((arrays.starts[1:] - arrays.starts[:-1]).max(initial=0))
    return np.empty(degree, np.int64), np.empty(degree, np.int64)


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
    offset, moved = int64(0), True
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
    height = int64(0)
    for p in range(order.size):
        k = order[p]
        offsets[k] = _lowest(starts, other, low, high, offsets, position, k, bottoms, tops)
        if offsets[k] + heights[k] > height:
            height = int(offsets[k] + heights[k])
    return height


@compiled
def _drawn(chance: Ints, count: int) -> int:
    """A number below `count`, from a linear congruential generator."""
    chance[0] = (chance[0] * 1103515245 + 12345) & _MASK
    return (chance[0] >> 8) % count


@compiled
def _peak(heights: Ints, offsets: Ints, height: int, movable: Ints, chance: Ints) -> int:
    """One of the movable items that reach the top."""
    count = int64(0)
    for p in range(movable.size):
        k = movable[p]
        if offsets[k] + heights[k] == height:
            count += 1
    pick = _drawn(chance, count)
    for p in range(movable.size):
        k = movable[p]
        if offsets[k] + heights[k] == height:
            if pick == 0:
                return k
            pick -= 1
    return movable[0]


@compiled
def _beneath(
    starts: Ints, other: Ints, rank: Ints, item: int, below: int, chance: Ints
) -> int:  # fmt: skip
    """One of an item's neighbours with a rank from 0 to less than `below`; -1 where there is
    none."""
    count = int64(0)
    for e in range(starts[item], starts[item + 1]):
        if 0 <= rank[other[e]] < below:
            count += 1
    if count == 0:
        return int64(-1)
    pick = _drawn(chance, count)
    for e in range(starts[item], starts[item + 1]):
        if 0 <= rank[other[e]] < below:
            if pick == 0:
                return other[e]
            pick -= 1
    return int64(-1)


@compiled
def _chosen(
    starts: Ints, other: Ints, heights: Ints, offsets: Ints, height: int,
    movable: Ints, position: Ints, chance: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Which place of the order is to move, and where to."""
    item = _peak(heights, offsets, height, movable, chance)
    for _ in range(_drawn(chance, int64(3))):
        lower = _beneath(starts, other, offsets, item, offsets[item], chance)
        if lower < 0 or position[lower] < 0:  # it stays where it is
            break
        item = lower
    at = position[item]
    earlier = _beneath(starts, other, position, item, at, chance)
    if earlier >= 0:
        return at, position[earlier]
    return at, _drawn(chance, movable.size)


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
    at: int, target: int, marks: Ints, changed: Ints, before: Ints, bottoms: Ints, tops: Ints,
) -> int:  # fmt: skip
    """First fit again after a move from `at` to `target`, of those alone that may lie elsewhere
    now: the item itself, neighbours that it changed sides with, and neighbours behind whatever
    did move. marks: of items. changed, before: items, and their offsets before. The
    number of changes; -1 - number as soon as an item reaches `stop`."""
    begin, end = (at, target) if at < target else (target, at)
    waiting, changes = 1, 0
    marks[order[target]] = 1
    for e in range(starts[order[target]], starts[order[target] + 1]):
        if begin <= position[other[e]] <= end and not marks[other[e]]:
            marks[other[e]] = 1
            waiting += 1
    reached = False
    for p in range(begin, order.size):
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
    height = int64(0)
    for p in range(order.size):
        k = order[p]
        if offsets[k] + heights[k] > height:
            height = int(offsets[k] + heights[k])
    return height


@compiled
def _copied(source: Ints, target: Ints) -> None:
    for k in range(source.size):
        target[k] = source[k]


@compiled
def _sorted(items: Ints, keys: Ints) -> None:
    """Sort items by their keys; of equal keys, what comes first stays first."""
    for p in range(items.size):
        item, at = items[p], p
        while at > 0 and keys[items[at - 1]] > keys[item]:
            items[at] = items[at - 1]
            at -= 1
        items[at] = item


@compiled
def _climbed(
    starts: Ints, other: Ints, low: Ints, high: Ints, heights: Ints,
    order: Ints, movable: Ints, offsets: Ints, position: Ints, bound: int, rounds: int, seed: int,
    bottoms: Ints, tops: Ints,
) -> int:  # fmt: skip
    """Climb from an order, which is changed; the height, and in `offsets` the best ones. movable:
    its items, sorted. offsets: of all others, where they stay; position: -1 of those that do."""
    count, size = order.size, heights.size
    chance = np.empty(1, np.int64)
    chance[0] = seed
    for p in range(count):
        position[order[p]] = p
    height = _placed(starts, other, low, high, heights, order, position, offsets, bottoms, tops)
    limit, stall, best = height, 0, height
    best_order, best_offsets = np.empty(count, np.int64), np.empty(size, np.int64)
    _copied(order, best_order)
    _copied(offsets, best_offsets)
    marks, changed, before = (
        np.zeros(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    )  # fmt: skip
    for _ in range(rounds):
        if best <= bound or count < 2:
            break
        shaken = stall >= _STALL
        if shaken:
            _copied(best_order, order)
            for _ in range(1 + _drawn(chance, int64(4))):
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
                at, target, marks, changed, before, bottoms, tops,
            )  # fmt: skip
            if changes < 0:
                for c in range(-1 - changes):
                    offsets[changed[c]] = before[c]
                _move(order, position, target, at)
                stall += 1
                continue
            reached = _top(order, offsets, heights)
            stall = 0 if reached < limit else stall + 1
        limit = reached
        if reached < best:
            best = reached
            _copied(order, best_order)
            _copied(offsets, best_offsets)
    _copied(best_offsets, offsets)
    return best


@compiled
def _climbed_stages(
    starts: Ints, other: Ints, low: Ints, high: Ints, heights: Ints,
    items: Ints, ends: Ints, ranks: Ints, bound: int, rounds: int, work: int,
    offsets: Ints, reached: Ints, position: Ints, bottoms: Ints, tops: Ints,
) -> None:  # fmt: skip
    """See `climb_stages`; what comes out is in `offsets` and `reached`. ranks: of items in each
    order; the last ones are their numbers."""
    last, enough = ranks.shape[0] - 1, bound
    for s in range(ends.size - 1):
        count, conflicts = int64(0), int64(0)
        for p in range(ends[s], ends[s + 1]):
            count += 1 if offsets[items[p]] < 0 else 0
        if count == 0:
            continue
        fresh, order, found = (
            np.empty(count, np.int64), np.empty(count, np.int64), np.empty(heights.size, np.int64)
        )  # fmt: skip
        count = int64(0)
        for p in range(ends[s], ends[s + 1]):
            k = items[p]
            if offsets[k] < 0:
                fresh[count] = k
                count += 1
                conflicts += starts[k + 1] - starts[k] + 1
        _sorted(fresh, ranks[last])
        least = int64(_FAR)
        for r in range(last):
            _copied(fresh, order)
            _sorted(order, ranks[r])
            for p in range(count):
                position[order[p]] = p
            top = _placed(
                starts, other, low, high, heights, order, position, offsets, bottoms, tops
            )
            if top < least:
                least = top
                for p in range(count):
                    found[fresh[p]] = offsets[fresh[p]]
            if least <= enough:
                break
        for p in range(count):
            offsets[fresh[p]] = found[fresh[p]]
        if rounds > 0 and least > enough:
            _copied(fresh, order)
            _sorted(order, found)
            most = work // conflicts + 1
            least = _climbed(
                starts, other, low, high, heights, order, fresh, offsets, position, enough,
                most if most < rounds else rounds, int64(0), bottoms, tops,
            )  # fmt: skip
        for p in range(count):
            position[fresh[p]] = -1
        reached[s] = least
        if least > enough:
            enough = least
