"""Segmentations, against every segmentation there is."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.budget import DEFAULT_BUDGET, WorkBudget
from tflm_planner.tiling.candidates import PromisingSegmentations
from tflm_planner.tiling.segmentation import Segment, Segmenter, SegmentKey


def every_segmentation(count, segments, cap, live_bytes, allowed):
    """All segmentations, by brute force: (tail, instructions)."""

    def from_position(position):
        if position == count:
            yield 0, 0
            return
        if live_bytes[position] <= cap:
            yield from from_position(position + 1)
        for segment in segments:
            if segment.first == position and segment.head <= cap:
                for tail, instructions in from_position(segment.end):
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
        segments.append(Segment(first, end, *figures, SegmentKey(first, end, (1, k + 2))))
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
    cheap = Segment(0, 2, 20, 5, 0, SegmentKey(0, 2, (1, 2)))
    other = Segment(0, 2, 20, 9, 0, SegmentKey(0, 2, (1, 3)))
    for segment in (cheap, other):
        segmenter.add(segment)
    assert [s.segments for s in segmenter.best(20)] == [(cheap,)]
    evaluated = Segment(0, 2, 60, 5, 0, cheap.key, is_evaluated=True)
    segmenter.add(evaluated)
    assert [s.segments for s in segmenter.best(20)] == [(other,)]
    assert [s.segments for s in segmenter.best(60)] == [(evaluated,)]
    segmenter.remove(other)
    assert segmenter.best(20) == []


def test_estimates_that_are_dropped_hide_no_evaluated_segment():
    segmenter = Segmenter([90, 90], 100)
    promising = Segment(0, 2, 20, 5, 0, SegmentKey(0, 2, (1, 2)))
    evaluated = Segment(0, 2, 20, 9, 0, SegmentKey(0, 2, (1, 3)), is_evaluated=True)
    for segment in (promising, evaluated):
        segmenter.add(segment)
    assert [s.segments for s in segmenter.best(20)] == [(promising,)]
    segmenter.drop_estimates()
    assert [s.segments for s in segmenter.best(20)] == [(evaluated,)]
    assert segmenter.head_caps() == [20, 90]


def test_with_its_work_spent_a_search_still_offers_what_was_evaluated():
    segmenter = Segmenter([90, 90], 100)
    promising = Segment(0, 2, 20, 5, 0, SegmentKey(0, 2, (1, 2)))
    evaluated = Segment(0, 2, 20, 9, 0, SegmentKey(0, 2, (1, 3)), is_evaluated=True)
    for segment in (promising, evaluated):
        segmenter.add(segment)
    options = SimpleNamespace(
        search_budget=DEFAULT_BUDGET, objective="arena", operators=AllowedOperators.ALL, budget=None
    )
    models = SimpleNamespace(work=WorkBudget(0), best=SimpleNamespace(bytes=90), untiled_tail=0)
    segments = SimpleNamespace(models=models, options=options)
    offered = list(PromisingSegmentations(segmenter, segments, True).evaluated_batches(print))
    assert [[one.segments for one in batch] for batch in offered] == [[(evaluated,)]]
