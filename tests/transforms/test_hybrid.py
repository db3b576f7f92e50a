"""Hybrid operators (float data, int8 weights) scale their data by all of it: no part is exact."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.build import Net
from tflm_planner.model.serde import read_model
from tflm_planner.ops.axes import AxisMap, axis_map
from tflm_planner.pipeline import api
from tflm_planner.support.errors import UsageError
from tflm_planner.transforms.tile.box_plan import Split

SATURATED = (1, 16, 16, 2)


def hybrid(kind: str) -> bytes:
    """A hybrid operator whose RELU6 saturates for every input but faint ones, so that inputs of
    a proof show nothing of a scale that is another."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", SATURATED, "float32")
    rng = np.random.default_rng(3)
    relu6 = {"fusedActivationFunction": 3}
    window = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, **relu6}
    shapes = {
        "CONV_2D": ((4, 3, 3, 2), 4, "Conv2DOptions", window),
        "DEPTHWISE_CONV_2D": (
            (1, 3, 3, 2), 2, "DepthwiseConv2DOptions", {**window, "depthMultiplier": 1},
        ),
        "FULLY_CONNECTED": ((4, 2), 4, "FullyConnectedOptions", {**relu6, "keepNumDims": True}),
    }  # fmt: skip
    shape, channels, options, fields = shapes[kind]
    scale = np.full(channels, 0.01)
    weights = graph.constant("w", rng.integers(-127, 127, shape), "int8", scale=scale)
    bias = graph.constant("b", np.full(channels, 100.0), "float32")
    y = graph.tensor("y", (*SATURATED[:3], channels), "float32")
    graph.op(kind, [x, weights, bias], [y], options, **fields)
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_hybrid_operators_are_not_split(kind: str) -> None:
    data = hybrid(kind)
    (op,) = read_model(data).main.ops
    assert axis_map(op) == AxisMap()
    tiles = api.TilePermission(
        dialect=False,
        operators=api.AllowedOperators.ALL,
        by_hand=(api.TiledRegion((0,), (Split(1, 2),)),),
    )
    with pytest.raises(UsageError, match=f"not tiled: {kind}"):
        api.plan(data, None, api.PlanOptions(tiles=tiles, verify=None))


@pytest.mark.slow
def test_a_search_finds_no_tiles_of_them() -> None:
    tiles = api.TilePermission(dialect=False, operators=api.AllowedOperators.ALL, max_slowdown=2.0)
    report = api.plan(hybrid("CONV_2D"), None, api.PlanOptions(tiles=tiles, verify=None)).report
    assert report.after.operators == report.before.operators
