"""The compiled climb: what a move places again is all that the move changes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.memory.random_problems import trailing
from tflm_planner.memory.allocators import climb_kernel
from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.climb_kernel import (
    FAR,
    Blocked,
    Conflicts,
    PlacedItems,
    Replaced,
)
from tflm_planner.memory.allocators.items import choose_all
from tflm_planner.memory.allocators.machine_code import Ints


def inputs(arrays: Arrays) -> tuple[Conflicts, Blocked]:
    """What the compiled functions read, and their work space."""
    starts, other = arrays.starts.view(np.uint64), arrays.other.view(np.uint64)
    conflicts = Conflicts(starts, other, arrays.low, arrays.high, arrays.heights)
    return conflicts, Blocked(np.empty_like(arrays.other), np.empty_like(arrays.other))


def placed(arrays: Arrays, order: list[int], fixed: Ints) -> PlacedItems:
    """The first fit of an order beside the items that have offsets in `fixed`."""
    conflicts, blocked = inputs(arrays)
    positions, tops = np.where(fixed >= 0, -1, FAR), np.full_like(fixed, -1)
    placement = PlacedItems(np.array(order, np.uint64), positions, fixed.copy(), tops)
    climb_kernel.place_all(conflicts, placement, blocked)
    return placement


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.mostly_slow(fast=8)
def test_a_move_gives_what_a_first_fit_of_the_new_order_gives(seed: int) -> None:
    """Whatever moves where; some items lie fixed, others are not placed at all. Where the height
    exceeds the limit, everything is as it was."""
    chance = random.Random(seed)
    arrays = Arrays.of(choose_all(trailing(chance.choice((6, 25, 60)), seed)))
    items, nothing = [*range(len(arrays.heights))], np.full(len(arrays.heights), -1, np.int64)
    fixed = placed(arrays, items[: seed % 3], nothing).offsets
    order = items[seed % 3 : len(items) - seed % 2]
    chance.shuffle(order)
    work = np.zeros((3, len(items)), np.int64)
    conflicts, blocked = inputs(arrays)
    outcomes = set[bool]()
    for _ in range(60):
        at, target = chance.randrange(len(order)), chance.randrange(len(order))
        before = placed(arrays, order, fixed)
        moved = [*order]
        moved.insert(target, moved.pop(at))
        after = placed(arrays, moved, fixed)
        limit = int(before.tops.max()) + chance.choice((0, 0, 200))
        replaced = Replaced(work[0], work[1].view(np.uint64), work[2])
        height = climb_kernel.try_move(conflicts, before, limit, at, target, replaced, blocked)
        fits = int(after.tops.max()) <= limit
        expected = after if fits else placed(arrays, order, fixed)
        assert height == (int(after.tops.max()) if fits else -1)
        for made, right in zip(before, expected, strict=True):
            assert made.tolist() == right.tolist()
        assert not work[0].any(), "nothing waits any more"
        outcomes.add(fits)
        order = moved if fits else order
    assert outcomes == {True, False} or len(items) < 10
