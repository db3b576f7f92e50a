"""The border of an image, written in two ways: by the window's padding, or around the image. Equal
terms where LiteRT computes the same, different ones where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.build import Graph, Net
from tests.transforms.tiled import quick_differences
from tests.verification.terms.proofs import proof

SHAPE = (1, 5, 7, 3)
SAME, VALID = 0, 1
ZERO = {"int8": -3, "int16": 0, "float32": 0}
LEAST = {"int8": -128, "int16": -32768, "float32": float(np.finfo(np.float32).min)}
RNG = np.random.default_rng(11)
FILTERS = RNG.integers(-100, 100, (4, 3, 3, 3))
DEPTHWISE = RNG.integers(-100, 100, (1, 3, 3, 6))
STEPS = {"strideH": 1, "strideW": 1}
UNDILATED = {"dilationHFactor": 1, "dilationWFactor": 1}


def quantised(dtype: str, scale: float) -> dict[str, object]:
    return {} if dtype == "float32" else {"scale": scale, "zero": ZERO[dtype]}


def padded(graph: Graph, x: int, dtype: str, value: float, scale: float) -> int:
    """The image with a border of one pixel of a number."""
    shape = (1, SHAPE[1] + 2, SHAPE[2] + 2, SHAPE[3])
    y = graph.tensor("padded", shape, dtype, **quantised(dtype, scale))
    pads = graph.constant("pads", [[0, 0], [1, 1], [1, 1], [0, 0]])
    fill = graph.constant("fill", [value], dtype, **quantised(dtype, scale))
    graph.op("PADV2", [x, pads, fill], [y], "PadV2Options")
    return y


def bordered(kind: str, dtype: str, value: float | None) -> bytes:
    """An operator with windows of 3 x 3; value: of a border around the image, None for SAME."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", SHAPE, dtype, **quantised(dtype, 0.1))
    if value is not None:
        x = padded(graph, x, dtype, value, 0.1)
    fields = {"padding": SAME if value is None else VALID, **STEPS}
    channels = {"CONV_2D": 4, "DEPTHWISE_CONV_2D": 6}.get(kind, 3)
    scale = 0.1 if kind.endswith("POOL_2D") else 0.4
    y = graph.tensor("y", (*SHAPE[:3], channels), dtype, **quantised(dtype, scale))
    if kind.endswith("POOL_2D"):
        graph.op(kind, [x], [y], "Pool2DOptions", filterHeight=3, filterWidth=3, **fields)
    else:
        weights = FILTERS if kind == "CONV_2D" else DEPTHWISE
        stored = dtype if dtype == "float32" else "int8"
        w = graph.constant("w", weights, stored, **({} if dtype == "float32" else {"scale": 0.01}))
        more = {} if kind == "CONV_2D" else {"depthMultiplier": 2}
        options = "Conv2DOptions" if kind == "CONV_2D" else "DepthwiseConv2DOptions"
        type_of_bias = {"int8": "int32", "int16": "int64"}.get(dtype, dtype)
        scale = {} if dtype == "float32" else {"scale": 0.001}
        b = graph.constant("b", np.arange(channels), type_of_bias, **scale)
        graph.op(kind, [x, w, b], [y], options, version=3, **fields, **UNDILATED, **more)
    graph.outputs(y)
    return net.finish()


CASES = [
    *(("MAX_POOL_2D", dtype, LEAST[dtype]) for dtype in LEAST),
    *(
        (kind, dtype, ZERO[dtype])
        for kind in ("CONV_2D", "DEPTHWISE_CONV_2D")
        for dtype in ("int8", "int16", "float32")
    ),
]


@pytest.mark.parametrize(("kind", "dtype", "value"), CASES)
def test_a_border_that_adds_nothing_is_padding(kind: str, dtype: str, value: float) -> None:
    same, around = bordered(kind, dtype, None), bordered(kind, dtype, value)
    assert proof(same, around).status == "equal"
    assert not quick_differences(same, around, ("LiteRT",))


@pytest.mark.parametrize(("kind", "dtype", "value"), CASES)
def test_a_border_of_another_number_is_none(kind: str, dtype: str, value: float) -> None:
    other = bordered(kind, dtype, 5 if kind == "MAX_POOL_2D" else value + 1)
    assert proof(bordered(kind, dtype, None), other).status == "different"
    assert quick_differences(bordered(kind, dtype, None), other, ("LiteRT",))


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_an_average_counts_what_lies_inside(dtype: str) -> None:
    same, around = (bordered("AVERAGE_POOL_2D", dtype, v) for v in (None, ZERO[dtype]))
    assert proof(same, same).status == "equal"
    assert proof(same, around).status == "different"
    assert quick_differences(same, around, ("LiteRT",))


def enlarged(kernel: int, stride: int, *, cut: bool) -> bytes:
    """A TRANSPOSE_CONV with padding SAME, or cut out of one without padding."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 3, 4, 2), scale=0.1, zero=4)
    weights = np.random.default_rng(2).integers(-100, 100, (3, kernel, kernel, 2))
    w = graph.constant("w", weights, "int8", scale=np.full(3, 0.01))
    small, room = ((3 * stride, 4 * stride), (2 * stride + kernel, 3 * stride + kernel))
    rows, columns = room if cut else small
    y = graph.tensor("y", (1, rows, columns, 3), scale=0.4)
    shape = graph.constant("shape", [1, rows, columns, 3])
    fields = {"strideH": stride, "strideW": stride, "padding": VALID if cut else SAME}
    graph.op("TRANSPOSE_CONV", [shape, w, x], [y], "TransposeConvOptions", version=3, **fields)
    if cut:
        low = (kernel - stride) // 2
        part = graph.tensor("part", (1, *small, 3), scale=0.4)
        begin = graph.constant("begin", [0, low, low, 0])
        size = graph.constant("size", [1, *small, 3])
        graph.op("SLICE", [y, begin, size], [part], "SliceOptions")
        y = part
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 1), (3, 2), (4, 2), (5, 2), (6, 3)])
def test_the_padding_of_an_enlarging_convolution_cuts_its_border_off(
    kernel: int, stride: int
) -> None:
    same, cut = (enlarged(kernel, stride, cut=c) for c in (False, True))
    assert proof(same, cut).status == "equal"
    assert not quick_differences(same, cut, ("LiteRT",))
