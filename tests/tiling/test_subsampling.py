"""A second search where values need not be computed at every pixel."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.models.stages import random_stages
from tests.short_searches import short_search
from tests.tiling.test_loops import permitted
from tests.transforms.test_subsample import Stage
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning.refusals import Refusal, RefusalCauses
from tflm_planner.tiling.permissions import PermissionResults, search_by_permission
from tflm_planner.tiling.tilings import Tiling
from tflm_planner.transforms.subsample import Subsample

pytestmark = pytest.mark.slow

OWN = api.AllowedOperators.NONE
FEW = short_search(400)
"""Enough for a model of eight operators."""


def begins_a_stage(*, pooled: bool) -> bytes:
    """A block whose sum two convolutions with a stride of 2 read, as in a ResNet50: at the pixels
    that they read, a quarter of it is enough. pooled: whether the firmware has a pool."""
    net = Stage((1, 24, 24, 4))
    block = net.conv(16, 1)
    net.conv(4, 3)
    total = net.add(block, net.conv(16, 1))
    shape = net.shape
    left, right = net.skipping(32, total, shape), net.skipping(8, total, shape)
    net.x, net.shape = right, (1, 12, 12, 8)
    net.conv(8, 3)
    return net.finish(*([net.average(net.x, 2, 2)] if pooled else [net.x]), left)


def subsampled(results: PermissionResults) -> list[Tiling]:
    return [t for t in results.result.front if t.subsample is not None]


@needs_tflm
def test_what_it_finds_is_smaller_and_proved() -> None:
    data = begins_a_stage(pooled=True)
    results = search_by_permission(data, permitted(operators=OWN, search_budget=FEW))
    assert results.result.best.subsample == Subsample("AVERAGE_POOL_2D")
    assert all(not t.new_kinds for t in results.result.front)
    tiles = api.TilePermission(operators=OWN, max_slowdown=1.3, search_budget=FEW)
    plan = api.plan(data, options=api.PlanOptions(tiles=tiles))
    whole = api.plan(data, options=api.PlanOptions(tiles=None))
    assert plan.report.verified and plan.report.after.arena.arena < whole.report.after.arena.arena


def test_a_pick_that_the_firmware_lacks_is_a_new_operator() -> None:
    data = begins_a_stage(pooled=False)
    assert not subsampled(search_by_permission(data, permitted(operators=OWN, search_budget=FEW)))
    found = search_by_permission(data, permitted(search_budget=FEW))
    assert subsampled(found)
    assert all("MAX_POOL_2D" in t.new_kinds for t in subsampled(found))
    assert found.same_firmware is not None and found.same_firmware.subsample is None


@pytest.mark.usefixtures("four_cores")
@pytest.mark.long
def test_the_same_whatever_the_number_of_processes() -> None:
    data = begins_a_stage(pooled=True)
    one, four = (
        search_by_permission(data, permitted(workers=n, search_budget=FEW)) for n in (1, 4)
    )
    assert one.result == four.result and subsampled(one)


def test_slowdowns_are_relative_to_the_model_as_it_came() -> None:
    """With pixels left out it is faster, so that tiles may take more."""
    results = search_by_permission(
        begins_a_stage(pooled=True), permitted(operators=OWN, search_budget=FEW)
    )
    assert min(t.slowdown for t in subsampled(results)) < 0.8


@pytest.mark.parametrize("most", [1.0, 1.05])
def test_one_that_is_slower_than_the_model_as_it_came(most: float) -> None:
    """By 1.7 %: a pool picks the pixels, and little is saved. It is more than one of the limits
    within which faster tiles are looked for, or all that is permitted."""
    data = random_stages(29, 6)
    steps: list[str] = []
    few = short_search(400, lower_limits=(0.2,))
    options = permitted(operators=OWN, search_budget=few, max_slowdown=most)
    result = search_by_permission(data, options, steps.append).result
    assert any("pixels that are read" in step for step in steps)
    assert all(t.slowdown <= most for t in (result.best, *result.front))


def test_a_refused_one_rules_out_the_others() -> None:
    def tiling(*, skips: bool) -> Tiling:
        transform = Subsample() if skips else None
        return Tiling((), 1000, 1.0, None, bind_views=True, subsample=transform)

    causes = RefusalCauses().including(tiling(skips=False), Refusal("differs"))
    assert not causes.rules_out(tiling(skips=True))
    causes = causes.including(tiling(skips=True), Refusal("differs"))
    assert causes.rules_out(tiling(skips=True)) and not causes.rules_out(tiling(skips=False))


def test_no_second_search_where_the_peak_is_elsewhere() -> None:
    """Only where skips wait: nothing is computed faster then."""
    net = Stage((1, 24, 24, 4))
    net.conv(24, 3)
    net.conv(24, 3)
    x, shape = net.conv(4, 3), net.shape
    skip = net.skipping(8, x, shape)
    data = net.finish(skip, net.conv(4, 3), net.average(net.x, 2, 2))
    steps: list[str] = []
    search_by_permission(data, permitted(operators=OWN, search_budget=FEW), steps.append)
    assert steps and not any("pixels that are read" in step for step in steps)
    search_by_permission(
        begins_a_stage(pooled=True), permitted(operators=OWN, search_budget=FEW), steps.append
    )
    assert any("pixels that are read" in step for step in steps)
