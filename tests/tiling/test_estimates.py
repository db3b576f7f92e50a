"""Estimates of tiles, against evaluations of the same tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import needs_tflm, published
from tests.models.generator import random_model
from tests.models.registry import SCALE, conv, start
from tests.models.small import Chain
from tests.tiling.small_searches import ALL_BUT_LOOPS, SMALL, options
from tflm_planner.pipeline import api
from tflm_planner.tiling.estimate.interval import Interval, ScheduleInterval
from tflm_planner.tiling.estimate.tiles import EstimateLimits, estimate_tiles
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

FAR = 1 << 60


@pytest.mark.parametrize(("first", "end", "parts"), [(0, 4, 2), (2, 4, 4), (1, 3, 3), (4, 7, 6)])
def test_estimates_come_close_to_evaluations(first, end, parts):
    """The tail to a few bytes an operator, the head to a few per cent."""
    evaluator = Evaluator(published("vww_96_int8"), options())
    order = tuple(range(len(evaluator.model.main.ops)))
    limits = EstimateLimits(FAR, FAR)
    found = estimate_tiles(evaluator.linear_schedule(order), end, 1, [parts], [first], limits)
    estimate = next(s for s in found if s.interval.first == first)
    region = TiledRegion(tuple(range(end - first)), (Split(1, parts),), border="waste")
    candidate = Candidate((region,), True, effort=Effort.CLIMB)
    real = evaluator.evaluate(
        EvaluationRequest(candidate, ScheduleInterval(order, Interval(first, end)))
    )
    assert real is not None
    assert 0.9 * real.head <= estimate.head <= real.head
    assert abs(real.tail - estimate.tail) <= 16 * (end - first) * parts
    assert estimate.instructions <= real.instructions


@pytest.mark.parametrize("policy", ["recompute", "merge"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.mostly_slow(fast=2)
def test_part_counts_that_are_estimated_together_equal_each_alone(seed, policy):
    """Over branches, odd windows and operands that tiles need whole."""
    evaluator = Evaluator(random_model(seed, steps=14), options(operators=ALL_BUT_LOOPS))
    order = tuple(range(len(evaluator.model.main.ops)))
    schedule, part_counts, many = evaluator.linear_schedule(order), [2, 3, 5, 8], 0
    for end in range(1, len(order) + 1):
        axes = [len(t.shape or ()) for t in schedule.ops[end - 1].outputs[:1]]
        for axis in range(sum(axes)):
            limits = EstimateLimits(FAR, 1 << 20)
            together = list(
                estimate_tiles(schedule, end, axis, part_counts, order[:end], limits, policy)
            )
            alone = [
                estimate
                for n in part_counts
                for estimate in estimate_tiles(
                    schedule, end, axis, [n], order[:end], limits, policy
                )
            ]
            many += len(alone)
            assert sorted(together, key=str) == sorted(alone, key=str)
    assert many > 20


def taken_apart(kind: str, shape=(1, 24, 16, 16)) -> bytes:
    """A convolution whose channels go different ways, and meet again before the next one."""
    net, graph, x = start(shape)
    x = conv(graph, x, shape, "before")
    count = 2 if kind != "UNPACK" else shape[3]
    small = (*shape[:3], shape[3] // 2) if kind != "UNPACK" else shape[:3]
    parts = [graph.tensor(f"part{k}", small, scale=SCALE, zero=3) for k in range(count)]
    axis = graph.constant("axis", 3)
    if kind == "SPLIT":
        graph.op("SPLIT", [axis, x], parts, "SplitOptions", numSplits=2)
    elif kind == "SPLIT_V":
        sizes = graph.constant("sizes", [small[3], small[3]])
        graph.op("SPLIT_V", [x, sizes, axis], parts, "SplitVOptions", numSplits=2)
    else:
        graph.op("UNPACK", [x], parts, "UnpackOptions", num=count, axis=3)
    for k in range(0, count, 2):
        again = graph.tensor(f"again{k}", small, scale=SCALE, zero=3)
        graph.op("RELU", [parts[k]], [again], version=2)
        parts[k] = again
    y = graph.tensor("together", shape, scale=SCALE, zero=3)
    if kind == "UNPACK":
        graph.op("PACK", parts, [y], "PackOptions", valuesCount=count, axis=3)
    else:
        graph.op("CONCATENATION", parts, [y], "ConcatenationOptions", axis=3)
    graph.outputs(conv(graph, y, shape, "after"))
    return net.finish()


@pytest.mark.parametrize("kind", ["SPLIT", "SPLIT_V", "UNPACK"])
@pytest.mark.parametrize("parts", [2, 3, 6])
@pytest.mark.mostly_slow(fast=3)
def test_operators_with_several_results_are_estimated(kind, parts):
    """As close to evaluations as others; estimates know that the parts are copies."""
    data = taken_apart(kind, (1, 24, 16, 4 if kind == "UNPACK" else 16))
    evaluator = Evaluator(data, options(operators=ALL_BUT_LOOPS))
    order = tuple(range(len(evaluator.model.main.ops)))
    schedule, end = evaluator.linear_schedule(order), len(order)
    found = estimate_tiles(schedule, end, 1, [parts], order, EstimateLimits(FAR, FAR))
    estimate = next(s for s in found if s.interval.first == 0)
    region = TiledRegion(order, (Split(1, parts),), border="waste")
    evaluations = [
        evaluator.evaluate(
            EvaluationRequest(
                Candidate((region,), bind_views, None, Effort.CLIMB),
                ScheduleInterval(order, Interval(0, end)),
            )
        )
        for bind_views in (True, False)
    ]
    heads = [real.head for real in evaluations if real is not None]
    assert len(heads) == 2 and 0.9 * min(heads) <= estimate.head <= min(heads)
    assert estimate.needs_slice and all("SLICE" in real.new_kinds for real in evaluations)


@needs_tflm
@pytest.mark.slow
def test_tiles_go_through_operators_with_several_results():
    """The large tensor lies between two convolutions: regions that lower the head hold both."""
    chain = Chain((1, 16, 16, 4))
    chain.conv(64, 3)
    halves = [chain.tensor((1, 16, 16, 32)) for _ in range(2)]
    axis = chain.graph.constant("axis", 3)
    chain.graph.op("SPLIT", [axis, chain.x], halves, "SplitOptions", numSplits=2)
    again = chain.tensor((1, 16, 16, 32))
    chain.graph.op("RELU", [halves[0]], [again], version=2)
    y = chain.tensor(chain.shape)
    chain.graph.op("CONCATENATION", [halves[1], again], [y], "ConcatenationOptions", axis=3)
    chain.x = y
    chain.conv(4, 1)
    tiles = api.TilePermission(
        max_slowdown=2.0,
        operators=ALL_BUT_LOOPS,
        objective="head",
        workers=1,
        search_budget=replace(SMALL, search_work=500),
    )
    options = api.PlanOptions(api.MemoryOptions(time_limit=120.0), tiles=tiles)
    report = api.plan(chain.finish(), options=options).report
    assert report.verified and report.after.head < report.before.head // 3
