"""OR-Tools' CP-SAT as a second opinion: what brute force finds, from any plan."""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import accumulate

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.memory.random_problems import brute_force, hard, problems
from tflm_planner.memory.allocators import AllocatorOptions, best_of, cpsat
from tflm_planner.memory.problem import UNBOUNDED, Overlap, Plan, Problem, validate
from tflm_planner.support.errors import UsageError

SLOW = [HealthCheck.too_slow]
HAS_ORTOOLS = importlib.util.find_spec("ortools") is not None


@pytest.fixture(scope="module")
def other_process() -> Iterator[ProcessPoolExecutor]:
    """A process of its own: OR-Tools has crashed in one in which other tests had run TensorFlow."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.skipif(not HAS_ORTOOLS, reason="OR-Tools is not installed")
@settings(deadline=None, max_examples=25, suppress_health_check=SLOW)
@given(problem=problems(most=5, biggest=4))
def test_cpsat_agrees_with_brute_force(
    other_process: ProcessPoolExecutor, problem: Problem
) -> None:
    solution = other_process.submit(best_of, problem, AllocatorOptions(("cpsat",))).result()
    assert solution.optimal
    assert solution.height == brute_force(problem, solution.height)


def in_units(problem: Problem, unit: int) -> Problem:
    """The same with each byte so many bytes long."""
    limits = [
        (o.first, o.second, *(d if abs(d) == UNBOUNDED else unit * d for d in (o.low, o.high)))
        for o in problem.overlaps
    ]
    buffers = [replace(b, size=unit * b.size) for b in problem.buffers]
    return Problem.of(buffers, [Overlap(*limit) for limit in limits])


@pytest.mark.skipif(not HAS_ORTOOLS, reason="OR-Tools is not installed")
@settings(deadline=None, max_examples=25, suppress_health_check=SLOW)
@given(problem=problems(most=5, biggest=4), unit=st.sampled_from([1, 16]))
def test_cpsat_finds_the_lowest_plan_from_the_highest_one(
    other_process: ProcessPoolExecutor, problem: Problem, unit: int
) -> None:
    """All buffers on top of each other, and no bound: nothing that the other allocators know."""
    ends = [*accumulate(b.size for b in problem.buffers)]
    scaled = in_units(problem, unit)
    stack = Plan(tuple(unit * end for end in (0, *ends[:-1])))
    job = partial(cpsat.solve, scaled, stack, 0, time_limit=None, seed=0)
    found = other_process.submit(job).result()
    plan = Plan(found.offsets)
    assert found.optimal and not validate(scaled, plan)
    assert plan.height(scaled) == unit * brute_force(problem, ends[-1])


@pytest.mark.skipif(HAS_ORTOOLS, reason="OR-Tools is installed")
def test_cpsat_says_how_to_install_it() -> None:
    with pytest.raises(UsageError, match=r"pip install .*cpsat"):
        best_of(hard(60, 2), AllocatorOptions(("cpsat",)))
