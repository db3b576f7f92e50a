"""Segmentations, against every segmentation there is."""

from __future__ import annotations

import random

import pytest

from tests.tiling.small_searches import options, repeated
from tflm_planner.tiling.estimate.interval import Interval
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.promising_segmentations import PromisingSegmentations
from tflm_planner.tiling.segment_evaluations import SegmentEvaluations
from tflm_planner.tiling.segmentation import InTiles, Segment, Segmenter, SegmentKey
from tflm_planner.tiling.tilings import Tiling
from tflm_planner.tiling.work import WorkBudget
from tflm_planner.transforms.tile.box_plan import Split


def key(first, end, parts):
    return SegmentKey(Interval(first, end), InTiles(Split(1, parts), "recompute"))


def every_segmentation(count, segments, cap, live_bytes, allowed):
    """All segmentations, by brute force: (tail, instructions)."""

    def from_position(position):
        if position == count:
            yield 0, 0
            return
        if live_bytes[position] <= cap:
            yield from from_position(position + 1)
        for segment in segments:
            if segment.interval.first == position and segment.head <= cap:
                for tail, instructions in from_position(segment.interval.end):
                    yield tail + segment.tail, instructions + segment.instructions

    return [(tail, cost) for tail, cost in from_position(0) if cost <= allowed]


@pytest.mark.parametrize("seed", range(30))
def test_a_segmentation_is_the_best_there_is(seed):
    chance = random.Random(seed)
    count, allowed = 7, 200
    live_bytes = [chance.randint(10, 100) for _ in range(count)]
    segments = []
    for k in range(12):
        first = chance.randrange(count)
        end = chance.randint(first + 1, count)
        cost = chance.randrange(0, 120)  # whole units: nothing is lost to rounding
        figures = chance.randint(5, 90), chance.randint(0, 50), cost
        segments.append(Segment(key(first, end, k + 2), *figures))
    segmenter = Segmenter(live_bytes, allowed)
    for segment in segments:
        segmenter.add(segment)
    for cap in (*segmenter.head_caps(), 9):
        truth = every_segmentation(count, segments, cap, live_bytes, allowed)
        solved = segmenter.best(cap)
        assert bool(solved) == bool(truth)
        for one in solved:
            assert one.head <= cap and (one.tail, one.instructions) in truth
            assert one.tail == min(t for t, c in truth if c <= one.instructions)
        if truth:
            assert solved[0].tail == min(t for t, _ in truth)


def test_a_segment_that_needs_more_than_estimated_is_not_chosen_again():
    segmenter = Segmenter([90, 90], 100)
    cheap = Segment(key(0, 2, 2), 20, 5, 0)
    other = Segment(key(0, 2, 3), 20, 9, 0)
    for segment in (cheap, other):
        segmenter.add(segment)
    assert [s.segments for s in segmenter.best(20)] == [(cheap,)]
    evaluated = Segment(cheap.key, 60, 5, 0, is_evaluated=True)
    segmenter.add(evaluated)
    assert [s.segments for s in segmenter.best(20)] == [(other,)]
    assert [s.segments for s in segmenter.best(60)] == [(evaluated,)]
    segmenter.remove(other)
    assert segmenter.best(20) == []


def test_estimates_that_are_dropped_hide_no_evaluated_segment():
    segmenter = Segmenter([90, 90], 100)
    promising = Segment(key(0, 2, 2), 20, 5, 0)
    evaluated = Segment(key(0, 2, 3), 20, 9, 0, is_evaluated=True)
    for segment in (promising, evaluated):
        segmenter.add(segment)
    assert [s.segments for s in segmenter.best(20)] == [(promising,)]
    segmenter.drop_estimates()
    assert [s.segments for s in segmenter.best(20)] == [(evaluated,)]
    assert segmenter.head_caps() == [20, 90]


def test_with_its_work_spent_a_search_still_offers_what_was_evaluated():
    segmenter = Segmenter([90, 90], 100)
    promising = Segment(key(0, 2, 2), 20, 5, 0)
    evaluated = Segment(key(0, 2, 3), 20, 9, 0, is_evaluated=True)
    for segment in (promising, evaluated):
        segmenter.add(segment)
    models, segments = nothing_evaluated()
    found = PromisingSegmentations(segmenter, segments, models, segments.options, True, 1.1)
    offered = list(found.evaluated_batches(print))
    assert [[one.segments for one in batch] for batch in offered] == [[(evaluated,)]]
    assert segments.count == 0


def nothing_evaluated() -> tuple[ModelEvaluations, SegmentEvaluations]:
    """A search of a model of equal blocks with no work to spend."""
    search_options = options()
    workers = Workers(repeated(), search_options)
    order = tuple(range(len(workers.evaluator.model.main.ops)))
    models = ModelEvaluations(workers, search_options, len(order), WorkBudget(0))
    return models, SegmentEvaluations(workers, search_options, models, order)


def test_a_smaller_model_that_is_slower_hides_no_fast_segmentation():
    models, segments = nothing_evaluated()
    least = models.untiled_tail
    smaller = Tiling((), least + 30, 1.08, None, True)
    models.tilings.append(smaller)
    offered = {}
    for slowdown in (1.1, 1.02):
        segmenter = Segmenter([90, 90], 100)
        segmenter.add(Segment(key(0, 2, 2), 60, 0, 0, is_evaluated=True))
        found = PromisingSegmentations(
            segmenter, segments, models, segments.options, True, slowdown
        )
        offered[slowdown] = [s for batch in found.evaluated_batches(print) for s in batch]
    assert not offered[1.1] and len(offered[1.02]) == 1
