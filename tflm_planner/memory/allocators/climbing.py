"""Local search over placement orders, scored by first fit.

A hill climb in the manner of Vela's: an item at the peak, or an item that supports it, is placed
earlier. Moves that leave the height as it is are accepted. After some rounds without progress the
climb goes back to an order that is as good as the best and swaps a few random pairs in it. It knows
integers only, and no clock: the same problem, rounds and seed give the same plan everywhere. It is
imported lazily, because the climb itself is compiled (`climb_kernel`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.climb_kernel import (
    FAR,
    RANDOM_MASK,
    Blocked,
    Conflicts,
    PlacedItems,
    climb_order,
    place_stages,
)
from tflm_planner.memory.allocators.machine_code import Indices, Ints


def climb(
    arrays: Arrays,
    order: Sequence[int] | Ints,
    *,
    bound: int = 0,
    rounds: int = 0,
    given: Ints | None = None,
    seed: int = 0,
) -> Ints:
    """The best offsets found in at most `rounds` rounds, starting from the first fit in `order`;
    never worse than that first fit. The climb ends early when the height reaches `bound`. given:
    the offsets of items that must not move, and -1 for all others; an item that is neither in
    `order` nor in `given` has no offset in the result. seed: the seed of all random choices."""
    offsets = np.full(len(arrays.heights), -1, np.int64) if given is None else given.copy()
    first = np.array(order, np.uint64)
    position = np.where(offsets >= 0, -1, FAR)
    placement = _not_yet_placed(first, position, offsets)
    climb_order(
        _conflicts_of(arrays),
        placement,
        bound,
        rounds,
        seed & RANDOM_MASK,
        _make_blocked(arrays),
    )
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
    """Offsets of all items, placed stage after stage, and the height that each stage reached.

    Each stage places its items that no earlier stage has placed. It first takes the order of
    `orders` that gives the lowest height. If that is above the height of all earlier stages (for
    the first stage: above `bound`), it climbs from there. rounds: limit of each climb. work: limit
    of a climb's rounds times conflicts.
    """
    size = len(arrays.heights)
    ends = np.cumsum([0, *map(len, stages)])
    items = np.array([k for stage in stages for k in stage], np.uint64)
    ranks = np.empty((len(orders) + 1, size), np.int64)
    for rank, order in zip(ranks, (*orders, np.arange(size)), strict=True):
        rank[order] = np.arange(len(order))
    heights = np.zeros(len(stages), np.int64)
    offsets, position = np.full(size, -1, np.int64), np.full(size, FAR, np.int64)
    place_stages(
        _conflicts_of(arrays), _not_yet_placed(items, position, offsets), ends, ranks,
        bound, rounds, work, heights, _make_blocked(arrays),
    )  # fmt: skip
    return offsets, heights


def _conflicts_of(arrays: Arrays) -> Conflicts:
    starts, other = arrays.starts.view(np.uint64), arrays.other.view(np.uint64)
    return Conflicts(starts, other, arrays.low, arrays.high, arrays.heights)


def _not_yet_placed(order: Indices, position: Ints, offsets: Ints) -> PlacedItems:
    return PlacedItems(order, position, offsets, np.full(len(offsets), -1, np.int64))


def _make_blocked(arrays: Arrays) -> Blocked:
    degree = int((arrays.starts[1:] - arrays.starts[:-1]).max(initial=0))
    return Blocked(np.empty(degree, np.int64), np.empty(degree, np.int64))


__all__ = ["climb", "climb_stages"]
