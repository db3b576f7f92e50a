"""Plans in milliseconds that are nearly the best ones: first fits, then a short climb.

First fits alone mislead a search: views bound to their parents make rigid groups, which first fits
pack badly. A few thousand rounds of local search come within a per cent of what minutes find.
Effort is counted in rounds, so that the same problem gives the same plan everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflm_planner.memory.allocators import stages
from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.climbing import climb
from tflm_planner.memory.allocators.items import Items, bind, choose_all
from tflm_planner.memory.allocators.live_kernel import live_bound
from tflm_planner.memory.allocators.problem_table import ProblemTable
from tflm_planner.memory.bounds import chained_bound
from tflm_planner.memory.budgets import DEFAULT_PACK_BUDGET, PackBudget
from tflm_planner.memory.problem import Buffer, Overlap, Plan, Problem

ROUNDS = DEFAULT_PACK_BUDGET.rounds
"""Rounds of local search, unless the caller asks for more."""


def warm_up() -> None:
    """Load the compiled functions that this module uses; compile them if that was never done on
    this machine. Not `live_kernel`, which is compiled beside them (`permissions.COMPILED`)."""
    problem = Problem.of((Buffer("a", 1, 0, 1), Buffer("b", 1, 0, 1)))
    items = bind(problem, ())
    climb(Arrays.of(items), (0, 1), rounds=1)
    stages.place_stages(items, 0, 1)


def pack(
    problem: Problem,
    required: Sequence[Overlap],
    rounds: int = ROUNDS,
    budget: PackBudget = DEFAULT_PACK_BUDGET,
) -> Plan:
    """A legal plan. `required`: aliases to take; one that contradicts an earlier one is dropped."""
    if not problem.buffers:
        return Plan(())
    table = ProblemTable.of(problem)
    bound = live_bound(table)
    count = len(problem.buffers)
    if count <= budget.buffers_at_once:
        return _pack_at_once(problem, table, required, bound, rounds, budget)
    staged = _pack_stages(problem, required, bound, rounds, budget)
    if count > budget.buffers_both_ways or staged.height(problem) <= bound:
        return staged
    whole = _pack_at_once(problem, table, required, bound, rounds, budget)
    return min(staged, whole, key=lambda plan: plan.height(problem))


def _pack_at_once(
    problem: Problem, table: ProblemTable, required: Sequence[Overlap],
    bound: int, rounds: int, budget: PackBudget,
) -> Plan:  # fmt: skip
    """Place and climb the whole problem, once with all consistent aliases bound and once with only
    the required ones bound."""
    bound = chained_bound(problem, bound) if rounds else bound  # ends climbs, changes no plan
    best: tuple[int, Items, list[int]] | None = None
    all_bound, open_ones = choose_all(problem, required), bind(problem, required)
    is_same = (all_bound.owner, all_bound.shift) == (open_ones.owner, open_ones.shift)
    for items in (all_bound,) if is_same else (all_bound, open_ones):
        for height, offsets in _place_and_climb(items, table, bound, rounds, budget):
            if best is None or height < best[0]:
                best = height, items, offsets
        if best is not None and best[0] <= bound:
            break
    assert best is not None
    return best[1].plan(best[2])


def _pack_stages(
    problem: Problem, required: Sequence[Overlap], bound: int, rounds: int, budget: PackBudget
) -> Plan:
    """Place the problem stage by stage, with only the required aliases bound and, unless that comes
    near the bound, with all consistent aliases bound; the lower result is improved by placing its
    stages in other orders."""
    items = bind(problem, required)
    offsets = stages.place_stages(items, bound, rounds, 0, budget)
    if (_height(items, offsets) - bound) * budget.near_bound_divisor > bound:
        all_bound = choose_all(problem, required)
        all_bound_offsets = stages.place_stages(all_bound, bound, rounds, 0, budget)
        if _height(all_bound, all_bound_offsets) < _height(items, offsets):
            items, offsets = all_bound, all_bound_offsets
    if rounds and _height(items, offsets) > bound:
        offsets = stages.place_stages(items, bound, rounds, budget=budget)
    return items.plan(offsets)


def _place_and_climb(
    items: Items, table: ProblemTable, bound: int, rounds: int, budget: PackBudget
) -> list[tuple[int, list[int]]]:
    """(height, offsets) of the lowest first fit, then of a climb that starts from it unless it
    reaches the bound."""
    arrays = Arrays.of(items, table)
    fits = [climb(arrays, order) for order in arrays.orders()]
    height, k = min((int((fit + arrays.heights).max()), k) for k, fit in enumerate(fits))
    lowest_fit = (height, fits[k].tolist())
    if height <= bound or not rounds:
        return [lowest_fit]
    order = np.argsort(fits[k], kind="stable")
    work = len(items) + int(arrays.degrees.sum())
    most = rounds * budget.work // (budget.rounds * work) + 1
    climbed = climb(arrays, order, bound=bound, rounds=min(rounds, most))
    return [lowest_fit, (int((climbed + arrays.heights).max()), climbed.tolist())]


def _height(items: Items, offsets: Sequence[int]) -> int:
    return max((o + h for o, h in zip(offsets, items.heights, strict=True)), default=0)
