"""A second opinion on a whole problem by OR-Tools' CP-SAT, where that is installed.

Knows problems and plans. Only code that runs CP-SAT may import it: OR-Tools is an optional
dependency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tflm_planner.memory.budgets import DEFAULT_ALLOCATOR_BUDGET, AllocatorBudget
from tflm_planner.memory.domains import forbidden
from tflm_planner.memory.problem import Plan, Problem, concurrent_pairs
from tflm_planner.support.errors import UsageError


@dataclass(frozen=True)
class CpsatResult:
    """Offsets of the buffers, and whether CP-SAT proved that no plan is lower."""

    offsets: tuple[int, ...]
    optimal: bool


def load() -> Any:
    """OR-Tools' CP-SAT; UsageError where it is not installed."""
    try:
        return import_module("ortools.sat.python.cp_model")
    except ImportError as error:
        raise UsageError(
            'allocator "cpsat" needs OR-Tools; install it with: pip install "tflm-planner[cpsat]"'
        ) from error


def solve(
    problem: Problem,
    hint: Plan,
    bound: int,
    *,
    time_limit: float | None,
    seed: int,
    budget: AllocatorBudget = DEFAULT_ALLOCATOR_BUDGET,
) -> CpsatResult:
    """Minimise the height, starting from the legal plan `hint`. Results repeat: there is one
    worker, and the limit counts CP-SAT's deterministic work. time_limit: seconds, or None.

    The distance of each pair of buffers that live together must lie outside the open intervals
    that are forbidden to it: one Boolean for each of the intervals that remain. Raises
    `UsageError` without OR-Tools.
    """
    library = load()
    unit = math.gcd(*(b.size for b in problem.buffers)) or 1
    bounded = [d for o in problem.overlaps for d in (o.low, o.high) if abs(d) < 1 << 60]
    unit = math.gcd(unit, *bounded)
    top = hint.height(problem)
    model: Any = library.CpModel()
    height = model.new_int_var(bound // unit, top // unit, "height")
    offsets = [
        model.new_int_var(0, (top - b.size) // unit, f"offset {i}")
        for i, b in enumerate(problem.buffers)
    ]
    for i, b in enumerate(problem.buffers):
        model.add(offsets[i] + b.size // unit <= height)
        model.add_hint(offsets[i], hint.offsets[i] // unit)
    for i, j in concurrent_pairs(problem.buffers):
        _keep_apart(model, offsets[j] - offsets[i], forbidden(problem, i, j), unit)
    model.minimize(height)
    solver: Any = library.CpSolver()
    solver.parameters.max_deterministic_time = budget.cpsat_work
    if time_limit is not None:
        solver.parameters.max_time_in_seconds = max(0.1, time_limit)
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status not in (library.OPTIMAL, library.FEASIBLE):
        return CpsatResult(hint.offsets, False)
    best = tuple(int(solver.value(o)) * unit for o in offsets)
    return CpsatResult(best, status == library.OPTIMAL)


def _keep_apart(model: Any, distance: Any, stretches: list[tuple[int, int]], unit: int) -> None:
    """Constrain the distance to lie below, between or above the forbidden open intervals."""
    if not stretches:
        return
    choices: list[Any] = []
    floors = [None, *(high for _, high in stretches)]
    ceilings = [*(low for low, _ in stretches), None]
    for low, high in zip(floors, ceilings, strict=True):
        choice = model.new_bool_var("")
        if low is not None:
            model.add(distance >= low // unit).only_enforce_if(choice)
        if high is not None:
            model.add(distance <= high // unit).only_enforce_if(choice)
        choices.append(choice)
    model.add_exactly_one(choices)
