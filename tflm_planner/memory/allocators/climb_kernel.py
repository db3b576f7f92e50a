"""The compiled hill climb over placement orders; `climbing` calls it.

    order    a  b  c  d  e          the item at the peak, or an item that supports it, is placed
                <-----|             before a neighbour; the items before both keep their offsets

It knows arrays of integers only, and no clock. All compiled functions of the climb stay in this
file, because numba compiles a function anew when its own file changes, but not when the file of a
function that it calls does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tflm_planner.memory.allocators.machine_code import (
    Indices,
    Ints,
    compiled,
    compiled_in_place,
    inlined,
    int64,
    uint64,
)

_ROUNDS_TO_RESTART = 30
"""After this many rounds without progress the climb restarts. Twenty problems of large networks in
tiles and loops end 9.3 % above the largest sum of live bytes; with 15, 60, 120 and 240 rounds they
end 9.8, 10.3, 10.9 and 11.5 % above it. With twelve times the total rounds, 30 to 240 are equal
within 0.2 %. Sixty random problems end 0.06 % above it with either number."""
_SUPPORT_DEPTH = 4
"""Largest number of items in the chain that a move follows: one at the peak, one that supports it,
and so on. The same twenty problems with 1, 2, 3, 6 and 10 items, at 60 rounds: 13.1, 10.4, 10.5,
10.1 and 10.7 % (with 4: 10.3 %). Following any lower neighbour instead of a support: 11.5 %."""
FAR = 1 << 60
"""Larger than every position in an order and every height."""
ONE = uint64(1)
"""An index plus 1 is an index; plus a signed integer, a float."""
RANDOM_MASK = 0x7FFFFFFF
"""Bits of the random state."""


class Conflicts(NamedTuple):
    """The conflicts of items: the first fields of `Arrays`."""

    starts: Indices
    other: Indices
    low: Ints
    high: Ints
    heights: Ints


class PlacedItems(NamedTuple):
    """An order of items and the offsets that first fit gives them; changed in place."""

    order: Indices  # the items that may move, in the order in which they are placed
    position: Ints  # item -> its place in the order; -1: placed before all; FAR: not placed yet
    offsets: Ints  # item -> offset, or -1
    tops: Ints  # item of the order -> its end; any other item -> -1


class Blocked(NamedTuple):
    """Work space for the open intervals of offsets that are forbidden to one item."""

    bottoms: Ints
    tops: Ints


class Replaced(NamedTuple):
    """The offsets that a move changes, kept so that the move can be undone."""

    marks: Ints  # place in the order -> 1 while its item waits to be placed again
    items: Indices  # the items that changed, one after the other
    offsets: Ints  # and their offsets before


@inlined
def _lowest_offset(
    conflicts: Conflicts, placement: PlacedItems, item: int, blocked: Blocked
) -> int:
    """The lowest offset of an item that is free of conflicts with the items placed before it."""
    bottoms, tops, offsets = blocked.bottoms, blocked.tops, placement.offsets
    count, at = 0, placement.position[item]
    for e in range(conflicts.starts[item], conflicts.starts[item + ONE]):
        other = conflicts.other[e]
        if placement.position[other] < at:
            bottoms[count] = offsets[other] - conflicts.high[e]
            tops[count] = offsets[other] - conflicts.low[e]
            count += 1
    offset, raised = int64(0), True
    while raised:  # until no interval contains the offset; intervals below it are dropped
        raised, left = False, 0
        for e in range(count):
            if tops[e] <= offset:
                continue
            if bottoms[e] < offset:
                offset, raised = tops[e], True
                continue
            bottoms[left], tops[left] = bottoms[e], tops[e]
            left += 1
        count = left
    return offset


@compiled_in_place
def place_all(conflicts: Conflicts, placement: PlacedItems, blocked: Blocked) -> int:
    """Place all items of the order by first fit; returns the height."""
    for p in range(placement.order.size):
        item = placement.order[p]
        placement.position[item] = p
    for p in range(placement.order.size):
        item = placement.order[p]
        placement.offsets[item] = _lowest_offset(conflicts, placement, item, blocked)
        placement.tops[item] = placement.offsets[item] + conflicts.heights[item]
    return _height(placement.tops)


@compiled_in_place
def _height(tops: Ints) -> int:
    """The highest end of an item of the order."""
    height = int64(0)
    for item in range(tops.size):
        height = tops[item] if tops[item] > height else height
    return height


@compiled_in_place
def _draw(random_state: Ints, count: int) -> int:
    """A number below `count`, from a linear congruential generator."""
    random_state[0] = (random_state[0] * 1103515245 + 12345) & RANDOM_MASK
    return (random_state[0] >> 8) % count


@compiled_in_place
def _draw_peak_item(tops: Ints, height: int, random_state: Ints) -> int:
    """A random one of the items of the order that reach the top."""
    count = int64(0)
    for item in range(tops.size):
        count += 1 if tops[item] == height else 0
    pick = _draw(random_state, count)
    for item in range(tops.size):
        if tops[item] == height:
            if pick == 0:
                return uint64(item)
            pick -= 1
    return uint64(0)


@compiled_in_place
def _draw_support(
    conflicts: Conflicts, placement: PlacedItems, item: int, random_state: Ints
) -> int:
    """A random one of the items of the order that support this item (it rests on them, so that it
    cannot lie lower); the item itself if there is none."""
    offsets, position = placement.offsets, placement.position
    count, support = int64(0), item
    for e in range(conflicts.starts[item], conflicts.starts[item + ONE]):
        other = conflicts.other[e]
        rests = offsets[other] - conflicts.low[e] == offsets[item]
        if rests and 0 <= position[other] < position[item]:
            count += 1
            if _draw(random_state, count) == 0:
                support = other
    return support


@compiled_in_place
def _draw_earlier_neighbour(
    conflicts: Conflicts, position: Ints, item: int, random_state: Ints
) -> int:
    """The position of a random neighbour of an item that is placed before it and may move; -1 if
    there is none."""
    count, at = int64(0), position[item]
    for e in range(conflicts.starts[item], conflicts.starts[item + ONE]):
        if 0 <= position[conflicts.other[e]] < at:
            count += 1
    if count == 0:
        return int64(-1)
    pick = _draw(random_state, count)
    for e in range(conflicts.starts[item], conflicts.starts[item + ONE]):
        if 0 <= position[conflicts.other[e]] < at:
            if pick == 0:
                return int(position[conflicts.other[e]])
            pick -= 1
    return int64(-1)


@compiled_in_place
def _draw_move(
    conflicts: Conflicts, placement: PlacedItems, height: int, random_state: Ints
) -> tuple[int, int]:
    """Draw a move (from, to): take an item at the peak, follow its supports downwards for a random
    number of steps, and place the item reached before one of its neighbours."""
    item = _draw_peak_item(placement.tops, height, random_state)
    for _ in range(_draw(random_state, int64(_SUPPORT_DEPTH))):
        support = _draw_support(conflicts, placement, item, random_state)
        if support == item:
            break
        item = support
    at = placement.position[item]
    earlier = _draw_earlier_neighbour(conflicts, placement.position, item, random_state)
    if earlier >= 0:
        return at, earlier
    return at, _draw(random_state, placement.order.size)


@compiled_in_place
def _move(placement: PlacedItems, at: int, target: int) -> None:
    """Move one item of the order to another position; the items between shift by one."""
    order, position = placement.order, placement.position
    item = order[at]
    step = -1 if target < at else 1
    for p in range(at, target, step):
        order[p] = order[p + step]
        position[order[p]] = p
    order[target] = item
    position[item] = target


@compiled_in_place
def _place_after_move(
    conflicts: Conflicts, placement: PlacedItems, stop: int,
    at: int, target: int, replaced: Replaced, blocked: Blocked,
) -> int:  # fmt: skip
    """Repeat first fit after a move from `at` to `target`, but only for items whose offset may
    change: the moved item, and those for which an item that they conflict with has gone from below
    their offset, or come to where they lie. Returns the number of changes n, or -1 - n as soon as
    an item reaches `stop`."""
    starts, other, marks = conflicts.starts, conflicts.other, replaced.marks
    low, high = conflicts.low, conflicts.high
    order, position, offsets = placement.order, placement.position, placement.offsets
    moved, waiting, changes = order[target], 1, 0
    marks[target] = 1
    for e in range(starts[moved], starts[moved + ONE]):
        near = other[e]
        place = position[near]
        was_below = offsets[moved] + low[e] < offsets[near]
        if was_below and at <= place < target and not marks[place]:  # it gave way to the moved item
            marks[place] = 1
            waiting += 1
    too_high = False
    for p in range(at if at < target else target, order.size):
        if not waiting:
            break
        if not marks[p]:
            continue
        item, marks[p] = order[p], 0
        waiting -= 1
        if too_high:  # only clear the remaining marks
            continue
        before, offset = offsets[item], _lowest_offset(conflicts, placement, item, blocked)
        # Items in places up to this one were not placed after it before: the moved item came from
        # behind them, so that they did not give way to it.
        last_new = at if item == moved else p
        if offset != before:
            replaced.items[changes], replaced.offsets[changes] = item, before
            changes += 1
            offsets[item], placement.tops[item] = offset, offset + conflicts.heights[item]
            if placement.tops[item] >= stop:
                too_high = True
                continue
        elif last_new <= p:
            continue
        for e in range(starts[item], starts[item + ONE]):
            near = other[e]
            place = position[near]
            if p < place < FAR and not marks[place]:
                is_hit = offset + low[e] < offsets[near] < offset + high[e]
                was_below = before + low[e] < offsets[near] and place > last_new
                if is_hit or (was_below and offset != before):
                    marks[place] = 1
                    waiting += 1
    return -1 - changes if too_high else changes


@compiled_in_place
def try_move(
    conflicts: Conflicts, placement: PlacedItems, height: int,
    at: int, target: int, replaced: Replaced, blocked: Blocked,
) -> int:  # fmt: skip
    """The height after a move; -1 if it would exceed `height`: then the move has been undone."""
    _move(placement, at, target)
    changes = _place_after_move(conflicts, placement, height + 1, at, target, replaced, blocked)
    if changes < 0:
        for c in range(-1 - changes):
            item = replaced.items[c]
            placement.offsets[item] = replaced.offsets[c]
            placement.tops[item] = replaced.offsets[c] + conflicts.heights[item]
        _move(placement, target, at)
        return int64(-1)
    return _height(placement.tops)


@compiled_in_place
def _copy(source: Ints | Indices, target: Ints | Indices) -> None:
    for k in range(source.size):
        target[k] = source[k]


@compiled_in_place
def _sort_by(items: Indices, keys: Ints) -> None:
    """Sort items by their keys; the sort is stable."""
    for p in range(items.size):
        item, at = items[p], p
        while at > 0 and keys[items[at - 1]] > keys[item]:
            items[at] = items[at - 1]
            at -= 1
        items[at] = item


@compiled_in_place
def _swap_some(placement: PlacedItems, random_state: Ints) -> None:
    """Swap one to four pairs of items of the order."""
    order = placement.order
    for _ in range(1 + _draw(random_state, int64(4))):
        i, j = _draw(random_state, order.size), _draw(random_state, order.size)
        order[i], order[j] = order[j], order[i]
    for p in range(order.size):
        placement.position[order[p]] = p


class ClimbWorkspace(NamedTuple):
    """The arrays that a climb works on: the best order and its offsets, what a move changes, random
    state."""

    order: Indices
    offsets: Ints
    replaced: Replaced
    random_state: Ints


@compiled
def climb_order(
    conflicts: Conflicts, placement: PlacedItems,
    bound: int, rounds: int, seed: int, blocked: Blocked,
) -> int:  # fmt: skip
    """Climb from the placement's order. Returns the lowest height; the placement then has the
    offsets of that height, and its order has changed. Items that are not in the order keep
    their offsets."""
    size, random_state = conflicts.heights.size, np.empty(1, np.int64)
    random_state[0] = seed
    replaced = Replaced(
        np.zeros(size, np.int64), np.empty(size, np.uint64), np.empty(size, np.int64)
    )
    best_order = np.empty(placement.order.size, np.uint64)
    workspace = ClimbWorkspace(best_order, np.empty(size, np.int64), replaced, random_state)
    return _climb(conflicts, placement, bound, rounds, blocked, workspace)


@compiled_in_place
def _climb(
    conflicts: Conflicts, placement: PlacedItems,
    bound: int, rounds: int, blocked: Blocked, workspace: ClimbWorkspace,
) -> int:  # fmt: skip
    """See `climb_order`."""
    random_state = workspace.random_state
    height = place_all(conflicts, placement, blocked)
    best, stalled = height, 0
    _copy(placement.order, workspace.order)
    _copy(placement.offsets, workspace.offsets)
    for _ in range(rounds):
        if best <= bound or placement.order.size < 2:
            break
        restarts = stalled >= _ROUNDS_TO_RESTART
        if restarts:
            if height > best:
                _copy(workspace.order, placement.order)
            _swap_some(placement, random_state)
            stalled = 0
        at, target = _draw_move(conflicts, placement, height, random_state)
        if restarts:
            _move(placement, at, target)
            height = place_all(conflicts, placement, blocked)
        else:
            reached = try_move(
                conflicts, placement, height, at, target, workspace.replaced, blocked
            )
            stalled = 0 if 0 <= reached < height else stalled + 1
            if reached < 0:
                continue
            height = reached
        if height < best:
            best = height
            _copy(placement.order, workspace.order)
            _copy(placement.offsets, workspace.offsets)
    _copy(workspace.offsets, placement.offsets)
    return best


@compiled
def _list_unplaced(placement: PlacedItems, begin: int, end: int, numbers: Ints) -> Indices:
    """The items in order[begin : end] that have no offset yet, sorted by `numbers`."""
    count = int64(0)
    for p in range(begin, end):
        count += 1 if placement.offsets[placement.order[p]] < 0 else 0
    unplaced = np.empty(count, np.uint64)
    count = int64(0)
    for p in range(begin, end):
        if placement.offsets[placement.order[p]] < 0:
            unplaced[count] = placement.order[p]
            count += 1
    _sort_by(unplaced, numbers)
    return unplaced


@compiled
def _place_in_best_order(
    conflicts: Conflicts, stage: PlacedItems, items: Indices, ranks: Ints, enough: int,
    best_offsets: Ints, blocked: Blocked,
) -> int:  # fmt: skip
    """Place a stage's items by first fit in each order, until one height is at most `enough`.
    Returns the lowest height; the offsets of that height are then in `best_offsets` and in the
    placement."""
    least = int64(FAR)
    for r in range(ranks.shape[0] - 1):
        _copy(items, stage.order)
        _sort_by(stage.order, ranks[r])
        height = place_all(conflicts, stage, blocked)
        if height < least:
            least = height
            for p in range(items.size):
                best_offsets[items[p]] = stage.offsets[items[p]]
        if least <= enough:
            break
    for p in range(items.size):
        stage.offsets[items[p]] = best_offsets[items[p]]
    return least


@compiled
def place_stages(
    conflicts: Conflicts, placement: PlacedItems, ends: Ints, ranks: Ints,
    bound: int, rounds: int, work: int, heights: Ints, blocked: Blocked,
) -> None:  # fmt: skip
    """See `climb_stages`; the results are written to the placement's offsets and to `heights`.
    ends: stage s has the items [ends[s], ends[s + 1]) of the placement's order. ranks: the rank of
    each item in each of the orders; the last row numbers the items."""
    enough, numbers = bound, ranks[ranks.shape[0] - 1]
    best_offsets = np.empty(conflicts.heights.size, np.int64)
    for s in range(ends.size - 1):
        items = _list_unplaced(placement, ends[s], ends[s + 1], numbers)
        if items.size == 0:
            continue
        order = np.empty(items.size, np.uint64)
        stage = PlacedItems(order, placement.position, placement.offsets, placement.tops)
        least = _place_in_best_order(conflicts, stage, items, ranks, enough, best_offsets, blocked)
        if rounds > 0 and least > enough:
            entries = int64(0)
            for p in range(items.size):
                entries += int64(conflicts.starts[items[p] + ONE] - conflicts.starts[items[p]]) + 1
            most = work // entries + 1
            _copy(items, order)
            _sort_by(order, best_offsets)
            least = climb_order(
                conflicts, stage, enough, most if most < rounds else rounds, int64(0),
                blocked,
            )  # fmt: skip
        for p in range(items.size):
            placement.position[items[p]] = placement.tops[items[p]] = -1
        heights[s] = least
        if least > enough:
            enough = least
