"""Searches that go through all their steps within a small budget, and a model of equal blocks."""

from __future__ import annotations

from collections.abc import Iterable

from tests.models.registry import add, conv, relu, start
from tests.short_searches import short_search
from tflm_planner.model import schema
from tflm_planner.model.ir import Op
from tflm_planner.ops.window import WINDOWS
from tflm_planner.pipeline import api
from tflm_planner.tflm.kernels.contracts import InputOverlap
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.search import search_tiles
from tflm_planner.tiling.tilings import TilingResult

SHAPE = (1, 16, 8, 8)
SMALL = short_search(1_200, branches=0)
"""Searches go through all their steps, but not on and on."""
ALL_BUT_LOOPS = api.AllowedOperators.of({*schema.operator_names().values()} - {"WHILE"})
"""Searches for loops have tests of their own."""


M4 = api.kernels_of(api.load_target("cortex-m4/cmsis-nn"))


def of_windows_alone(op: Op) -> Iterable[InputOverlap]:
    """Overlaps of convolutions and pools. Where those of sums are allowed too, `cnn_int8` has no
    tiles that pay."""
    return M4.input_overlaps_of(op) if op.kind in WINDOWS else ()


def options(target: str = "cortex-m4/cmsis-nn", overlaps_of=None, **more) -> TilingOptions:
    on = api.kernels_of(api.load_target(target))
    rule = overlaps_of or on.input_overlaps_of
    return TilingOptions(on, rule, **{"search_budget": SMALL, **more})


def search(data: bytes, **more) -> TilingResult:
    """The result of a search that may use any operator but loops."""
    given = {"operators": ALL_BUT_LOOPS, "max_slowdown": 1.1, **more}
    return search_tiles(data, options(**given))


def repeated(*, add_at: int = -1) -> bytes:
    """Six equal blocks of a convolution and a RELU; weights differ."""
    net, graph, x = start(SHAPE)
    for i in range(6):
        x = conv(graph, x, SHAPE, f"layer{i}")
        x = add(graph, x, x, SHAPE, f"sum{i}") if i == add_at else relu(graph, x, SHAPE)
    graph.outputs(x)
    return net.finish()
