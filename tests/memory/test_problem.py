"""The problem, and the validator, which is checked against a byte-by-byte replay."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.random_problems import mutations, paint, problems
from tflm_planner.memory.allocators import AllocatorOptions, best_of
from tflm_planner.memory.problem import (
    UNBOUNDED,
    Buffer,
    Overlap,
    Plan,
    Problem,
    concurrent_pairs,
    validate,
)


@settings(deadline=None, max_examples=200)
@given(problems(), st.data())
def test_validate_agrees_with_painting_every_byte(problem: Problem, data: st.DataObject) -> None:
    offsets = [data.draw(st.integers(-1, 12)) for _ in problem.buffers]
    plan = Plan(tuple(offsets))
    assert (validate(problem, plan) == []) == paint(problem, plan)


@settings(deadline=None, max_examples=60)
@given(problems(most=7))
def test_moved_offsets_are_caught_exactly_when_bytes_collide(problem: Problem) -> None:
    plan = best_of(problem, AllocatorOptions(("greedy",))).plan
    for moved in mutations(plan):
        assert (validate(problem, moved) == []) == paint(problem, moved)


def test_a_removed_permit_is_caught() -> None:
    buffers = (Buffer("a", 4, 0, 2), Buffer("b", 4, 1, 3))
    plan = Plan((0, 0))
    assert validate(Problem.of(buffers, (Overlap(0, 1, 0, 0),)), plan) == []
    (violation,) = validate(Problem.of(buffers), plan)
    assert "'a' and 'b' share bytes [0, 4) during steps [1, 2)" in str(violation)


def test_a_longer_life_span_is_caught() -> None:
    buffers = (Buffer("a", 4, 0, 2), Buffer("b", 4, 2, 3))
    plan = Plan((0, 0))
    assert validate(Problem.of(buffers), plan) == []
    assert validate(Problem.of((replace(buffers[0], end=3), buffers[1])), plan) != []


def test_an_offset_below_the_arena_is_caught() -> None:
    (violation,) = validate(Problem.of((Buffer("a", 4, 0, 1),)), Plan((-16,)))
    assert "below the arena" in str(violation)


def test_a_plan_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="plan of 0 offsets"):
        validate(Problem.of((Buffer("a", 4, 0, 1),)), Plan(()))


@pytest.mark.parametrize(
    ("distance", "legal"), [(0, False), (1, False), (2, True), (3, True), (4, True), (-4, True)]
)
def test_an_overlap_is_allowed_from_its_distance_on(distance: int, legal: bool) -> None:
    problem = Problem.of(
        (Buffer("in", 4, 0, 2), Buffer("out", 4, 1, 3)), (Overlap(0, 1, 2, UNBOUNDED),)
    )
    assert (validate(problem, Plan((4, 4 + distance))) == []) == legal


@pytest.mark.parametrize(("size", "start", "end"), [(0, 0, 1), (-4, 0, 1), (4, 1, 1), (4, 2, 1)])
def test_an_impossible_buffer_is_refused(size: int, start: int, end: int) -> None:
    with pytest.raises(ValueError, match="'a'"):
        Buffer("a", size, start, end)


@settings(deadline=None)
@given(problems())
def test_pairs_and_neighbours_are_those_whose_life_spans_meet(problem: Problem) -> None:
    buffers = problem.buffers
    expected = {
        (i, j)
        for i, a in enumerate(buffers)
        for j, b in enumerate(buffers)
        if i < j and a.start < b.end and b.start < a.end
    }
    assert {tuple(sorted(pair)) for pair in concurrent_pairs(buffers)} == expected
    assert {(i, j) for i, n in enumerate(problem.neighbours) for j in n if i < j} == expected


def test_permits_are_known_from_both_sides() -> None:
    buffers = tuple(Buffer(name, 4, 0, 2) for name in "ab")
    problem = Problem.of(buffers, (Overlap(0, 1, 2, 3), Overlap(0, 1, 5, 6)))
    assert problem.permits == {(0, 1): ((2, 3), (5, 6)), (1, 0): ((-3, -2), (-6, -5))}


def test_a_plan_is_as_high_as_its_highest_byte() -> None:
    problem = Problem.of((Buffer("a", 48, 0, 1), Buffer("b", 16, 0, 1)))
    assert Plan((0, 16)).height(problem) == 48
    assert Plan(()).height(Problem.of(())) == 0
    assert Overlap(0, 1, 4, 4).is_alias and not Overlap(0, 1, 4, 5).is_alias


def test_a_violation_below_the_arena_says_which_bytes() -> None:
    (violation,) = validate(Problem.of((Buffer("a", 4, 0, 1),)), Plan((-16,)))
    assert (violation.bytes_from, violation.bytes_to) == (-16, -12)
    with pytest.raises(ValueError, match="longer than argument 1"):
        Plan((0,)).height(Problem.of((Buffer("a", 48, 0, 1), Buffer("b", 16, 0, 1))))
