"""Intervals that are alike: only those with equal evaluations share one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.models.registry import SCALE, noise, start
from tests.tiling.small_searches import ALL_BUT_LOOPS, SHAPE, options, repeated
from tflm_planner.tiling.estimate.interval import Interval, ScheduleInterval
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.equivalence import IntervalSignatures
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion


def signatures(data: bytes) -> IntervalSignatures:
    evaluator = Evaluator(data, options(operators=ALL_BUT_LOOPS))
    return IntervalSignatures(
        evaluator.linear_schedule(tuple(range(len(evaluator.model.main.ops))))
    )


def test_repeated_blocks_are_equivalent_and_others_are_not():
    same = signatures(repeated())
    assert (
        len({same.of(Interval(k, k + 4)) for k in (2, 4, 6)}) == 1
    )  # the input is scaled otherwise
    assert (
        len({same.of(Interval(k, k + 4)) for k in (2, 3)}) == 2
    )  # they begin with other operators
    assert same.of(Interval(8, 12)) != same.of(Interval(6, 10))  # its result is the model's
    assert len({same.of(Interval(2, end)) for end in range(3, 8)}) == 5
    other = signatures(repeated(add_at=2))
    assert other.of(Interval(2, 6)) != same.of(Interval(2, 6))


@pytest.mark.parametrize("target", ["cortex-m4/cmsis-nn", "cortex-m4/cmsis-nn+lean"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.mostly_slow(fast=2)
@pytest.mark.mostly_long(short=4)
def test_equivalent_intervals_have_equal_evaluations(seed, target):
    """Over all intervals of a model with repeated blocks, in tiles and in loops."""
    data = repeated(add_at=seed)
    asked = options(target, operators=ALL_BUT_LOOPS)
    evaluator = Evaluator(data, asked)
    order = tuple(range(len(evaluator.model.main.ops)))
    known = {}
    pairs = [(first, first + n) for n in (2, 3, 4) for first in range(len(order) - n)]
    for first, end in pairs:
        ops = tuple(range(end - first))
        for region in (
            TiledRegion(ops, (Split(1, 2),), border="waste"),
            LoopedRegion(ops, 2, "reverse"),
        ):
            request = EvaluationRequest(
                Candidate((region,), True, None, Effort.CLIMB),
                ScheduleInterval(order, Interval(first, end)),
            )
            evaluation, key = evaluator.evaluate(request), evaluator.key(request)
            assert known.setdefault(key, evaluation) == evaluation
    assert len(known) < 2 * len(pairs)


def quantized_at_random(seed: int) -> bytes:
    """Ten convolutions, of 8 and of 16 channels. Their multipliers and shifts are equal, or parts
    of each other, or not at all, whatever the scales say; so are their zero points."""
    chance = random.Random(seed)
    net, graph, x = start((*SHAPE[:3], 16))
    before, depth = SCALE, 16
    for i in range(10):
        channels = 8 if i % 2 == 0 else 16
        half = np.repeat([0.5, 1.0], channels // 2)
        spread = chance.choice((np.ones(channels), half, np.linspace(0.6, 1.4, channels)))
        after = SCALE * chance.choice((1, 2))  # made up for by the filter
        scales = np.asarray(spread * after / before, np.float32) / 1024
        kernel = noise((channels, 1, 1, depth), seed=i)
        weights = graph.constant(f"layer{i}/filter", kernel, "int8", scale=scales)
        shape = (*SHAPE[:3], channels)
        out = graph.tensor(f"layer{i}", shape, scale=after, zero=chance.choice((2, 3)))
        ones = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
        graph.op("CONV_2D", [x, weights, -1], [out], "Conv2DOptions", version=3, **ones)
        x, before, depth = out, after, channels
    graph.outputs(x)
    return net.finish()


@pytest.mark.parametrize("seed", (0, 3, 24, 42))
@pytest.mark.mostly_slow(fast=1)
def test_equivalent_intervals_keep_as_much_in_lean_firmware(seed):
    """Where parameters lie is a matter of their values: seed 3 has equal arrays, 24 and 42 some
    that lie in others."""
    asked = options("cortex-m4/cmsis-nn+lean", operators=ALL_BUT_LOOPS)
    evaluator = Evaluator(quantized_at_random(seed), asked)
    order = tuple(range(10))
    known, asked_twice = {}, 0
    for first, end in ((first, first + n) for n in (1, 2, 3, 4) for first in range(10 - n)):
        for parts in (2, 3):
            region = TiledRegion(tuple(range(end - first)), (Split(1, parts),), border="waste")
            request = EvaluationRequest(
                Candidate((region,), True, None, Effort.CLIMB),
                ScheduleInterval(order, Interval(first, end)),
            )
            evaluation, key = evaluator.evaluate(request), evaluator.key(request)
            asked_twice += key in known
            assert known.setdefault(key, evaluation) == evaluation
    assert asked_twice > 5
