"""Convolutions of int16 whose sums exceed 32 bits: CMSIS-NN adds them up otherwise in the last
pixel of an odd number, as an emulated Cortex-M4 showed. No part of their pixels is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.models.build import Net
from tests.transforms.row_loops import geometry_of
from tests.transforms.tiled import tiled
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import CHANNELS, COLUMNS, ROWS
from tflm_planner.tflm.kernels import adds_pixels_alike
from tflm_planner.tiling.evaluate.equivalence import model_signature
from tflm_planner.transforms.row_loop import LoopedRegion, NotStreamableError
from tflm_planner.transforms.spelling import SpellingRefusedError, Unspellable, pixels_of
from tflm_planner.transforms.subsample import Subsample
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

ONES: dict[str, Any] = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


def wide(
    weight: int = 127,
    *,
    channels: int = 64,
    size: int = 3,
    bias: str = "int64",
    data: str = "int16",
    skipped: bool = False,
) -> Net:
    """A VALID convolution of an image of 8 by 9 pixels, all of its weights alike. skipped: a
    convolution reads one pixel in four of its result."""
    net = Net()
    graph = net.graph()
    rows, columns = 9 - size, 10 - size
    x = graph.input("x", (1, 8, 9, channels), data, scale=1.0)
    weights = np.full((4, size, size, channels), weight)
    operands = [x, graph.constant("w", weights, "int8", scale=np.ones(4))]
    operands += [graph.constant("b", np.zeros(4), bias, scale=np.ones(4))] if bias else []
    y = graph.tensor("y", (1, rows, columns, 4), data, scale=1e5)
    graph.op("CONV_2D", operands, [y], "Conv2DOptions", padding=1, **ONES)
    if skipped:
        w = graph.constant("w1", np.ones((4, 1, 1, 4)), "int8", scale=np.ones(4))
        b = graph.constant("b1", np.zeros(4), "int64", scale=np.ones(4))
        z = graph.tensor("z", (1, 3, 4, 4), "int16", scale=1e5)
        steps: dict[str, Any] = {**ONES, "strideH": 2, "strideW": 2}
        graph.op("CONV_2D", [y, w, b], [z], "Conv2DOptions", **steps)
        y = z
    graph.outputs(y)
    return net


@pytest.mark.parametrize(
    ("net", "alike"),
    [
        (wide(), False),
        (wide(-127), False),
        (wide(113), True),  # 576 * 113 * 2^15 is below 2^31
        (wide(114), False),
        (wide(bias="int32"), True),  # all pixels in 32 bits
        (wide(bias=""), True),
        (wide(channels=56), True),  # 504 products
        (wide(bias="int32", data="int8"), True),
    ],
)
def test_which_sums_may_wrap_around(net: Net, alike: bool) -> None:
    assert adds_pixels_alike(read_model(net.finish()).main.ops[0]) == alike


def test_a_filter_that_cannot_be_read_may_be_large() -> None:
    op = read_model(wide(1).finish()).main.ops[0]
    assert op.inputs[1] is not None and op.inputs[1].buffer.data is not None
    assert adds_pixels_alike(op)
    op.inputs[1].buffer.data = op.inputs[1].buffer.data[:100]
    assert not adds_pixels_alike(op)


@pytest.mark.parametrize(("axis", "refused"), [(ROWS, True), (COLUMNS, True), (CHANNELS, False)])
def test_pixels_stay_together_in_tiles(axis: int, refused: bool) -> None:
    region = TiledRegion((0,), (Split(axis, 2),))
    _, (note,) = tiled(wide().finish(), region)
    assert ("wraps around" in note) == refused
    _, (note,) = tiled(wide(113).finish(), region)
    assert "wraps around" not in note


def test_pixels_stay_together_in_loops() -> None:
    with pytest.raises(NotStreamableError, match="wraps around"):
        geometry_of(read_model(wide().finish()), LoopedRegion((0,), 1))
    geometry_of(read_model(wide(113).finish()), LoopedRegion((0,), 1))


def test_pixels_stay_in_one_row() -> None:
    op = read_model(wide(channels=576, size=1).finish()).main.ops[0]
    with pytest.raises(SpellingRefusedError) as refusal:
        pixels_of(op)
    assert refusal.value.reason is Unspellable.SUMS
    assert pixels_of(read_model(wide(113, channels=576, size=1).finish()).main.ops[0]) == 72


@pytest.mark.parametrize(("weight", "rows"), [(113, 3), (127, 6)])
def test_no_pixel_is_left_out(weight: int, rows: int) -> None:
    model = read_model(wide(weight, skipped=True).finish())
    Subsample().apply(model)
    assert (model.main.ops[0].outputs[0].shape or (0, 0))[1] == rows


def test_what_may_be_cut_is_not_equivalent_to_what_may_not() -> None:
    narrow, other, large = (read_model(wide(w).finish()) for w in (1, 2, 127))
    assert model_signature(narrow) == model_signature(other) != model_signature(large)
