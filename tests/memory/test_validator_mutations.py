"""Corrupted plans must not pass: an offset moved, an alias forged, a life span cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import pytest

from tests.fuzz.random_models import model_of
from tests.fuzz.random_plans import EXCUSES, Case, case_of, judge, spoil
from tests.model_replay import PLAN, replay
from tests.models.handmade import MODELS
from tflm_planner.memory.problem import Buffer, Plan, Problem, Violation, validate
from tflm_planner.model.serde import read_model, write_model

NAMES = [
    "if_else", "one_subgraph_called_twice", "while_loop", "while_in_if", "call_once", "chain",
    "branches_of_different_depth", "several_outputs", "input_is_output",
    "views_on_the_outer_axis", "reshape_chain", "same_operand_twice", "unused_input",
]  # fmt: skip
MADE = [MODELS[name].make for name in NAMES] + [partial(model_of, seed) for seed in range(20, 27)]
IDS = [*NAMES, *(f"random {seed}" for seed in range(20, 27))]


@pytest.fixture(scope="module", params=MADE, ids=IDS)
def case(request: pytest.FixtureRequest) -> Case:
    """A planned model: hand-made, or random."""
    return case_of(request.param())


def pairs(case: Case) -> Iterator[tuple[int, int]]:
    """Buffers that live together."""
    for i, near in enumerate(case.problem.neighbours):
        yield from ((i, j) for j in near if i < j)


def test_the_plans_to_be_corrupted_are_legal(case: Case) -> None:
    assert validate(case.problem, case.plan) == []
    assert case.faults(case.plan) == []


def test_a_buffer_moved_into_another_is_caught(case: Case) -> None:
    """Every pair that lives together, from both ends and by one aligned step."""
    for i, j in pairs(case):
        for low, high in ((i, j), (j, i)):
            offsets = list(case.plan.offsets)
            size = case.problem.buffers[low].size
            offsets[high] = offsets[low] + size - 16
            moved = Plan(tuple(offsets))
            allowed = case.problem.may_share(low, high, size - 16)
            caught = any(
                _positions(case.problem, v) == (i, j) for v in validate(case.problem, moved)
            )
            assert caught != allowed, (i, j)


def test_a_forged_alias_is_caught(case: Case) -> None:
    """Two buffers that live together at one address, without permission for it."""
    forged = 0
    for i, j in pairs(case):
        if case.problem.may_share(i, j, 0):
            continue
        offsets = list(case.plan.offsets)
        offsets[j] = offsets[i]
        forged += 1
        wrong = validate(case.problem, Plan(tuple(offsets)))
        assert any(_positions(case.problem, v) == (i, j) for v in wrong), (i, j)
    assert forged or not list(pairs(case))


def test_a_permission_that_was_never_given_is_missed(case: Case) -> None:
    """Take the permissions away: every alias that the plan took must be reported."""
    problem, plan = case.problem, case.plan
    bare = Problem.of(problem.buffers)
    taken = {
        frozenset((o.first, o.second))
        for o in problem.overlaps
        if o.low <= plan.offsets[o.second] - plan.offsets[o.first] <= o.high
    }
    wrong = [_positions(bare, v) for v in validate(bare, plan)]
    for pair in taken:
        i, j = sorted(pair)
        a, b = problem.buffers[i], problem.buffers[j]
        together = max(a.start, b.start) < min(a.end, b.end)
        at = plan.offsets
        touch = max(at[i], at[j]) < min(at[i] + a.size, at[j] + b.size)
        assert ((i, j) in wrong) == (together and touch)


@pytest.mark.mostly_slow(fast=4)
def test_a_plan_made_with_cut_life_spans_is_caught(case: Case) -> None:
    """Plan with each buffer forgotten one step early, greedily: if that used the room, it is
    reported by the validator that has the true spans, and by nothing less."""
    problem = case.problem
    for i, buffer in enumerate(problem.buffers):
        if buffer.end - buffer.start < 2:
            continue
        cut = replace(buffer, end=buffer.end - 1)
        buffers = (*problem.buffers[:i], cut, *problem.buffers[i + 1 :])
        for j in range(len(buffers)):
            if buffers[j].start == buffer.end - 1:  # born when the other has just been forgotten
                offsets = list(case.plan.offsets)
                offsets[j] = offsets[i]
                plan = Plan(tuple(offsets))
                forgetful = Problem.of(buffers)
                true = {_positions(problem, v) for v in validate(problem, plan)}
                lied = {_positions(forgetful, v) for v in validate(forgetful, plan)}
                pair = min(i, j), max(i, j)
                assert pair not in lied
                assert pair in true or problem.may_share(i, j, 0)


def test_a_buffer_below_the_arena_is_caught(case: Case) -> None:
    for i in range(len(case.plan.offsets)):
        offsets = list(case.plan.offsets)
        offsets[i] = -16
        wrong = validate(case.problem, Plan(tuple(offsets)))
        assert any(v.second is None for v in wrong)


def test_a_plan_of_the_wrong_length_is_refused() -> None:
    problem = Problem.of((Buffer("a", 16, 0, 1),))
    with pytest.raises(ValueError, match="2 offsets"):
        validate(problem, Plan((0, 16)))


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.mostly_slow(fast=3)
def test_the_validator_is_never_laxer_than_the_replay(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = case_of(model_of(seed))
    for _ in range(12):
        plan = spoil(case.plan, case.problem, rng)
        verdict, detail = judge(case, plan)
        assert not verdict.isupper(), f"{verdict}: {detail}"
        assert verdict != "stricter" or detail in EXCUSES


@pytest.mark.mostly_slow(fast=3)
def test_a_corrupted_file_is_caught_by_the_replay_too(case: Case) -> None:
    """The plan in the bytes of the file, not in memory: the second tensor onto the first."""
    places = case.tensor_places()
    for i, j in islice(pairs(case), 40):
        if max(i, j) >= len(places) or case.problem.may_share(i, j, 0):
            continue
        model = read_model(case.data)
        (entry,) = [m for m in model.metadata if m.name == PLAN.decode()]
        assert entry.buffer.data is not None
        words = np.frombuffer(entry.buffer.data.tobytes(), "<i4").copy()
        starts = np.cumsum([0] + [len(g.tensors) for g in model.graphs])
        at = [3 + int(starts[g]) + t for g, t in (places[i], places[j])]
        words[at[1]] = words[at[0]]
        entry.buffer.data = words.view(np.uint8)
        offsets = list(case.plan.offsets)
        offsets[j] = offsets[i]
        violations = validate(case.problem, Plan(tuple(offsets)))
        assert violations
        if all(case.excuse(Plan(tuple(offsets)), v) is None for v in violations):
            assert replay(write_model(model))


def _positions(problem: Problem, violation: Violation) -> tuple[int, ...]:
    """Where the buffers of a violation stand in the problem. Equal ones stand at several places,
    so it is the object that counts."""
    both = (violation.first, violation.second)
    return tuple(i for i, b in enumerate(problem.buffers) if any(b is one for one in both))
