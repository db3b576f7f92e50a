"""What a search says that it tried with each operator is what it evaluated."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from tests.models.handmade import MODELS
from tests.models.small import mystery, operator_alone, type_chain
from tests.tiling.small_searches import options, repeated, search
from tests.transforms.row_loops import chain
from tflm_planner.model.serde import read_model
from tflm_planner.support.stopping import Stop
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.segment_search import SegmentSearch
from tflm_planner.tiling.tilings import Tiling, Trial
from tflm_planner.tiling.trials import better_trials, trials_of, why_whole
from tflm_planner.transforms.tile.tile import band

NETWORK = chain((1, 1, 24), (3, 2, 8), (3, 1, 8), (1, 1, 4), size=32)


def tiling(size: int, slowdown: float, *ops: tuple[int, int]) -> Tiling:
    regions = tuple(band(first, last, 2) for first, last in ops)
    return Tiling(regions, size, slowdown, None, bind_views=True)


def test_the_smallest_that_is_fast_enough_comes_first() -> None:
    fast = [tiling(99, 1.0), tiling(90, 1.01, (0, 1)), tiling(80, 1.1, (1, 2))]
    slow = [tiling(40, 1.4, (0, 1)), tiling(60, 1.2, (2, 3)), tiling(70, 1.3, (3, 3))]
    ops = read_model(repeated()).main.ops[:6]
    found = trials_of(ops, fast, slow, {1, 4}, all_estimated=True)
    assert [trial.name for trial in found] == [op.outputs[0].name for op in ops]
    assert [(t.bytes, t.slowdown, t.fast_enough, t.promising) for t in found] == [
        (90, 1.01, True, False),
        (80, 1.1, True, True),
        (80, 1.1, True, False),
        (60, 1.2, False, False),
        (None, None, False, True),
        (None, None, False, False),
    ]


def test_of_two_searches_the_better_trial_is_taken() -> None:
    slow, fast = Trial("a", "", 40, 1.4, False, True), Trial("a", "", 90, 1.0, True)
    none = Trial("a", promising=False)
    assert better_trials([slow, fast, none], [fast, none, none]) == (
        replace(fast, promising=True),
        fast,
        none,
    )


@pytest.mark.parametrize("method", ["regions", "motes"])
def test_trials_are_those_of_the_tilings_that_were_evaluated(method: str) -> None:
    for data in (NETWORK, repeated()):
        found = search(data, method=method)
        assert len(found.trials) == len(read_model(data).main.ops)
        for tiled in (*found.front, *found.slower):
            for position in {p for region in tiled.regions for p in region.ops}:
                trial = found.trials[position]
                assert trial.bytes is not None and trial.slowdown is not None
                assert (not trial.fast_enough, trial.bytes) <= (tiled.slowdown > 1.1, tiled.bytes)
        for trial in found.trials:  # without a limit nothing is smaller than the best
            assert not trial.fast_enough or (trial.bytes or 0) >= found.best.bytes
        assert {trial.promising for trial in found.trials} <= (
            {None} if method == "motes" else {True, False}
        )


def test_no_estimate_is_no_verdict_where_the_search_was_ended() -> None:
    workers = Workers(NETWORK, options())
    workers.stop = Stop()
    with closing(workers):
        ended = SegmentSearch(options(), workers)
        assert {trial.promising for trial in ended.result().trials} == {None}
        ended.run()
        assert None not in {trial.promising for trial in ended.result().trials}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (mystery(16), "side effects or unknown meaning"),
        (operator_alone("TILE"), "no axis is known"),
        (MODELS["data_behind_the_flatbuffer"].make(), ""),
    ],
)
def test_what_can_only_run_as_a_whole_is_said_by_the_rule_that_tiles(data: bytes, why: str) -> None:
    (op,) = read_model(data).main.ops
    assert (why in why_whole(op)) and bool(why_whole(op)) == bool(why)


def test_operators_are_named_as_they_are_when_the_model_is_cleaned_up() -> None:
    """A conversion that cleaning up drops has no trial, and those behind it keep their names."""
    data = type_chain("int8", "int8", "int8", "float32")
    names = [trial.name for trial in search(data).trials]
    written = [op.outputs[0].name for op in read_model(data).main.ops]
    assert 0 < len(names) < len(written) and set(names) <= set(written)
