"""A model searched again as if operators were spelled in their freest way: what is found is real,
and never worse."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from tests.models.small import Chain
from tests.tiling.small_searches import options
from tests.tiling.test_memo import pointwise_chain
from tflm_planner.model.serde import read_model
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.liveness import no_input_overlaps
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.tiling import permissions
from tflm_planner.tiling.anticipation import promises_more, search_anticipating
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.freest_spellings import FreestOverlaps
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.permissions import search_by_permission
from tflm_planner.tiling.search import search_tiles
from tflm_planner.tiling.spelling_offers import OfferMemo

M4 = kernels_of(load_target("cortex-m4/cmsis-nn"))
REFERENCE = kernels_of(load_target("x86-64/reference"))


def bottlenecks() -> bytes:
    """Wide 1x1 convolutions and windows on an image, then on a small one."""
    net = Chain((1, 24, 24, 4))
    for _ in range(2):
        net.conv(24, 1)
        net.conv(8, 3)
    net.pool()
    net.conv(32, 1)
    net.conv(32, 1)
    return net.finish()


def small() -> TilingOptions:
    """A search of own operators that counts every model as large."""
    found = options()
    budget = replace(found.search_budget, anticipating_operators=0, anticipating_least_gain=100)
    return replace(found, search_budget=budget)


@pytest.mark.parametrize("rows", [True, False])
def test_the_freest_overlap_is_that_of_the_freest_spelling(rows: bool) -> None:
    rule = FreestOverlaps(M4, rows)
    assert pickle.loads(pickle.dumps(rule)) == rule, "it is sent to other processes"
    for op in read_model(pointwise_chain()).main.ops:
        offers = OfferMemo(M4).of(op, rows=rows)
        overlaps = [*rule(op)]
        if offers is None or offers.freed is None:
            assert overlaps == [*M4.input_overlaps_of(op)]
        else:
            (overlap,) = overlaps
            assert (overlap.operand, overlap.result) == (op.inputs[0], op.outputs[0])
            assert overlap.low == offers.freed
            assert all(overlap.low < known.low for known in M4.input_overlaps_of(op))


def test_what_has_no_other_spelling_is_not_searched_again() -> None:
    ops = read_model(pointwise_chain()).main.ops
    assert FreestOverlaps(M4, True).frees(ops)
    assert not FreestOverlaps(M4, True).frees(op for op in ops if op.kind != "CONV_2D")
    assert not FreestOverlaps(REFERENCE, True).frees(ops), "these may overlap as they are"


def test_large_models_that_tiles_helped_are_searched_again() -> None:
    data, limits = bottlenecks(), small()
    workers = Workers(data, limits)
    try:
        found = search_tiles(data, limits, workers=workers)
        assert found.best.is_changed
        assert promises_more(found, limits, workers)
        alone = replace(found, front=())  # the model as it is may be off the front
        assert promises_more(alone, limits, workers)
        large = replace(limits.search_budget, anticipating_operators=120)
        assert not promises_more(found, replace(limits, search_budget=large), workers)
        assert not promises_more(found, replace(limits, method="motes"), workers)
        apart = replace(limits, input_overlaps_of=no_input_overlaps)
        assert not promises_more(found, apart, workers)
        dear = replace(limits.search_budget, anticipating_least_gain=1)
        assert not promises_more(found, replace(limits, search_budget=dear), workers)
    finally:
        workers.close()


def test_its_tilings_are_planned_with_true_overlaps() -> None:
    """Each comes out the same where nobody anticipates anything."""
    data, limits = bottlenecks(), small()
    workers = Workers(data, limits)
    workers.stop = Stop()
    try:
        found = search_anticipating(data, limits, lambda _: None, workers)
        assert found.best.respell is not None, "other spellings pay here"
        assert found.best.slowdown <= limits.max_slowdown
        assert all(t.slowdown <= limits.max_slowdown for t in found.front)
    finally:
        workers.close()


def test_the_result_is_never_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    data, limits = bottlenecks(), small()
    both = search_by_permission(data, limits).result
    monkeypatch.setattr(permissions, "promises_more", lambda *_: False)
    alone = search_by_permission(data, limits).result
    assert both.best.bytes <= alone.best.bytes
    for tiling in alone.front:
        better = (t for t in both.front if t.bytes <= tiling.bytes)
        assert any(t.slowdown <= tiling.slowdown for t in better)
