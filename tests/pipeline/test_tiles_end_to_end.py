"""Tiles end to end: chosen by the search, proved on real runtimes, in the firmware as it is."""

from __future__ import annotations

import copy

import pytest

from tests.conftest import PUBLISHED, needs_tflm
from tests.models.generator import random_model
from tests.models.small import Chain, narrow_rows, wide
from tests.short_searches import short_search
from tests.transforms.plans import dialect_plan
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.transforms.tile.tile import band


def tiled(data: bytes, **permission) -> api.PlanResult:
    tiles = api.TilePermission(**permission)
    return api.plan(data, options=api.PlanOptions(tiles=tiles))


@needs_tflm
@pytest.mark.parametrize("dialect", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.slow
def test_a_tiled_model_is_proved(dialect):
    data = narrow_rows()
    plain = api.plan(data).report
    few = short_search(600)
    result = tiled(
        data,
        dialect=dialect,
        operators=api.AllowedOperators.ALL,
        max_slowdown=1.2,
        search_budget=few,
    )
    report = result.report
    assert report.verified and all(c.status == "equal" for c in report.checks)
    assert report.after.arena.arena < plain.after.arena.arena
    assert report.after.host.measured_head == report.after.host.predicted_head
    assert report.after.host.measured_tail == report.after.host.predicted_tail


@needs_tflm
@pytest.mark.slow
def test_vww_fits_in_less_on_the_firmware_as_it_is():
    """No new operator to register, about 3 % more instructions, 40 % less arena."""
    path = PUBLISHED / "vww_96_int8.tflite"
    result = tiled(path.read_bytes(), search_budget=short_search(2_000))
    report = result.report
    assert report.verified
    assert report.after.arena.arena <= 66_000
    before, after = read_model(path.read_bytes()), read_model(result.data, dialect=True)
    assert {op.kind for op in after.ops()} <= {op.kind for op in before.ops()}
    assert not any("register" in note for note in report.notes)


@needs_tflm
@pytest.mark.slow
def test_the_dialect_is_understood_by_every_command(tmp_path):
    """Planned by hand-chosen bands; then inspected, measured and compared as a file."""
    data = wide()
    quick = MemoryOptions(exact_effort=0.02)
    plan = dialect_plan(data, [band(0, 3, 3, border="waste")], quick)
    model = read_model(plan.data, dialect=True)
    assert any(t.is_view for t in model.tensors())
    path = tmp_path / "dialect.tflite"
    path.write_bytes(plan.data)
    assert api.arena(path).arena == plan.arena.arena
    seen = api.inspect(path)
    assert seen.arena.arena == plan.arena.arena and any("dialect" in n for n in seen.notes)
    verdict = api.check_equal(data, path)
    assert verdict.proved
    assert {c.runtime: c.status for c in verdict.checks} == {
        "LiteRT": "not available",
        "TFLM": "equal",
    }
    with pytest.raises(ModelError, match="give the original model"):
        api.plan(path)


@needs_tflm
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
@pytest.mark.mostly_long(short=2)
def test_random_models_survive_tiling(seed):
    data = random_model(seed, steps=8)
    plain = api.plan(data, options=api.PlanOptions(verify=None)).report
    report = tiled(data, operators=api.AllowedOperators.ALL, max_slowdown=2.0).report
    assert report.verified
    assert report.after.arena.arena <= plain.after.arena.arena


@needs_tflm
def test_a_second_signature_with_scratch_is_no_obstacle():
    """TFLM does not run its graph, and places none of its scratch; the search does both. (The
    model is refused unless nothing is to be proved.)"""
    chain = Chain((1, 8, 8, 3))
    chain.conv(8, 3)
    chain.conv(8, 3)
    chain.graph.outputs(chain.x)
    graphs, net = chain.net.model.subgraphs, chain.net
    graphs.append(copy.deepcopy(graphs[0]))
    for place, key in enumerate(("first", "second")):
        net.signature(key, chain.graph, ["image"], ["result"])
        net.model.signatureDefs[place].subgraphIndex = place
    permission = api.TilePermission(workers=1)
    options = api.PlanOptions(tiles=permission, verify=None)
    report = api.plan(net.finish(), options=options).report
    assert report.cannot_run and report.after.arena.arena < report.before.arena.arena


@needs_tflm
def test_a_model_without_operators_has_nothing_to_tile():
    """Also where every operator may be added, so that patches are looked for."""
    report = tiled(
        Chain((1, 8, 8, 3)).finish(), operators=api.AllowedOperators.ALL, workers=1
    ).report
    assert report.verified and report.after.arena.arena == report.before.arena.arena


def test_without_permission_nothing_is_tiled():
    report = api.plan(wide(), options=api.PlanOptions(verify=None)).report
    assert report.after.operators == report.before.operators


def test_a_slowdown_below_one_is_no_permission():
    with pytest.raises(UsageError, match="is below 1"):
        api.TilePermission(max_slowdown=0.9)
