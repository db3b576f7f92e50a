"""The steps that allocators are made of, each alone: items, sections, heights tried, choices."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings

from tests.memory.random_problems import brute_force, chain, hard, problems
from tflm_planner.memory.allocators import AllocatorOptions, best_of, slide
from tflm_planner.memory.allocators.items import (
    alias_sets,
    bind,
    choose_all,
    maximal_live_sets,
    taken_aliases,
    windows,
    without_aliases,
)
from tflm_planner.memory.allocators.packing import pack
from tflm_planner.memory.allocators.sections import sections_of
from tflm_planner.memory.bounds import live_bound, pairwise_bounds
from tflm_planner.memory.budgets import AllocatorBudget, PackBudget
from tflm_planner.memory.domains import Domains, Pruner
from tflm_planner.memory.problem import UNBOUNDED, Buffer, Overlap, Plan, Problem, validate


def problem_of(buffers: list[tuple[int, int, int]], aliases: list[tuple[int, int, int]]) -> Problem:
    """Buffers (size, start, end), and aliases (first, second, distance)."""
    return Problem.of(
        tuple(Buffer(f"b{i}", *buffer) for i, buffer in enumerate(buffers)),
        tuple(Overlap(i, j, distance, distance) for i, j, distance in aliases),
    )


CONCATENATION = problem_of(
    [(32, 0, 3), (32, 1, 3), (64, 2, 5), (16, 0, 5)], [(2, 0, 0), (2, 1, 32)]
)
"""Two parts that lie one behind the other in a whole, and something beside them."""

# --- items ---


def test_every_set_of_aliases_that_agree_is_found() -> None:
    """Two aliases: both, none, and each."""
    found, complete = alias_sets(CONCATENATION, 64)
    taken = {tuple(sorted((o.first, o.second) for o in items.aliases)) for items in found}
    assert complete and taken == {((2, 0), (2, 1)), (), ((2, 0),), ((2, 1),)}


@settings(deadline=None)
@given(problems(most=6, trailing=False))
def test_the_alias_sets_are_those_of_all_subsets(problem: Problem) -> None:
    aliases = [o for o in problem.overlaps if o.is_alias]
    subsets = [s for n in range(len(aliases) + 1) for s in combinations(aliases, n)]
    wanted = {(items.owner, items.shift) for items in (bind(problem, s) for s in subsets)}
    found, complete = alias_sets(problem, 64)
    assert complete and {(items.owner, items.shift) for items in found} == wanted


def test_a_plan_takes_the_aliases_whose_distances_it_has() -> None:
    whole, beside = 16, 0
    offsets = {(16, 48): 2, (16, 32): 1, (0, 48): 1, (80, 80): 0, (48, 16): 0}
    for (first, second), count in offsets.items():
        plan = Plan((first, second, whole, beside))
        assert len(taken_aliases(CONCATENATION, plan)) == count


def test_a_window_has_the_bytes_that_live_pieces_take_together() -> None:
    """Parts at 0 and 32 of a whole: before it lives 32 and 64 bytes, with it 64; a gap is none."""
    both = bind(CONCATENATION, CONCATENATION.overlaps)
    whole, beside = both.owner[2], both.owner[3]
    found = [windows(both, live) for live in maximal_live_sets(both)]
    assert found == [{whole: (0, 64, 64), beside: (0, 16, 16)}]
    assert windows(both, [1])[whole] == (32, 64, 32)
    apart = bind(problem_of([(8, 0, 2), (16, 0, 2)], [(0, 1, 24)]), ())
    assert windows(apart, [0, 1]) == {0: (0, 8, 8), 1: (0, 16, 16)}
    linked = choose_all(problem_of([(8, 0, 2), (16, 0, 2)], [(0, 1, 24)]))
    assert windows(linked, [0, 1]) == {0: (0, 40, 24)}


# --- sections ---


@settings(deadline=None)
@given(problems(aliases=False, trailing=False))
def test_sections_say_what_they_carry_and_what_crosses_into_the_next(problem: Problem) -> None:
    items = bind(problem, ())
    arrays = sections_of(items).arrays
    sections = list(maximal_live_sets(items))
    sizes = [b.size for b in problem.buffers]
    assert arrays["loads"].tolist() == [sum(sizes[i] for i in live) for live in sections]
    crossing = [len({*a} & {*b}) for a, b in pairwise(sections)]
    assert arrays["crossing"].tolist() == [*crossing, 0]


def test_a_search_of_open_aliases_proves_nothing() -> None:
    """Each alias is a third way beside above and below, which sections do not describe."""
    assert not sections_of(bind(CONCATENATION, ())).complete
    assert sections_of(bind(without_aliases(CONCATENATION), ())).complete


# --- heights that slides try ---


class Heights(Pruner):
    """Notes the heights that are tried."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, pairwise_bounds(problem))
        self.tried: list[int] = []

    def at(self, height: int, work: int) -> Domains:
        """See `Pruner`."""
        self.tried.append(height)
        return super().at(height, work)


def test_heights_are_bisected_and_none_is_tried_twice() -> None:
    """From the bound to the lowest plan: each next height is half way between the highest that
    failed and the lowest that did not."""
    problem = hard(40, 1)
    bound, top = live_bound(problem), sum(b.size for b in problem.buffers)
    pruner = Heights(problem)
    heights = [
        Plan(tuple(offsets)).height(problem)
        for _, offsets in slide.attempts(problem, pruner, bound - 64, top)
    ]
    assert heights == sorted(set(heights), reverse=True) and heights
    assert len(set(pruner.tried)) == len(pruner.tried) <= 12
    assert pruner.tried[0] == bound - 64
    failed = [height for height in pruner.tried if height < heights[-1]]
    assert failed == sorted(failed)


# --- choices ---


@pytest.mark.slow
def test_aliases_stay_open_where_taking_all_of_them_costs_more() -> None:
    problem = problem_of([(80, 2, 4), (64, 4, 7), (48, 4, 6), (16, 2, 5)], [(3, 2, 32)])
    assert pack(problem, choose_all(problem).aliases).height(problem) == 144
    assert pack(problem, ()).height(problem) == 128 == brute_force(problem, 144)


def test_stages_take_aliases_that_lower_the_plan() -> None:
    staged = PackBudget(buffers_at_once=0, buffers_both_ways=0)
    plan = pack(CONCATENATION, (), budget=staged)
    assert not validate(CONCATENATION, plan)
    assert plan.height(CONCATENATION) == 80
    plain = without_aliases(CONCATENATION)
    assert pack(plain, (), budget=staged).height(plain) == 144


def test_stages_bind_all_aliases_where_first_fits_of_open_ones_miss_them() -> None:
    """The second buffer would lie on the first and on the third; without a round of local search
    nothing else finds that."""
    buffers = [(48, 3, 4), (48, 0, 4), (16, 3, 6), (64, 5, 7)]
    problem = problem_of(buffers, [(1, 0, 0), (1, 2, 0), (2, 3, 32)])
    plan = pack(problem, (), 0, PackBudget(buffers_at_once=0, buffers_both_ways=0))
    assert not validate(problem, plan)
    assert plan.height(problem) == 96, "128 with open aliases"


def test_local_search_alone_lowers_what_greedy_plans_leave() -> None:
    problem = hard(40, 4)
    greedy = best_of(problem, AllocatorOptions(("greedy",)))
    local = best_of(problem, AllocatorOptions(("local",)))
    assert local.height < greedy.height
    assert local.allocator == "local"


def test_aliases_are_found_where_no_buffer_slides() -> None:
    """A problem with too many pairs to slide: aliases are taken by the other allocators."""
    budget = AllocatorBudget(slide_live_pairs=0)
    found = best_of(CONCATENATION, AllocatorOptions(("greedy",), budget=budget))
    assert found.height == 80 and len(taken_aliases(CONCATENATION, found.plan)) == 2
    aliases = [(2, 0, 32), (3, 0, 32)]
    crossed = problem_of([(16, 4, 6), (64, 1, 3), (32, 3, 5), (32, 3, 6)], aliases)
    found = best_of(crossed, AllocatorOptions(("greedy",), budget=budget))
    assert found.height == 80


def test_a_plan_above_its_bound_is_optimal_once_every_set_of_aliases_was_searched() -> None:
    """The first buffer may lie over half of either part, so that the bound is 64; of both it
    cannot."""
    aliases = [(2, 0, 16), (3, 0, 16)]
    problem = problem_of([(32, 4, 6), (64, 1, 3), (32, 3, 5), (32, 3, 6)], aliases)
    found = best_of(problem)
    assert (found.height, found.lower_bound, found.optimal) == (80, 64, True)
    assert found.height == brute_force(problem, 96)
    for budget in (AllocatorBudget(alias_choices=1), AllocatorBudget(alias_choices=2)):
        some = best_of(problem, AllocatorOptions(budget=budget))
        assert (some.height, some.optimal) == (80, False), "other sets were not searched"


def test_a_chain_is_placed_by_its_first_slide() -> None:
    """Overlaps from a distance on, at the bound, by the first order and end of all."""
    sizes = [64, 96, 32, 128, 48, 80]
    overlaps = tuple(Overlap(i + 1, i, 16, UNBOUNDED) for i in range(len(sizes) - 1))
    problem = Problem.of(chain(sizes).buffers, overlaps)
    found = best_of(problem)
    assert found.optimal and found.allocator == "slide outward near"


@pytest.mark.parametrize("method", ["greedy", "local", "exact"])
def test_no_alias_is_taken_for_nothing(method: str) -> None:
    """A plan without any is made first, and only a lower one replaces it."""
    problem = problem_of([(64, 0, 4), (64, 0, 4), (32, 1, 3), (32, 2, 4)], [(2, 3, 0)])
    without = best_of(without_aliases(problem), AllocatorOptions((method,)))
    found = best_of(problem, AllocatorOptions((method,)))
    assert found.height == without.height - 32
