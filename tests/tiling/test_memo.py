"""What evaluations remember is what they would find anew."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.models.generator import random_model
from tests.models.random_loops import random_loops_model
from tests.tiling.small_searches import options, repeated
from tests.transforms.test_tile_odd_graphs import Chain
from tflm_planner.cost import instructions_of, latency_of
from tflm_planner.memory.allocators.packing import pack
from tflm_planner.memory.problem import Buffer, Overlap, Problem
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.arena.predict import ArenaBytes, arena_bytes_of, arena_of
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluation import evaluate
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator
from tflm_planner.tiling.evaluate.memo import PlanMemo, TiledMemo
from tflm_planner.tiling.spelling_offers import OfferMemo
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

ORDERS = "file", "rpo", "best"


def pointwise_chain() -> bytes:
    """1x1 convolutions, two of them of one form, and a window."""
    net = Chain((1, 16, 16, 8))
    for channels in (16, 16, 16):
        net.conv(channels, 1)
    net.pool()
    return net.finish()


def candidates(operators: int, seed: int) -> list[Candidate]:
    """Random regions, each in all orders, bindings and efforts, with other spellings and without,
    in a random sequence."""
    rng = Random(seed)
    chosen: list[Candidate] = []
    for _ in range(2):
        first = rng.randrange(operators - 1)
        ops = tuple(range(first, min(first + rng.randint(1, 3), operators)))
        regions = (TiledRegion(ops, (Split(1, rng.choice((2, 4))),), border="waste"),)
        chosen += [
            Candidate(regions, bind_views, None, effort, order, respell)
            for order in ORDERS
            for bind_views in (True, False)
            for effort in (Effort.FIRST_FITS, Effort.CLIMB)
            for respell in (None, 1 << 40)
        ]
    rng.shuffle(chosen)
    return chosen


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_evaluations_with_a_memo_are_those_without(seed: int) -> None:
    for data in (pointwise_chain(), repeated(add_at=seed)):
        evaluator = Evaluator(data, options())
        model, given = evaluator.model, evaluator.options
        for candidate in candidates(len(model.main.ops), seed):
            found = evaluator.evaluate(EvaluationRequest(candidate))
            assert found == evaluate(model, candidate, given), candidate


def test_equal_problems_have_one_plan() -> None:
    """Names apart; other sizes, life spans, overlaps, duties or rounds make another problem."""
    buffers = tuple(Buffer(f"b{i}", 16 * (i % 5 + 1), i, i + 3) for i in range(12))
    overlaps = (Overlap(0, 1, 0, 0), Overlap(1, 2, -16, 32))
    problem = Problem.of(buffers, overlaps)
    memo = PlanMemo()
    plan = memo.pack(problem, (), 100)
    renamed = Problem.of(tuple(replace(b, name="") for b in buffers), overlaps)
    assert memo.pack(renamed, (), 100) is plan
    longer = (replace(buffers[0], end=5), *buffers[1:])
    wider = (replace(buffers[0], size=64), *buffers[1:])
    others = (
        (Problem.of(longer, overlaps), (), 100),
        (Problem.of(wider, overlaps), (), 100),
        (Problem.of(buffers, overlaps[:1]), (), 100),
        (problem, overlaps[:1], 100),
        (problem, (), 0),
    )
    for other, required, rounds in others:
        found = memo.pack(other, required, rounds)
        assert found is not plan and found == pack(other, required, rounds)


def test_what_was_packed_first_is_forgotten_first() -> None:
    problems = [
        Problem.of(tuple(Buffer("b", 16 + i, k, k + 2) for k in range(4))) for i in range(3)
    ]
    memo = PlanMemo(buffers=8)
    first, second, _ = (memo.pack(problem, (), 0) for problem in problems)
    assert memo.pack(problems[1], (), 0) is second
    assert memo.pack(problems[0], (), 0) is not first


def test_tiled_models_are_made_once_and_never_changed() -> None:
    evaluator = Evaluator(repeated(), options())
    memo = TiledMemo(evaluator.model, evaluator.options, evaluator.used_kinds, operators=60)
    region = TiledRegion((0, 1, 2), (Split(1, 4),), border="waste")
    candidate = Candidate((region,), True)
    family = memo.of(candidate)
    assert family is not None and memo.of(replace(candidate, effort=Effort.CLIMB)) is family
    one, orders = family.in_order("best", evaluator.options)
    again, same_orders = family.in_order("best", evaluator.options)
    assert orders == same_orders and one.model is not again.model
    assert [op.kind for op in one.model.ops()] == [op.kind for op in again.model.ops()]
    assert memo.of(replace(candidate, regions=(region, region))) is None  # they share operators
    for parts in (2, 3, 5):
        memo.of(replace(candidate, regions=(replace(region, splits=(Split(1, parts),)),)))
    assert memo.of(candidate) is not family


def test_operators_of_one_form_have_one_offer() -> None:
    model, kernels = read_model(pointwise_chain()), options().kernels
    memo = OfferMemo(kernels)
    first, second, third, pool = model.main.ops
    offers = memo.of(second, rows=True)
    assert memo.of(third, rows=True) is offers
    assert offers is not None and offers.freed is not None
    assert len(offers.offers) > 1
    assert memo.of(first, rows=True) is not offers
    assert memo.of(second, rows=False) != offers
    for op in (first, second, third):
        assert memo.of(op, rows=True) == OfferMemo(kernels).of(op, rows=True)
    assert memo.of(pool, rows=True) is None


@pytest.mark.parametrize("seed", range(6))
def test_figures_alone_are_those_of_the_reports(seed: int) -> None:
    kernels = options().kernels
    for data in (random_model(np.random.default_rng(seed)), random_loops_model(seed)):
        model = read_model(data)
        timeline = timeline_of(model, kernels.scratch_of)
        plan = pack(planning_problem(timeline, kernels.input_overlaps_of), (), 0)
        placed = dict(zip(timeline.planned, plan.offsets, strict=False))
        for offsets in (None, placed):
            latency = latency_of(model, kernels.target, offsets)
            assert instructions_of(model, kernels.target, offsets) == latency.instructions
            arena = arena_of(model, kernels.target, offsets)
            figures = ArenaBytes(arena.head, arena.tail, arena.arena)
            assert arena_bytes_of(model, kernels.target, offsets) == figures
