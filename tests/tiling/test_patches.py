"""Patches as moves of the search: where windows reach far and images are low, bands are no help."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Graph, Net
from tests.models.registry import SCALE, noise, relu
from tests.short_searches import short_search
from tflm_planner.pipeline import api
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluation import evaluate
from tflm_planner.tiling.evaluate.evaluator import Evaluator
from tflm_planner.tiling.moves.neighbours import SMALLER, neighbours
from tflm_planner.tiling.moves.patches import along_columns, patch_stages
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.search import search_tiles
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

KINDS = api.AllowedOperators.of(("SLICE", "CONCATENATION", "PAD"))


def window(
    graph: Graph, x: int, depths: tuple[int, int], size: tuple[int, int], kernel: int, stride: int
) -> int:
    """A SAME convolution of an image of `size`."""
    name = f"k{kernel}s{stride}"
    filters = noise((depths[1], kernel, kernel, depths[0]), seed=kernel)
    scales = np.full(depths[1], 1 / (100 * kernel * kernel), np.float32)
    weights = graph.constant(f"{name}/filter", filters, "int8", scale=scales)
    bias = graph.constant(f"{name}/bias", noise((depths[1],), -900, 900), scale=SCALE * scales)
    out = (1, size[0] // stride, size[1] // stride, depths[1])
    y = graph.tensor(name, out, scale=SCALE, zero=3)
    options = {"strideH": stride, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1}
    graph.op("CONV_2D", [x, weights, bias], [y], "Conv2DOptions", version=3, **options)
    return y


def low(size: tuple[int, int] = (8, 64)) -> bytes:
    """A low image that grows wide channels and loses them again: two rows of a result need all
    rows of what is wide."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, *size, 2), scale=SCALE)
    y = window(graph, x, (2, 32), size, 3, 1)
    y = window(graph, y, (32, 8), size, 5, 1)
    y = window(graph, y, (8, 4), size, 5, 4)
    graph.outputs(relu(graph, y, (1, size[0] // 4, size[1] // 4, 4)))
    return net.finish()


def options(**more) -> TilingOptions:
    on = api.kernels_of()
    given = {"objective": "head", "operators": KINDS, "max_slowdown": 1.1}
    return TilingOptions(on, on.input_overlaps_of, **{**given, **more})


@needs_tflm
@pytest.mark.slow
def test_patches_are_found_where_bands_keep_too_much(monkeypatch):
    data, budget = low(), short_search(4_000)
    found = search_tiles(data, options(search_budget=budget)).best
    assert any(len(s.splits) == 2 or s.splits[0][0] == 2 for s in found.regions)  # type: ignore[union-attr]
    with monkeypatch.context() as without:
        without.setattr("tflm_planner.tiling.segment_search.patch_stages", lambda *_: [])
        without.setattr("tflm_planner.tiling.moves.neighbours.along_columns", lambda _: iter(()))
        bands = search_tiles(data, options(search_budget=budget)).best
    assert found.bytes < 0.6 * bands.bytes
    tiles = api.TilePermission(
        objective="head", operators=KINDS, max_slowdown=1.1, search_budget=budget
    )
    report = api.plan(data, options=api.PlanOptions(tiles=tiles)).report
    assert report.verified
    assert report.after.head <= found.head
    assert report.after.host.measured_head == report.after.host.predicted_head


def test_stages_keep_what_they_promise_and_what_is_allowed():
    evaluator = Evaluator(low(), options())
    schedule = evaluator.linear_schedule(tuple(range(4)))
    plain = evaluate(evaluator.model, Candidate((), False, effort=Effort.CLIMB), options())
    assert plain is not None
    stages = patch_stages(schedule, plain.head, "pad", int(1.2 * plain.instructions))
    assert stages
    heads: list[int] = []
    for stage in stages:
        made = evaluate(evaluator.model, Candidate((stage,), False, effort=Effort.CLIMB), options())
        assert made is not None
        assert made.instructions < 2.6 * plain.instructions
        heads.append(made.head)
    assert min(heads) < 0.6 * plain.head
    assert not patch_stages(schedule, plain.head, "pad", 0)
    assert not patch_stages(schedule, schedule.crossing_bytes[0], "pad", 1 << 60)


@pytest.mark.parametrize("bind_views", [True, False])
def test_bands_become_patches_only_where_parts_may_be_copies(bind_views):
    candidate = Candidate((TiledRegion((0, 1, 2), (Split(1, 4),)),), bind_views)
    patches = [
        s for t in neighbours(candidate, 4, SMALLER) for s in t.regions if len(s.splits) == 2
    ]  # type: ignore[union-attr]
    assert bool(patches) is not bind_views


def test_columns_change_and_go():
    patch = TiledRegion((0, 1, 2), (Split(1, 4), Split(2, 2)))
    assert [s.splits for s in along_columns(patch)] == [(Split(1, 4),), (Split(1, 4), Split(2, 3))]
    assert not list(along_columns(TiledRegion((0,), (Split(3, 2),))))
