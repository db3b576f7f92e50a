"""The compiled list of conflicts between items; `arrays` calls it.

    buffers   i of item a, j of item b, live together       permits of i and j leave
    distance  |--------------- size i + size j ---------|   |-----|  free  |--------|  forbidden

Every pair of buffers forbids some distances between their items; the intervals that all buffers of
two items forbid are united. It knows arrays of integers only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tflm_planner.memory.allocators.machine_code import Ints, compiled, int64


class Pieces(NamedTuple):
    """The buffers of items: the item of each buffer, its distance from the item's offset, its size,
    and the buffers that live together with it; those of buffer i are near[starts[i] : starts[i +
    1]]."""

    owner: Ints
    shift: Ints
    size: Ints
    starts: Ints
    near: Ints


class _Stretches(NamedTuple):
    """Forbidden open intervals, each with the number of its pair of items."""

    pair: Ints
    low: Ints
    high: Ints


@compiled
def list_conflicts(pieces: Pieces, permits: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """For each entry: the item, the other item, the forbidden interval (low, high) of
    `offset[other] - offset[item]`, and the number of the pair. Sorted by item, then by the number
    of the pair, then by interval. permits: sorted rows (buffer i, buffer j, low, high), which
    permit low <= offset[j] - offset[i] <= high."""
    most = pieces.near.size + permits.shape[0]
    firsts, seconds = np.empty(most, np.int64), np.empty(most, np.int64)
    raw = _Stretches(np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))
    count = _list_stretches(pieces, permits, firsts, seconds, raw)
    pairs = int64(0)
    for e in range(count):
        if raw.pair[e] >= pairs:
            pairs = raw.pair[e] + 1
    ordered = _by_pair(raw, count, pairs)
    left = _unite(ordered, count)
    return _both_ways(ordered, left, firsts, seconds, pieces.owner)


@compiled
def _list_stretches(
    pieces: Pieces, permits: Ints, firsts: Ints, seconds: Ints, raw: _Stretches
) -> int:
    """Write the forbidden intervals of all pairs of buffers to `raw`, and the two items of each
    pair of items to `firsts` and `seconds`; pairs are numbered as they are met. Returns the number
    of intervals."""
    owner, count, pairs, allowed = pieces.owner, int64(0), int64(0), int64(0)
    newest = np.full(owner.size, -1, np.int64)  # item -> the last pair whose first item it is
    earlier = np.empty(firsts.size, np.int64)  # pair -> the previous pair with the same first item
    for i in range(owner.size):
        while allowed < permits.shape[0] and permits[allowed, 0] < i:
            allowed += 1
        for e in range(pieces.starts[i], pieces.starts[i + 1]):
            j = pieces.near[e]
            if owner[i] >= owner[j]:
                continue
            pair = newest[owner[i]]
            while pair >= 0 and seconds[pair] != owner[j]:
                pair = earlier[pair]
            if pair < 0:
                pair, pairs = pairs, pairs + 1
                firsts[pair], seconds[pair] = owner[i], owner[j]
                earlier[pair], newest[owner[i]] = newest[owner[i]], pair
            before = count
            count = _forbid(pieces, permits, allowed, i, j, raw, count)
            for k in range(before, count):
                raw.pair[k] = pair
    return count


@compiled
def _forbid(
    pieces: Pieces, permits: Ints, allowed: int, i: int, j: int, raw: _Stretches, count: int
) -> int:
    """Append the distances of their items that buffers i and j forbid; see `domains.forbidden`.
    allowed: index of the first permit of buffer i. Returns the new number of intervals."""
    low, high = -pieces.size[j], pieces.size[i]
    move = pieces.shift[i] - pieces.shift[j]
    for p in range(allowed, permits.shape[0]):
        if permits[p, 0] != i or permits[p, 1] > j:
            break
        if permits[p, 1] < j:
            continue
        if permits[p, 2] > low:
            end = permits[p, 2] if permits[p, 2] < high else high
            raw.low[count], raw.high[count] = low + move, end + move
            count += 1
        if permits[p, 3] > low:
            low = permits[p, 3]
        if low >= high:
            return count
    raw.low[count], raw.high[count] = low + move, high + move
    return count + 1


@compiled
def _by_pair(raw: _Stretches, count: int, pairs: int) -> _Stretches:
    """The intervals sorted by pair; within a pair, sorted by their lower ends."""
    at = np.zeros(pairs + 1, np.int64)
    for e in range(count):
        at[raw.pair[e] + 1] += 1
    for p in range(pairs):
        at[p + 1] += at[p]
    begins = at.copy()
    pair, low, high = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    for e in range(count):
        p = raw.pair[e]
        place = at[p]
        while place > begins[p] and low[place - 1] > raw.low[e]:
            low[place], high[place] = low[place - 1], high[place - 1]
            place -= 1
        pair[at[p]], low[place], high[place] = p, raw.low[e], raw.high[e]
        at[p] += 1
    return _Stretches(pair, low, high)


@compiled
def _unite(stretches: _Stretches, count: int) -> int:
    """Unite intervals of a pair that overlap, in place; returns how many are left. Two intervals
    that only touch stay apart: their common point is free."""
    pair, low, high = stretches.pair, stretches.low, stretches.high
    left = int64(0)
    for e in range(count):
        if left and pair[left - 1] == pair[e] and low[e] < high[left - 1]:
            if high[e] > high[left - 1]:
                high[left - 1] = high[e]
            continue
        pair[left], low[left], high[left] = pair[e], low[e], high[e]
        left += 1
    return left


@compiled
def _both_ways(
    stretches: _Stretches, count: int, firsts: Ints, seconds: Ints, owner: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """The entries in both directions of each pair; see `list_conflicts`."""
    at = np.zeros(owner.size + 1, np.int64)
    for e in range(count):
        at[firsts[stretches.pair[e]] + 1] += 1
        at[seconds[stretches.pair[e]] + 1] += 1
    for k in range(owner.size):
        at[k + 1] += at[k]
    item, other = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    low, high = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    number, begin = np.empty(2 * count, np.int64), int64(0)
    while begin < count:
        pair, end = stretches.pair[begin], begin
        while end < count and stretches.pair[end] == pair:
            end += 1
        a, b = firsts[pair], seconds[pair]
        for e in range(begin, end):
            there, back = at[a], at[b]
            mirrored = begin + end - 1 - e
            item[there], other[there], number[there] = a, b, pair
            low[there], high[there] = stretches.low[e], stretches.high[e]
            item[back], other[back], number[back] = b, a, pair
            low[back], high[back] = -stretches.high[mirrored], -stretches.low[mirrored]
            at[a], at[b] = there + 1, back + 1
        begin = end
    return item, other, low, high, number


__all__ = ["Pieces", "list_conflicts"]
