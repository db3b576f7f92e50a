"""Lower bounds are never above what can be reached, and tight where that is easy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from tests.call_counts import assert_near_linear
from tests.memory.random_problems import brute_force, chain, problems, sliding_chains, trailing
from tflm_planner.memory.allocators import AllocatorOptions, best_of, live_kernel
from tflm_planner.memory.allocators.packing import pack
from tflm_planner.memory.allocators.problem_table import ProblemTable
from tflm_planner.memory.bounds import (
    Needs,
    chained_bound,
    footprint,
    live_bound,
    live_bytes,
    lower_bound,
    pairwise_bounds,
    pruned_bound,
)
from tflm_planner.memory.domains import Pruner
from tflm_planner.memory.problem import UNBOUNDED, Buffer, Overlap, Plan, Problem, validate


@settings(deadline=None, max_examples=150)
@given(problems(most=5, biggest=4))
def test_no_plan_is_below_the_bound(problem: Problem) -> None:
    top = sum(b.size for b in problem.buffers)
    assert lower_bound(problem) <= brute_force(problem, top)


@settings(deadline=None)
@given(problems(aliases=False, trailing=False))
def test_without_overlaps_the_bound_is_the_peak_of_the_profile(problem: Problem) -> None:
    steps = range(max(b.end for b in problem.buffers))
    peak = max(sum(b.size for b in problem.buffers if b.start <= t < b.end) for t in steps)
    assert lower_bound(problem) == peak == max(total for _, total in live_bytes(problem))


@settings(deadline=None, max_examples=50)
@given(problems(most=2))
def test_the_footprint_of_a_pair_is_its_smallest_span(problem: Problem) -> None:
    if len(problem.buffers) < 2 or not problem.neighbours[0]:
        return
    a, b = (buffer.size for buffer in problem.buffers)
    spans = [
        max(a, d + b) - min(0, d)
        for d in range(-b, a + 1)
        if d in (-b, a) or problem.may_share(0, 1, d)
    ]
    assert footprint(problem, 0, 1) == min(spans)


@settings(deadline=None, max_examples=200)
@given(problems())
def test_a_moment_needs_its_heaviest_set(problem: Problem) -> None:
    """The most of all sets of live buffers: their sizes, without what each pair may share."""
    buffers = problem.buffers

    def shared(i: int, j: int) -> int:
        return buffers[i].size + buffers[j].size - footprint(problem, i, j)

    def bytes_of(chosen: Sequence[int]) -> int:
        pairs = itertools.combinations(chosen, 2)
        return sum(buffers[i].size for i in chosen) - sum(shared(i, j) for i, j in pairs)

    needs = Needs(problem)
    most = 0
    for time in range(max(b.end for b in buffers)):
        live = [i for i, b in enumerate(buffers) if b.start <= time < b.end]
        sets = (c for n in range(len(live) + 1) for c in itertools.combinations(live, n))
        need = max(map(bytes_of, sets))
        assert needs.at(time) == need
        assert live_kernel.needs_at(ProblemTable.of(problem), [time]) == [need]
        most = max(most, need)
    assert live_bound(problem) == most
    assert live_kernel.live_bound(ProblemTable.of(problem)) == most


@pytest.mark.parametrize("seed", range(12))
def test_what_is_compiled_is_as_strong_and_still_a_bound(seed: int) -> None:
    """Also where more buffers are linked than all sets are looked at of."""
    problem = trailing((12, 30, 60)[seed % 3], seed)
    table, needs = ProblemTable.of(problem), Needs(problem)
    times = sorted({b.start for b in problem.buffers})
    found = live_kernel.needs_at(table, times)
    assert all(a >= needs.at(time) for a, time in zip(found, times, strict=True))
    assert max(found) == live_kernel.live_bound(table) >= live_bound(problem)
    assert live_kernel.live_bound(table) <= pack(problem, ()).height(problem)


def test_of_a_ring_every_second_buffer_needs_all_its_bytes_and_one_more_a_part() -> None:
    """More are linked than all sets are looked at of, and none can be decided at once: each shares
    6 of its 10 bytes with either neighbour."""
    buffers = [Buffer(f"{k}", 10, 0, 1) for k in range(13)]
    problem = Problem.of(buffers, [Overlap(k, (k + 1) % 13, 4, 4) for k in range(13)])
    assert live_kernel.live_bound(ProblemTable.of(problem)) == live_bound(problem) == 6 * 10 + 4


def test_parts_that_overlap_along_a_chain_need_all_their_bytes() -> None:
    # |----|         each part shares its last 2 bytes with the next one
    #     |----|
    #         |----|
    parts = [Buffer(f"rows {k}", 10, 0, 2) for k in range(12)]
    aliases = [Overlap(k, k + 1, 8, 8) for k in range(11)]
    beside = Buffer("result", 20, 1, 3)
    problem = Problem.of([*parts, beside], aliases)
    assert live_bound(problem) == 11 * 8 + 10 + 20


@settings(deadline=None, max_examples=300)
@given(sliding_chains())
def test_for_chains_the_bound_is_the_optimum(problem: Problem) -> None:
    least = brute_force(problem, sum(b.size for b in problem.buffers))
    assert live_bound(problem) <= lower_bound(problem) == least


@settings(deadline=None, max_examples=200)
@given(problems())
def test_no_offset_of_a_legal_plan_is_pruned(problem: Problem) -> None:
    solution = best_of(problem, AllocatorOptions(("greedy",)))
    pruner = Pruner(problem, pairwise_bounds(problem))
    for budget in (1, 7, 10_000):
        domains = pruner.at(solution.height, budget)
        assert domains.possible
        for offset, span in zip(solution.plan.offsets, domains.spans, strict=True):
            assert any(low <= offset // pruner.unit <= high for low, high in span)
            assert offset % pruner.unit == 0


@settings(deadline=None, max_examples=100)
@given(problems(most=5, biggest=4, aliases=False, trailing=False))
def test_pruning_is_right_about_plain_problems_too(problem: Problem) -> None:
    least = brute_force(problem, sum(b.size for b in problem.buffers))
    assert pruned_bound(Pruner(problem, {}), live_bound(problem)) <= least


@settings(deadline=None, max_examples=200)
@given(problems(most=5, biggest=4))
def test_no_plan_is_below_the_bound_of_chains(problem: Problem) -> None:
    low = live_bound(problem)
    least = brute_force(problem, sum(b.size for b in problem.buffers))
    assert low <= chained_bound(problem, low) <= least


def test_distances_along_a_chain_add_up() -> None:
    buffers = [Buffer(name, 60, k, k + 2) for k, name in enumerate("abc")]
    trailing = [Overlap(k + 1, k, 8, UNBOUNDED) for k in range(2)]
    problem = Problem.of(buffers, trailing)
    assert live_bound(problem) == 68  # of two that are live together
    assert chained_bound(problem, 68) == 76 == brute_force(problem, 180)


def test_every_end_of_the_distances_of_a_pair_is_a_place_for_a_plan() -> None:
    """A pair may have several intervals of distances: heights lie on the grid of all their ends."""
    buffers = [Buffer(name, 64, 0, 6) for name in "abc"]
    overlaps = [
        Overlap(0, 1, -96, -96), Overlap(1, 0, 64, 64), Overlap(2, 0, 80, 160),
        Overlap(2, 0, -32, -16), Overlap(1, 2, -96, -96),
    ]  # fmt: skip
    problem = Problem.of(buffers, overlaps)
    assert chained_bound(problem, live_bound(problem)) <= 144
    assert validate(problem, Plan((0, 80, 16))) == [] and Plan((0, 80, 16)).height(problem) == 144


def test_where_two_fit_without_sharing_nothing_adds_up() -> None:
    buffers = [Buffer("a", 60, 0, 2), Buffer("b", 20, 1, 3), Buffer("c", 20, 2, 4)]
    problem = Problem.of(buffers, [Overlap(1, 0, 30, UNBOUNDED), Overlap(2, 1, 30, UNBOUNDED)])
    assert chained_bound(problem, live_bound(problem)) == 80 == brute_force(problem, 100)


def test_distances_that_contradict_each_other_are_disproved() -> None:
    buffers = [Buffer(name, 60, 0, 2) for name in "abc"]
    ahead = [Overlap(0, 1, 8, 8), Overlap(1, 2, 8, 8), Overlap(0, 2, 0, 0)]
    problem = Problem.of(buffers, ahead)
    assert chained_bound(problem, 60) == 120 == brute_force(problem, 180)


def test_two_neighbours_of_a_large_buffer_add_up() -> None:
    # The largest buffer of MobileNet for 96x96: what is read for it ends 16 bytes above its top,
    # and what is made from it begins 16 below its bottom. No single moment shows both.
    #
    #        |read |           |made |
    #        |     |  large |  |     |
    buffers = (
        Buffer("read", 18_432, 0, 2),
        Buffer("large", 36_864, 1, 3),
        Buffer("made", 18_432, 2, 4),
    )
    input_overlaps = (Overlap(1, 0, 18_448, UNBOUNDED), Overlap(2, 1, 16, UNBOUNDED))
    problem = Problem.of(buffers, input_overlaps)
    assert live_bound(problem) == 36_880
    assert lower_bound(problem) == 36_896 == best_of(problem, AllocatorOptions(("greedy",))).height


def test_two_large_neighbours_of_a_small_buffer_add_up() -> None:
    """The small one comes first: counting it would leave out one of the large ones."""
    sizes = {"small": 1, "one": 10, "another": 10}
    buffers = tuple(Buffer(name, size, 0, 1) for name, size in sizes.items())
    inside = (Overlap(0, 1, -9, 0), Overlap(0, 2, -9, 0))
    problem = Problem.of(buffers, inside)
    assert live_bound(problem) == lower_bound(problem) == 20 == brute_force(problem, 21)


def test_drift_along_a_chain_adds_up() -> None:
    # Every buffer lies at least 1 below the one before it, and there is no room to start afresh.
    sizes, count = 10, 8
    buffers = tuple(Buffer(f"t{i}", sizes, i, i + 2) for i in range(count))
    input_overlaps = tuple(Overlap(i + 1, i, 1, UNBOUNDED) for i in range(count - 1))
    problem = Problem.of(buffers, input_overlaps)
    assert live_bound(problem) == 11
    assert lower_bound(problem) == best_of(problem).height == sizes + count - 1


def test_others_alive_crowd_a_pair() -> None:
    # Beside `residue` of 8 the two cannot be apart below 24: so they trail, in either gap.
    buffers = (Buffer("in", 8, 0, 2), Buffer("out", 8, 1, 3), Buffer("residue", 8, 0, 3))
    problem = Problem.of(buffers, (Overlap(1, 0, 2, UNBOUNDED),))
    assert pairwise_bounds(problem) == {(0, 1): 8}
    domains = Pruner(problem, pairwise_bounds(problem)).at(18, 1000)
    unit = Pruner(problem, pairwise_bounds(problem)).unit
    assert [[(a * unit, b * unit) for a, b in span] for span in domains.spans] == [
        [(2, 2), (10, 10)],
        [(0, 0), (8, 8)],
        [(0, 0), (10, 10)],
    ]


def test_live_bytes_lists_each_change() -> None:
    problem = Problem.of((Buffer("a", 4, 0, 2), Buffer("b", 3, 1, 3)))
    assert live_bytes(problem) == [(0, 4), (1, 7), (2, 3), (3, 0)]


def test_buffers_inside_one_parent_still_need_their_own_bytes() -> None:
    # parent |########|   left and right may lie in the parent, but not in each other.
    # left   |####|
    # right       |####|
    buffers = (Buffer("parent", 8, 1, 3), Buffer("left", 5, 0, 2), Buffer("right", 4, 0, 2))
    problem = Problem.of(buffers, (Overlap(0, 1, 0, 0), Overlap(0, 2, 4, 4)))
    assert live_bound(problem) == 9
    # In the parent right would begin with left's last byte: one of them lies elsewhere.
    assert lower_bound(problem) == brute_force(problem, 17) == 12


def test_a_trailing_output_needs_its_lead_beside_the_input() -> None:
    buffers = (Buffer("in", 64, 0, 2), Buffer("out", 64, 1, 3))
    assert lower_bound(Problem.of(buffers, (Overlap(1, 0, 16, UNBOUNDED),))) == 80


def test_the_bound_of_a_chain_is_near_linear() -> None:
    def bounding(length: int):
        problem = chain([16 * (1 + i * 7919 % 997) for i in range(length)])
        aliases = tuple(Overlap(i, i + 1, 0, 0) for i in range(0, length - 1, 3))
        return lambda: lower_bound(Problem.of(problem.buffers, aliases))

    assert_near_linear(bounding, 1_000, 5_000)


def test_no_buffers_need_no_bytes() -> None:
    assert lower_bound(Problem.of(())) == 0 and live_bytes(Problem.of(())) == []
