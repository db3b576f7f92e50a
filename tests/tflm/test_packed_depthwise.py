"""Depthwise convolutions of int4 that CMSIS-NN computes wrong where channels are odd in number, as
emulated boards showed. No rewrite makes one, and none changes one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.models.build import Net
from tests.models.small import ONES
from tests.transforms.row_loops import geometry_of
from tests.transforms.tiled import tiled
from tflm_planner.model.constants import pack_int4
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import CHANNELS, COLUMNS, ROWS
from tflm_planner.tflm.kernels import computes_part
from tflm_planner.tflm.kernels.known_faults import faults_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.row_loop import LoopedRegion, NotStreamableError
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

BATCH = 0
PARTS = "in such parts is computed wrong"
M4, M55 = load_target("cortex-m4/cmsis-nn"), load_target("cortex-m55/cmsis-nn")


def packed(
    channels: int,
    *,
    batch: int = 1,
    times: int = 1,
    dilation: int = 1,
    kernel: int = 3,
    valid: bool = False,
    data: str = "int4",
) -> bytes:
    """A depthwise convolution of an image of 8 by 9 pixels. times: its depth multiplier."""
    net, rng = Net(), np.random.default_rng(channels)
    graph, results = net.graph(), channels * times
    x = graph.input("x", (batch, 8, 9, channels), "int8", scale=1.0)
    values = rng.integers(-7, 8, (1, kernel, kernel, results)).astype(np.int8)
    raw = pack_int4(values.ravel()).tobytes() if data == "int4" else values
    scales = np.full(results, 0.05)
    w = graph.tensor("w", values.shape, data, data=raw, scale=scales, axis=3)
    b = graph.constant("b", np.zeros(results), scale=scales)
    lost = (kernel - 1) * dilation if valid else 0
    y = graph.tensor("y", (batch, 8 - lost, 9 - lost, results), "int8", scale=1.0)
    fields: dict[str, Any] = {**ONES, "dilationHFactor": dilation, "dilationWFactor": dilation}
    fields |= {"padding": int(valid), "depthMultiplier": times}
    graph.op("DEPTHWISE_CONV_2D", [x, w, b], [y], "DepthwiseConv2DOptions", **fields)
    graph.outputs(y)
    return net.finish()


def op_of(data: bytes) -> Op:
    return read_model(data).main.ops[0]


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        (packed(5), False),  # another kernel
        (packed(5, dilation=2), True),
        (packed(5, batch=2), True),
        (packed(5, times=2), True),
        (packed(1, times=4), True),
        (packed(4, dilation=2), False),
        (packed(4, batch=2, times=3), False),
        (packed(5, dilation=2, valid=True), False),
        (packed(5, batch=2, valid=True), False),
        (packed(5, times=2, valid=True), True),
        (packed(5, times=2, kernel=1), False),
        (packed(5, dilation=2, data="int8"), False),
    ],
)
def test_which_convolutions_are_wrong(model: bytes, wrong: bool) -> None:
    for target in (M4, M55):
        assert bool(faults_of([op_of(model)], target)) == wrong
    for name in ("cortex-m4/reference", "arduino-2023"):
        assert not faults_of([op_of(model)], load_target(name))


def test_parts_of_a_convolution() -> None:
    assert computes_part(op_of(packed(5)), 1, 3)
    even = op_of(packed(10, batch=2))
    assert computes_part(even, 2, 4) and computes_part(even, 1, 5)
    assert not computes_part(even, 2, 5)


@pytest.mark.parametrize(
    ("model", "axis", "parts", "made"),
    [
        (packed(10, dilation=2), CHANNELS, 2, False),  # 5 channels each
        (packed(8, dilation=2), CHANNELS, 2, True),
        (packed(10, dilation=2, valid=True), CHANNELS, 2, True),
        (packed(10), CHANNELS, 2, True),
        (packed(6, times=2), CHANNELS, 2, False),
        (packed(10, batch=2), CHANNELS, 2, False),
        (packed(10, batch=2), BATCH, 2, True),
        (packed(5, batch=2), BATCH, 2, False),  # wrong at first, right in parts
        (packed(5, batch=2, valid=True), BATCH, 2, True),
        (packed(5, dilation=2), ROWS, 2, False),
        (packed(5, dilation=2), COLUMNS, 3, False),
        (packed(5), ROWS, 2, True),
        (packed(10, dilation=2), ROWS, 2, True),
    ],
)
def test_no_tile_is_wrong_and_no_wrong_one_is_cut(
    model: bytes, axis: int, parts: int, made: bool
) -> None:
    _, (note,) = tiled(model, TiledRegion((0,), (Split(axis, parts),)))
    assert (PARTS not in note) == made


def test_wrong_ones_are_not_looped() -> None:
    region = LoopedRegion((0,), 1)
    with pytest.raises(NotStreamableError, match="computed wrong"):
        geometry_of(read_model(packed(5, dilation=2)), region)
    geometry_of(read_model(packed(4, dilation=2)), region)
    geometry_of(read_model(packed(5)), region)
