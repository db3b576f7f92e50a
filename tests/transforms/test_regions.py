"""Tiles and loops in one model: every region has a result, and a refusal is a type, not a text."""

from __future__ import annotations

from tests.models.registry import conv, relu, start
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.model.text import to_text
from tflm_planner.pipeline import api
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluation import evaluate
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.base import TransformRefusedError
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import LoopedRegion, NotStreamableError
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.boxes import NotTileableError
from tflm_planner.transforms.tile.tile import SUM, TiledRegion, band

SHAPE = (1, 16, 8, 8)


def chain() -> Model:
    net, graph, x = start(SHAPE)
    for k in range(4):
        x = conv(graph, x, SHAPE, f"layer{k}")
    graph.outputs(relu(graph, x, SHAPE))
    return read_model(net.finish())


def test_every_region_has_a_result_in_order():
    regions = (
        band(0, 1, 2),
        LoopedRegion((2, 3), 2, "reverse"),
        TiledRegion((1, 2), (Split(1, 2),)),
        TiledRegion((4,), (Split(SUM, 2),)),
    )
    model = chain()
    results = Regions(regions).rewrite(model)
    assert [r.region for r in results] == list(regions)
    assert [type(r.refusal) for r in results] == [
        type(None), type(None), TransformRefusedError, NotTileableError,
    ]  # fmt: skip
    assert [r.note.split(" ")[0] for r in results[:2]] == ["tiled", "streamed"]
    assert results[2].note == "not changed: regions share an operator"
    again = chain()
    assert Regions(regions).apply(again) == [r.note for r in results]
    assert to_text(again) == to_text(model)


def test_a_refused_loop_leaves_the_model_as_it_was():
    model = chain()
    before = to_text(model)
    (result,) = Regions((LoopedRegion((0,), 16),)).rewrite(model)
    assert isinstance(result.refusal, NotStreamableError)
    assert result.note == f"not streamed: {result.refusal}" and to_text(model) == before


def test_a_candidate_with_a_refused_region_is_impossible():
    """Whatever the reason: a region that shares an operator with another one is refused too."""
    on = api.kernels_of(api.load_target("x86-64/reference"))
    options, model = (
        TilingOptions(on, on.input_overlaps_of, operators=api.AllowedOperators.ALL),
        chain(),
    )
    first = band(0, 1, 2)
    assert evaluate(model, Candidate((first,), False), options) is not None
    for refused in (TiledRegion((1, 2), (Split(1, 2),)), LoopedRegion((2,), 16)):
        assert evaluate(model, Candidate((first, refused), False), options) is None
