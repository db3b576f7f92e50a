"""Packing stage by stage: legal, deterministic, and no worse than packing everything at once."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tests.memory.random_problems import problems
from tflm_planner.memory.allocators import packing, stages
from tflm_planner.memory.allocators.arrays import Arrays
from tflm_planner.memory.allocators.climbing import climb
from tflm_planner.memory.allocators.conflicts import conflicts_of
from tflm_planner.memory.allocators.greedy import GreedyPlacer
from tflm_planner.memory.allocators.items import bind, choose_all
from tflm_planner.memory.allocators.packing import pack
from tflm_planner.memory.bounds import chained_bound, live_bound
from tflm_planner.memory.budgets import DEFAULT_PACK_BUDGET
from tflm_planner.memory.problem import UNBOUNDED, Buffer, Overlap, Problem, validate


def blocks(seed: int, count: int, width: int) -> Problem:
    """Blocks of buffers one after the other; a thin one leads from each to the next."""
    rng = random.Random(seed)
    buffers: list[Buffer] = []
    for n in range(count):
        start = 20 * n
        for k in range(width):
            first = start + rng.randrange(18)
            end = min(first + 1 + rng.randrange(6), start + 20)
            buffers.append(Buffer(f"{n}.{k}", 16 * rng.randint(1, 60), first, end))
        buffers.append(Buffer(f"{n}>", 16 * rng.randint(1, 8), start + 15, start + 27))
    overlaps = [
        Overlap(i, i + 1, 0, 0)
        for i in range(0, len(buffers) - 1, 5)
        if buffers[i].start < buffers[i + 1].end and buffers[i + 1].start < buffers[i].end
    ]
    return Problem.of(tuple(buffers), tuple(overlaps))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.mostly_slow(fast=2)
def test_many_buffers_come_near_their_bound(seed: int) -> None:
    problem = blocks(seed, 40, 16)
    assert len(problem.buffers) > DEFAULT_PACK_BUDGET.buffers_at_once
    plan = pack(problem, ())
    assert validate(problem, plan) == [] and pack(problem, ()) == plan
    at_once = min(
        max(o + h for o, h in zip(offsets, items.heights, strict=True))
        for items in (choose_all(problem), bind(problem, ()))
        for _, offsets in GreedyPlacer(items).first_fits()
    )
    assert plan.height(problem) <= at_once
    assert plan.height(problem) <= 1.05 * live_bound(problem)


def sliding(seed: int) -> Problem:
    """Layers one after the other, some of which may trail what they read, and random others."""
    rng = random.Random(seed)
    layers = [Buffer(f"l{k}", 16 * rng.randint(20, 40), k, k + 2) for k in range(24)]
    others = [Buffer(f"o{k}", 16 * rng.randint(1, 6), k, k + 2) for k in range(0, 24, 3)]
    trailing = [
        Overlap(k + 1, k, 16 * rng.randint(0, 3), UNBOUNDED)
        for k in range(len(layers) - 1)
        if rng.random() < 0.8
    ]
    return Problem.of((*layers, *others), trailing)


def test_what_chains_need_ends_climbs_and_changes_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    is_higher = [chained_bound(p, live_bound(p)) > live_bound(p) for p in map(sliding, range(20))]
    assert any(is_higher)
    plans = [pack(sliding(seed), (), rounds=300) for seed in range(20)]
    monkeypatch.setattr(packing, "chained_bound", lambda _, bound: bound)
    assert plans == [pack(sliding(seed), (), rounds=300) for seed in range(20)]


def tangled(seed: int, count: int, steps: int) -> Problem:
    """Buffers of random sizes and life spans, some of them long."""
    rng = random.Random(seed)
    buffers: list[Buffer] = []
    for n in range(count):
        start, size = rng.randrange(steps), 16 * rng.randint(1, 60)
        end = min(start + 1 + int(rng.expovariate(1 / 8)), steps + 1)
        buffers.append(Buffer(f"{n}", size, start, end))
    return Problem.of(tuple(buffers))


def test_of_stages_and_the_whole_the_lower_plan_is_taken() -> None:
    both = replace(DEFAULT_PACK_BUDGET, buffers_at_once=40)
    stages_only = replace(both, buffers_both_ways=40)
    signs: set[bool] = set()
    for seed in (1, 4):  # the whole is lower in one, stages in the other
        problem = tangled(seed, 100, 60)
        staged, whole, lower = (
            pack(problem, (), budget=budget).height(problem)
            for budget in (stages_only, DEFAULT_PACK_BUDGET, both)
        )
        assert lower == min(staged, whole) and staged != whole
        signs.add(staged < whole)
    assert signs == {True, False}


@settings(deadline=None)  # the first one compiles
@given(problems(most=9))
def test_arrays_are_the_items(problem: Problem) -> None:
    for items in (choose_all(problem), bind(problem, ())):
        arrays = Arrays.of(items)
        entries = [
            (k, other, low, high)
            for k, near in enumerate(conflicts_of(items))
            for other, stretches in near.items()
            for low, high in stretches
        ]
        rows = np.repeat(np.arange(len(items)), np.diff(arrays.starts))
        columns = (rows, arrays.other, arrays.low, arrays.high)
        assert entries == list(zip(*(c.tolist() for c in columns), strict=True))
        assert items.heights == tuple(arrays.heights.tolist())
        assert [order for _, order in GreedyPlacer(items).orders()] == [
            o.tolist() for o in arrays.orders()
        ]


@given(problems(most=9))
def test_stages_are_legal(problem: Problem) -> None:
    for items in (choose_all(problem), bind(problem, ())):
        for rounds in (0, 40):
            offsets = stages.place_stages(items, live_bound(problem), rounds)
            assert min(offsets) >= 0
            assert validate(problem, items.plan(offsets)) == []


@pytest.mark.parametrize("seed", range(10))
def test_what_is_given_stays(seed: int) -> None:
    problem = blocks(seed, 3, 10)
    items = bind(problem, ())
    rng = random.Random(seed)
    arrays = Arrays.of(items)
    half = rng.sample(range(len(items)), len(items) // 2)
    rest = [k for k in range(len(items)) if k not in half]
    given = climb(arrays, half, bound=0, rounds=50)
    assert all(given[k] == -1 for k in rest)
    made = climb(arrays, rest, bound=0, rounds=200, given=given)
    assert np.array_equal(made[half], given[half])
    assert validate(problem, items.plan(made.tolist())) == []
