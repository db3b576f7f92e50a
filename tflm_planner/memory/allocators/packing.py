"""Plans in milliseconds that are nearly the best ones: first fits, then a short climb.

First fits alone mislead a search: views bound to their parents make rigid groups, which they pack
badly. A few thousand rounds of local search come within a per cent of what minutes find. Effort is
counted in rounds, so that the same problem gives the same plan everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflm_planner.memory.allocators import stages
from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.climbing import climb
from tflm_planner.memory.allocators.items import Items, bind, choose_all
from tflm_planner.memory.bounds import live_bound
from tflm_planner.memory.problem import Buffer, Overlap, Plan, Problem

ROUNDS = 2_000
_WORK = 4_000_000
"""Rounds times (items + conflicts) at most, for `ROUNDS`."""
_NEAR = 100
"""One part in so many above the bound is near enough to try no other aliases."""
_MANY = 400
"""Buffers that are placed stage by stage where they are more."""


def warm_up() -> None:
    """Load what is compiled for this, and compile it where that was never done on this machine."""
    items = bind(Problem((Buffer("a", 1, 0, 1), Buffer("b", 1, 0, 1))), ())
    climb(Arrays.of(items), (0, 1), rounds=1)
    stages.place_stages(items, 0, 1)


def pack(problem: Problem, required: Sequence[Overlap], rounds: int = ROUNDS) -> Plan:
    """A legal plan. `required`: aliases that it takes as far as they agree with each other."""
    if not problem.buffers:
        return Plan(())
    bound = live_bound(problem)
    if len(problem.buffers) > _MANY:
        return _pack_stages(problem, required, bound, rounds)
    best: tuple[int, Items, list[int]] | None = None
    for items in (choose_all(problem, required), bind(problem, required)):
        for height, offsets in _attempts(items, bound, rounds):
            if best is None or height < best[0]:
                best = height, items, offsets
        if best is not None and best[0] <= bound:
            break
    assert best is not None
    return best[1].plan(best[2])


def _pack_stages(problem: Problem, required: Sequence[Overlap], bound: int, rounds: int) -> Plan:
    """All aliases bound, or left open; what is better at first sight gets the turns."""
    items = bind(problem, required)
    offsets = stages.place_stages(items, bound, rounds, 0)
    if (_height(items, offsets) - bound) * _NEAR > bound:
        other = choose_all(problem, required)
        tried = stages.place_stages(other, bound, rounds, 0)
        if _height(other, tried) < _height(items, offsets):
            items, offsets = other, tried
    if rounds and _height(items, offsets) > bound:
        offsets = stages.place_stages(items, bound, rounds)
    return items.plan(offsets)


def _attempts(items: Items, bound: int, rounds: int) -> list[tuple[int, list[int]]]:
    """The lowest first fit, and what a climb makes of it."""
    arrays = Arrays.of(items)
    fits = [climb(arrays, order) for order in arrays.orders()]
    height, k = min((int((fit + arrays.heights).max()), k) for k, fit in enumerate(fits))
    found = [(height, fits[k].tolist())]
    if height <= bound or not rounds:
        return found
    order = np.argsort(fits[k], kind="stable")
    work = len(items) + int(arrays.degrees.sum())
    most = rounds * _WORK // (ROUNDS * work) + 1
    climbed = climb(arrays, order, bound=bound, rounds=min(rounds, most))
    return [*found, (int((climbed + arrays.heights).max()), climbed.tolist())]


def _height(items: Items, offsets: Sequence[int]) -> int:
    return max((o + h for o, h in zip(offsets, items.heights, strict=True)), default=0)
