"""Budgets: every constant gives its reason; work is counted by steps; vain steps end early."""

from __future__ import annotations

import ast
import inspect
import itertools
from dataclasses import FrozenInstanceError, fields

import pytest

from tflm_planner.tiling import budget
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.work import EarlyStop, WorkBudget


def test_every_constant_gives_its_reason():
    tree = ast.parse(inspect.getsource(budget))
    (body,) = (
        n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "SearchBudget"
    )
    explained = {
        field.target.id
        for field, reason in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(reason, ast.Expr)
        and isinstance(reason.value, ast.Constant)
    }
    assert explained == {field.name for field in fields(SearchBudget)}


def test_a_budget_cannot_change():
    with pytest.raises(FrozenInstanceError):
        SearchBudget().search_work = 1  # type: ignore[misc]


def test_a_step_spends_its_share_and_leaves_the_rest():
    work = WorkBudget(1000)
    work.begin_step(0.5, first_part=0.6)
    assert work.first_part_remaining == 300 and not work.is_first_part_spent
    work.spend(310)
    assert work.is_first_part_spent and work.first_part_remaining == 0 and not work.is_step_spent
    work.spend(190)
    assert work.is_first_part_spent and work.is_step_spent
    work.begin_step(1.0)
    assert work.first_part_remaining == work.remaining == 500


def test_a_step_ends_after_attempts_without_gain():
    stop = EarlyStop(max_attempts=2, least_gain=100, best=1000)
    stop.record(995)  # less than one part in a hundred
    assert stop.attempts_left == 1
    stop.record(980)
    assert stop.attempts_left == 2 and not stop.is_due
    stop.record(980, attempts=2)
    assert stop.is_due


def test_any_lower_bytes_are_a_gain_where_none_is_too_small():
    stop = EarlyStop(max_attempts=1, best=1000)
    stop.record(999)
    assert not stop.is_due
    stop.record(999)
    assert stop.is_due
