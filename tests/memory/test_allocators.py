"""Every allocator: legal, never below the bound, never worse than something simpler."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.call_counts import assert_near_linear
from tests.memory.random_problems import (
    brute_force,
    chain,
    hard,
    paint,
    problems,
    sliding_chains,
)
from tflm_planner.memory.allocators import (
    AllocatorOptions,
    Listener,
    Solution,
    best_of,
    climbing,
    exact,
    slide,
)
from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.greedy import GreedyPlacer
from tflm_planner.memory.allocators.items import alias_sets, bind, choose_all, without_aliases
from tflm_planner.memory.allocators.sections import sections_of
from tflm_planner.memory.bounds import lower_bound, pairwise_bounds
from tflm_planner.memory.budgets import AllocatorBudget
from tflm_planner.memory.domains import Pruner
from tflm_planner.memory.problem import UNBOUNDED, Buffer, Overlap, Plan, Problem, validate
from tflm_planner.support.errors import UsageError
from tflm_planner.support.stopping import Stop

SLOW = [HealthCheck.too_slow]


@settings(deadline=None, max_examples=60, suppress_health_check=SLOW)
@given(problems())
def test_every_plan_is_legal_and_none_below_the_bound(problem: Problem) -> None:
    bound = lower_bound(problem)
    for items in (bind(problem, ()), choose_all(problem), bind(without_aliases(problem), ())):
        for _, offsets in GreedyPlacer(items).candidates(bound):
            plan = items.plan(offsets)
            assert validate(problem, plan) == [] and paint(problem, plan)
            assert plan.height(problem) >= bound
        order = list(range(len(items)))
        plan = items.plan(climbing.climb(Arrays.of(items), order, bound=bound, rounds=20).tolist())
        assert validate(problem, plan) == []


@settings(deadline=None, max_examples=60, suppress_health_check=SLOW)
@given(problems(most=5, biggest=4))
def test_best_is_what_brute_force_finds(problem: Problem) -> None:
    solution = best_of(problem)
    least = brute_force(problem, solution.height)
    if solution.optimal:
        assert solution.height == least
    if all(o.is_alias for o in problem.overlaps):
        flat = all(o.low == 0 for o in problem.overlaps)
        assert solution.optimal or not flat
        assert solution.height == least or not flat


@settings(deadline=None, max_examples=60, suppress_health_check=SLOW)
@given(problems())
def test_every_slide_is_legal_and_lower_than_the_one_before(problem: Problem) -> None:
    bound, top = lower_bound(problem), sum(b.size for b in problem.buffers)
    pruner = Pruner(problem, pairwise_bounds(problem))
    for name, offsets in slide.attempts(problem, pruner, bound, top):
        plan = Plan(tuple(offsets))
        assert validate(problem, plan) == [] and paint(problem, plan), name
        assert bound <= plan.height(problem) < top
        top = plan.height(problem)


@settings(deadline=None, max_examples=60, suppress_health_check=SLOW)
@given(sliding_chains())
def test_chains_are_solved_without_the_compiled_search(problem: Problem) -> None:
    solution = best_of(problem, AllocatorOptions(("greedy",)))
    assert solution.optimal and solution.height == brute_force(problem, solution.height)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_of_a_hundred_layers_slides_through_one_buffer_at_once(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [16 * chance.randint(1, 400) for _ in range(100)]
    input_overlaps = tuple(
        Overlap(i + 1, i, 16 * chance.randint(1, 40), UNBOUNDED)
        for i in range(99) if chance.random() < 0.8
    )  # fmt: skip
    problem = Problem.of(chain(sizes).buffers, input_overlaps)
    solution = best_of(problem, AllocatorOptions(("greedy",)))
    assert solution.optimal, "without any search"


@settings(deadline=None, max_examples=60, suppress_health_check=SLOW)
@given(problems(most=7, biggest=9, aliases=False, trailing=False))
def test_the_exact_search_proves_plain_problems(problem: Problem) -> None:
    items = bind(problem, ())
    top = sum(b.size for b in problem.buffers)
    search = exact.Minimiser(items, high=top + 1)
    while not search.done:
        search.advance(4)
    assert search.proved and search.offsets is not None
    assert validate(problem, items.plan(search.offsets)) == []
    for _, offsets in GreedyPlacer(items).candidates(0):
        assert search.high <= items.plan(offsets).height(problem)
    if len(problem.buffers) <= 5:
        assert search.high == brute_force(problem, top)


@pytest.mark.parametrize("seed", [0, 3])
def test_heights_between_are_tried_while_the_lowest_one_is_open(seed: int) -> None:
    """Slices of 64 nodes: the first attempt at the bound ends without an answer."""
    problem = hard(45, seed)
    items, top = bind(problem, ()), sum(b.size for b in problem.buffers)
    budget = AllocatorBudget(slice_work=20)
    search = exact.Minimiser(items, high=top + 1, budget=budget)
    search.advance(1)
    assert search.low < search.high < top // 2 and not search.proved
    nodes = [0, search.nodes]
    while not search.done:
        assert search.offsets is not None
        assert items.plan(search.offsets).height(problem) == search.high
        assert validate(problem, items.plan(search.offsets)) == []
        search.advance(1)
        nodes.append(search.nodes)
    assert search.proved and search.high == lower_bound(problem)
    assert nodes == sorted(set(nodes)), "each call goes on where the last one ended"


@settings(deadline=None, max_examples=100, suppress_health_check=SLOW)
@given(problems(most=5, biggest=5, aliases=False))
def test_the_exact_search_is_right_about_overlaps_from_a_distance_on(problem: Problem) -> None:
    items = bind(problem, ())
    least = brute_force(problem, sum(b.size for b in problem.buffers))
    search = exact.Minimiser(items, high=least + 1)
    while not search.done:
        search.advance(4)
    if search.offsets is not None:
        assert validate(problem, items.plan(search.offsets)) == [] and search.high == least
    if search.sections.complete:
        assert search.offsets is not None
        assert search.sections.bound <= least


@settings(deadline=None, max_examples=60, suppress_health_check=SLOW)
@given(problems())
def test_aliases_never_harm(problem: Problem) -> None:
    plain = best_of(without_aliases(problem))
    assert best_of(problem).height <= plain.height


@settings(deadline=None, suppress_health_check=SLOW)
@given(problems(trailing=False), st.integers(0, 1 << 30))
@pytest.mark.slow
def test_groups_keep_their_distances_and_never_collide(problem: Problem, seed: int) -> None:
    aliases = list(problem.overlaps)
    random.Random(seed).shuffle(aliases)
    items = bind(problem, aliases)
    offsets = items.plan([1000 * k for k in range(len(items))]).offsets
    for o in items.aliases:
        assert offsets[o.second] - offsets[o.first] == o.low
    assert validate(problem, items.plan([1000 * k for k in range(len(items))])) == []
    assert {i for m in items.members for i in m} == set(range(len(problem.buffers)))


def test_a_chain_of_aliases_becomes_one_group() -> None:
    buffers = tuple(Buffer(f"t{i}", 32, i, i + 2) for i in range(6))
    problem = Problem.of(buffers, tuple(Overlap(i, i + 1, 0, 0) for i in range(5)))
    assert choose_all(problem).members == ((0, 1, 2, 3, 4, 5),)
    assert best_of(problem).height == 32


def test_an_alias_that_would_overwrite_a_live_operand_is_not_taken() -> None:
    # add(x, y) may write over x or over y, but x is read again later: only y is free.
    #   x    |#########|
    #   y    |###|
    #   sum     |######|
    buffers = (Buffer("x", 32, 0, 3), Buffer("y", 32, 0, 2), Buffer("sum", 32, 1, 3))
    problem = Problem.of(buffers, (Overlap(1, 2, 0, 0),))
    assert best_of(problem).height == 64
    both = Problem.of(buffers, (Overlap(0, 2, 0, 0), Overlap(1, 2, 0, 0)))
    sets, every = alias_sets(both, 16)
    assert every and {items.members for items in sets} == {
        ((0,), (1,), (2,)),
        ((0, 2), (1,)),
        ((0,), (1, 2)),
    }


def test_a_concatenation_of_views_needs_no_second_copy() -> None:
    # left  |##|      Both parts are written in place, with something else alive between them.
    # right    |##|
    # whole    |####|
    buffers = (
        Buffer("left", 32, 0, 3),
        Buffer("right", 48, 1, 3),
        Buffer("whole", 80, 2, 4),
        Buffer("other", 16, 0, 2),
    )
    problem = Problem.of(buffers, (Overlap(2, 0, 0, 0), Overlap(2, 1, 32, 32)))
    solution = best_of(problem)
    assert solution.height == solution.lower_bound == 96


def test_an_output_trails_its_input() -> None:
    buffers = (Buffer("in", 64, 0, 2), Buffer("out", 64, 1, 3))
    solution = best_of(Problem.of(buffers, (Overlap(1, 0, 16, UNBOUNDED),)))
    assert (solution.height, solution.optimal, solution.plan.offsets) == (80, True, (16, 0))


def test_small_chains_do_not_load_the_compiled_search() -> None:
    code = (
        "import sys;"
        "from tflm_planner.memory.allocators import best_of;"
        "from tflm_planner.memory.problem import Buffer, Problem;"
        "s = best_of(Problem.of(tuple(Buffer(str(i), 16 * (i * 7 % 5 + 1), i, i + 2)"
        " for i in range(9))));"
        "assert s.optimal and 'numba' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_planning_a_chain_is_near_linear() -> None:
    def planning(length: int):
        problem = chain([16 * (1 + i * 7919 % 1999) for i in range(length)])
        return lambda: best_of(problem)

    assert best_of(chain([16 * (1 + i * 7919 % 1999) for i in range(10_000)])).optimal
    assert_near_linear(planning, 1_000, 5_000)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_hard_problems_reach_their_bound(seed: int) -> None:
    problem = hard(80, seed)
    first = best_of(problem, AllocatorOptions(("greedy",)))
    solution = best_of(problem)
    assert solution.height <= first.height
    assert solution.optimal


NO_CLIMBING = AllocatorBudget(climb_rounds=0)


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What each exact search was granted, where none finds anything, nor does local search."""
    granted: list[float] = []

    class Idle:
        """Searches nothing, and takes a slice of each order at a time."""

        def __init__(self, items: object, *, high: int, **_: object) -> None:
            self.low, self.high, self.slices, self.offsets, self.sections = 0, high, 0.0, None, None
            granted.append(0.0)

        def advance(self, slices: int, enough: Callable[[], bool]) -> None:
            for _ in range(slices):
                if enough():
                    break
                self.slices += len(exact.PREORDERS)
                granted[-1] += len(exact.PREORDERS)

    monkeypatch.setattr(exact, "Minimiser", Idle)
    return granted


def below_a_large_buffer(problem: Problem) -> Problem:
    """The same, beside a buffer that lives all the time, next to which any gain is little."""
    end = max(b.end for b in problem.buffers)
    size = 400 * sum(b.size for b in problem.buffers)
    return Problem.of((*problem.buffers, Buffer("large", size, 0, end)))


def test_effort_follows_what_can_be_won(slices: list[float]) -> None:
    for allocators in (("best",), ("exact",)):
        for problem in (hard(80, 0), below_a_large_buffer(hard(80, 0))):
            best_of(problem, AllocatorOptions(allocators, budget=NO_CLIMBING))
    much, small, named, named_small = slices
    assert 0 < small < much < named == named_small


@pytest.mark.parametrize("effort", [0.1, 1.0, 2.0])
def test_no_call_spends_more_slices_than_the_budget_has(effort: float, slices: list[float]) -> None:
    """But for the last slice of each order."""
    best_of(hard(80, 0), AllocatorOptions(exact_effort=effort, budget=NO_CLIMBING))
    budget = NO_CLIMBING.slices * effort
    assert budget <= sum(slices) < budget + len(exact.PREORDERS)


def test_a_climb_has_as_many_rounds_as_its_effort_says(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, climb = list[int](), climbing.climb

    def record(arrays: Arrays, order: list[int], **options: Any) -> Any:
        rounds.append(options["rounds"])
        return climb(arrays, order, **options)

    monkeypatch.setattr(climbing, "climb", record)
    for effort in (1.0, 0.1):
        best_of(hard(80, 0), AllocatorOptions(("local",), climb_effort=effort))
    assert rounds == [16_000, 1_600]


def test_the_same_seed_gives_the_same_plan() -> None:
    problem = hard(60, 7)
    options = AllocatorOptions(("local",), seed=3)
    results = [best_of(problem, options).plan for _ in range(2)]
    assert results[0] == results[1]


def test_an_infeasible_capacity_is_disproved() -> None:
    # Three of 2 bytes, pairwise together at different times, and one of 3 across: 5 do not do.
    problem = Problem.of((Buffer("a", 2, 0, 2), Buffer("b", 2, 1, 3), Buffer("c", 3, 0, 3)))
    attempt = exact.solve_at(bind(problem, ()), 6, 8)
    assert attempt.impossible and attempt.offsets is None
    found = exact.solve_at(bind(problem, ()), 7, 8)
    assert found.offsets is not None


def test_a_stop_returns_the_best_so_far() -> None:
    calls: list[str] = []
    stop = Stop()

    def interrupt(name: str, height: int, bound: int) -> None:
        calls.append(name)
        stop.interrupt()

    solution = best_of(hard(40, 1), listener=Listener(interrupt), stop=stop)
    assert len(calls) == 1
    assert solution.height > 0


def test_a_search_that_is_over_has_a_plan_all_the_same() -> None:
    problem, stop = hard(40, 1), Stop()
    stop.interrupt()
    stack = sum(b.size for b in problem.buffers)
    assert best_of(problem, stop=stop).height < stack


def test_progress_falls_to_the_final_height() -> None:
    heights: list[int] = []
    solution = best_of(
        hard(60, 2), listener=Listener(lambda name, height, bound: heights.append(height))
    )
    assert heights == sorted(set(heights), reverse=True) and heights[-1] == solution.height


def test_no_buffers() -> None:
    solution = best_of(Problem.of(()))
    assert isinstance(solution, Solution)
    assert (solution.plan.offsets, solution.height, solution.optimal) == ((), 0, True)


def test_an_unknown_allocator_is_refused() -> None:
    with pytest.raises(UsageError, match="'quantum' is unknown; choose from greedy"):
        best_of(Problem.of(()), AllocatorOptions(("quantum",)))


@settings(deadline=None, max_examples=60)
@given(problems(aliases=False, trailing=False))
def test_sections_hold_every_pair_that_is_live_together(problem: Problem) -> None:
    arrays = sections_of(bind(problem, ())).arrays
    first, last = arrays["first"], arrays["last"]
    for i, near in enumerate(problem.neighbours):
        assert first[i] < last[i]
        for j in range(len(problem.buffers)):
            if i != j:
                assert (first[i] < last[j] and first[j] < last[i]) == (j in near)
