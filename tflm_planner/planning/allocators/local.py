"""Local search over placement orders, scored by first fit.

Knows items and orders. It must not know TFLite; a budget of rounds is its only clock.

A hill climb in the manner of Vela's: the item at the peak, or a neighbour of it, comes too late
in the order; move it before one of the neighbours that push it up. Sideways steps are taken, and
after a stall the climb restarts from the best order with a few random swaps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tflm_planner.planning.allocators.greedy import first_fit
from tflm_planner.planning.allocators.items import Items

_STALL = 60
"""Rounds without progress before a restart."""


def climb(
    items: Items,
    order: Sequence[int],
    *,
    bound: int,
    rounds: int,
    seed: int,
    enough: Callable[[], bool] = lambda: False,
) -> list[int]:
    """The best offsets found in at most `rounds` rounds from a first order.

    Stops at `bound`, or when `enough()` says so (asked once a round). Same input and seed, same
    offsets, unless `enough` interferes.
    """
    chance = random.Random(seed)
    current = list(order)
    offsets = first_fit(items, current)
    assert offsets is not None
    best, best_order, best_offsets = _height(items, offsets), list(current), offsets
    height, stall = best, 0
    for _ in range(rounds):
        if best <= bound or enough() or len(items) < 2:
            break
        if stall >= _STALL:
            current, height, stall = _shaken(best_order, chance), 1 << 62, 0
        trial = _promoted(items, current, offsets, chance)
        found = first_fit(items, trial, stop=height + 1)
        if found is None:
            stall += 1
            continue
        reached = _height(items, found)
        stall = 0 if reached < height else stall + 1
        current, offsets, height = trial, found, reached
        if height < best:
            best, best_order, best_offsets = height, list(current), offsets
    return best_offsets


def _height(items: Items, offsets: Sequence[int]) -> int:
    return max((o + h for o, h in zip(offsets, items.heights, strict=True)), default=0)


def _shaken(order: list[int], chance: random.Random) -> list[int]:
    shaken = list(order)
    for _ in range(chance.randint(1, 4)):
        i, j = chance.randrange(len(order)), chance.randrange(len(order))
        shaken[i], shaken[j] = shaken[j], shaken[i]
    return shaken


def _promoted(
    items: Items, order: list[int], offsets: Sequence[int], chance: random.Random
) -> list[int]:
    """The order with an item at the peak, or one beneath it, moved before one that blocks it."""
    height = _height(items, offsets)
    peak = [k for k, h in enumerate(items.heights) if offsets[k] + h == height]
    item = chance.choice(peak)
    position = {k: p for p, k in enumerate(order)}
    for _ in range(chance.randint(0, 2)):
        beneath = [k for k in items.conflicts[item] if offsets[k] < offsets[item]]
        if not beneath:
            break
        item = chance.choice(beneath)
    earlier = [k for k in items.conflicts[item] if position[k] < position[item]]
    target = position[chance.choice(earlier)] if earlier else chance.randrange(len(order))
    trial = list(order)
    trial.remove(item)
    trial.insert(min(target, len(trial)), item)
    return trial
