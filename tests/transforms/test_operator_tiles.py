"""Operators that once were refused, one by one in tiles: the same bits, or a reason."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.small import One
from tests.transforms.tiled import quick_differences, tiled
from tflm_planner.model.serde import read_model
from tflm_planner.ops.axis_rules import Range
from tflm_planner.ops.resize import Resize
from tflm_planner.ops.window import CHANNELS, COLUMNS, ROWS
from tflm_planner.transforms.tile.box_plan import HALOS, Split
from tflm_planner.transforms.tile.boxes import NotTileableError
from tflm_planner.transforms.tile.resizing import resize_form
from tflm_planner.transforms.tile.tile import TiledRegion


def checked(data: bytes, scheme: TiledRegion) -> str:
    """The note of a tiling; its bits are compared if it was made."""
    made, (note, *_) = tiled(data, scheme)
    if note.startswith("tiled"):
        assert quick_differences(data, made) == []
    return note


def resize(kind: str, shape, size, dtype="int8", **options) -> bytes:
    one = One(shape, dtype)
    out = (shape[0], *size, shape[3])
    y = one.tensor(out)
    name = "ResizeBilinearOptions" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    one.graph.op(kind, [one.x, one.integers(*size)], [y], name, **options)
    return one.finish((y, out))


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("kind", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((18, 14), {}),
        ((18, 14), {"halfPixelCenters": True}),
        ((17, 13), {"alignCorners": True}),
        ((36, 28), {"halfPixelCenters": True}),
    ],
)
@pytest.mark.mostly_slow(fast=3)
def test_resized_images_in_bands_and_patches(kind, dtype, size, options):
    data = resize(kind, (2, 9, 7, 3), size, dtype, **options)
    for splits in (
        (Split(ROWS, 4),),
        (Split(COLUMNS, 3),),
        (Split(ROWS, 3), Split(COLUMNS, 2)),
        (Split(CHANNELS, 3),),
    ):
        assert checked(data, TiledRegion((1,), splits)).startswith("tiled"), splits


@needs_tflm
def test_ratios_that_drift_are_refused():
    """1024 / 3 is rounded: row 30 is not made as row 0 is."""
    data = resize("RESIZE_BILINEAR", (1, 12, 12, 2), (36, 36))
    assert "mixes rows" in checked(data, TiledRegion((1,), (Split(ROWS, 2),)))
    data = resize("RESIZE_NEAREST_NEIGHBOR", (1, 12, 12, 2), (36, 36))
    assert checked(data, TiledRegion((1,), (Split(ROWS, 3),))).startswith("tiled")
    data = resize("RESIZE_BILINEAR", (1, 12, 12, 2), (36, 36), "float32")
    assert "mixes rows" in checked(data, TiledRegion((1,), (Split(ROWS, 2),)))


@pytest.mark.parametrize(
    ("whole", "wanted", "out", "read"),
    [
        (Resize("nearest", False, False, 4, 8), (3, 5), (2, 6), (1, 3)),
        (Resize("bilinear", False, False, 4, 8), (2, 4), (2, 6), (1, 3)),
        (Resize("bilinear", False, True, 4, 8), (2, 4), (0, 6), (0, 3)),
        (Resize("bilinear", True, False, 5, 9), (2, 4), (2, 5), (1, 3)),
    ],
)
def test_rows_that_a_resize_reads(whole: Resize, wanted: Range, out: Range, read: Range):
    form = resize_form(whole, wanted)
    assert (form.out, form.read) == (out, read)


def test_no_tile_of_an_uneven_ratio():
    with pytest.raises(NotTileableError, match="rows and weights"):
        resize_form(Resize("bilinear", False, False, 7, 10), (2, 4))


def transposed(padding: int, stride: int, kernel: int, *, bias: bool, dtype: str = "int8") -> bytes:
    one, rng = One((1, 7, 6, 3), dtype), np.random.default_rng(1)
    size = [n * stride if padding == 0 else (n - 1) * stride + kernel for n in (7, 6)]
    out = (1, *size, 4)
    y = one.tensor(out)
    shape = (4, kernel, kernel, 3)
    if dtype == "float32":
        weights = one.graph.constant("w", rng.normal(size=shape), dtype)
        extra = [one.graph.constant("b", rng.normal(size=4), dtype)]
    else:
        scales = np.array([0.02, 0.01, 0.03, 0.02])
        values = rng.integers(-90, 91, shape)
        weights = one.graph.constant("w", values, "int8", scale=scales, axis=0)
        extra = [one.graph.constant("b", [9, -200, 30, 0], "int32", scale=scales * 0.1)]
    operands = [one.integers(*out), weights, one.x, *(extra if bias else [])]
    fields = {"padding": padding, "strideH": stride, "strideW": stride}
    one.graph.op("TRANSPOSE_CONV", operands, [y], "TransposeConvOptions", **fields)
    return one.finish((y, out))


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("padding", "stride", "kernel"), [(0, 2, 3), (0, 2, 4), (1, 2, 3), (1, 1, 3), (0, 3, 3)])  # fmt: skip # noqa: E501
@pytest.mark.mostly_slow(fast=3)
def test_transposed_convolutions(padding, stride, kernel, bias, dtype):
    data = transposed(padding, stride, kernel, bias=bias, dtype=dtype)
    for splits in ((Split(ROWS, 3),), (Split(ROWS, 2), Split(COLUMNS, 2)), (Split(CHANNELS, 2),)):
        assert checked(data, TiledRegion((1,), splits)).startswith("tiled"), splits


@needs_tflm
@pytest.mark.parametrize("halo", HALOS)
def test_what_moves_along_axes(halo):
    """SPLIT, STRIDED_SLICE, UNPACK and TRANSPOSE, and RELUs behind them, in bands."""
    one = One((1, 12, 8, 6))
    a, b = one.tensor((1, 6, 8, 6)), one.tensor((1, 6, 8, 6))
    one.graph.op("SPLIT", [one.integers(1), one.x], [a, b], "SplitOptions", numSplits=2)
    c = one.tensor((1, 6, 4, 6))
    begin, end, strides = one.integers(0, 0, 1, 0), one.integers(1, 6, 8, 6), one.integers(1, 1, 2, 1)  # fmt: skip # noqa: E501
    one.graph.op("STRIDED_SLICE", [a, begin, end, strides], [c], "StridedSliceOptions")
    d = one.tensor((1, 8, 6, 6))
    one.graph.op("TRANSPOSE", [b, one.integers(0, 2, 1, 3)], [d], "TransposeOptions")
    e = one.tensor((6, 4, 6))
    one.graph.op("UNPACK", [c], [e], "UnpackOptions", num=1, axis=0)
    data = one.finish((d, (1, 8, 6, 6)), (e, (6, 4, 6)))
    assert checked(data, TiledRegion((1, 2), (Split(ROWS, 3),), halo)).startswith("tiled")
    assert checked(data, TiledRegion((1, 3), (Split(ROWS, 4),), halo)).startswith("tiled")
    assert checked(data, TiledRegion((2, 4), (Split(0, 3),), halo)).startswith("tiled")


@needs_tflm
def test_products_softmax_and_means_not_along_their_sums():
    one = One((1, 6, 8, 4))
    product = one.tensor((1, 6, 8, 8))
    fields = {"adjX": False, "adjY": True, "asymmetricQuantizeInputs": False}
    one.graph.op("BATCH_MATMUL", [one.x, one.x], [product], "BatchMatMulOptions", **fields)
    soft = one.graph.tensor("soft", (1, 6, 8, 8), scale=1 / 256, zero=-128)
    one.graph.op("SOFTMAX", [product], [soft], "SoftmaxOptions", beta=1.0)
    mean = one.tensor((1, 6, 8))
    one.graph.op("MEAN", [product, one.integers(2)], [mean], "ReducerOptions", keepDims=False)
    one.graph.outputs(soft, mean)
    data = one.net.finish()
    assert checked(data, TiledRegion((1, 2, 3), (Split(1, 3),))).startswith("tiled")
    assert "SOFTMAX" in checked(data, TiledRegion((2,), (Split(3, 2),)))
    assert checked(data, TiledRegion((1,), (Split(2, 4),))).startswith("tiled")


@needs_tflm
@pytest.mark.parametrize(("parts", "made"), [(4, True), (2, True), (3, False), (8, False)])
def test_channels_that_one_operand_channel_makes_stay_together(parts: int, made: bool) -> None:
    """DEPTHWISE_CONV_2D, two channels of each of four: parts of two, of four, and others."""
    one = One((1, 5, 5, 4))
    scales = np.full(8, 0.01)
    values = np.random.default_rng(3).integers(-90, 91, (1, 3, 3, 8))
    weights = one.graph.constant("w", values, "int8", scale=scales, axis=3)
    bias = one.graph.constant("b", np.arange(8), "int32", scale=scales * 0.1)
    y = one.tensor((1, 5, 5, 8))
    fields = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    options = "DepthwiseConv2DOptions"
    one.graph.op(
        "DEPTHWISE_CONV_2D", [one.x, weights, bias], [y], options, depthMultiplier=2, **fields
    )
    note = checked(one.finish((y, (1, 5, 5, 8))), TiledRegion((1,), (Split(CHANNELS, parts),)))
    assert note.startswith("tiled") == made
    assert made or "depth multiplier of 2" in note


@needs_tflm
@pytest.mark.parametrize(("parts", "made"), [(4, True), (5, False), (9, False)])
def test_a_tile_of_one_channel_would_no_longer_be_quantised_per_channel(parts, made):
    """TFLM goes by the number of scales, and rounds otherwise where there is one."""
    one = One((3, 40))
    scales = np.linspace(0.6, 1.4, 9) / 800
    chance = np.random.default_rng(2)
    weights = one.graph.constant("w", chance.integers(-127, 128, (9, 40)), "int8", scale=scales)
    bias = one.graph.constant("b", chance.integers(-3000, 3000, 9), scale=0.1 * scales)
    y = one.tensor((3, 9))
    operands = [one.x, weights, bias]
    one.graph.op("FULLY_CONNECTED", operands, [y], "FullyConnectedOptions", version=4)
    note = checked(one.finish((y, (3, 9))), TiledRegion((1,), (Split(1, parts),)))
    assert note.startswith("tiled") == made
    assert made or "quantised per channel" in note


def test_a_part_of_a_split_takes_no_operator():
    one = One((1, 8, 4, 4))
    a, b = one.tensor((1, 4, 4, 4)), one.tensor((1, 4, 4, 4))
    one.graph.op("SPLIT", [one.integers(1), one.x], [a, b], "SplitOptions", numSplits=2)
    y = one.tensor((1, 4, 4, 4))
    one.graph.op("RELU", [b], [y])
    data = one.finish((y, (1, 4, 4, 4)))
    made, _ = tiled(data, TiledRegion((1, 2), (Split(ROWS, 2),)))
    kinds = [op.kind for op in read_model(made).main.ops]
    assert kinds == ["RELU", "SLICE", "SLICE", "RELU", "RELU", "CONCATENATION", "RELU"]


def test_a_part_of_what_is_padded_or_joined_takes_what_it_needs() -> None:
    """The upper half takes no row of the lower operand, and pads no row below."""
    one = One((1, 4, 4, 4))
    padded, joined, y = one.tensor((1, 6, 4, 4)), one.tensor((1, 12, 4, 4)), (1, 12, 4, 4)
    one.graph.op("PAD", [one.x, one.graph.constant("by", [[0, 0], [1, 1], [0, 0], [0, 0]])],
                 [padded], "PadOptions")  # fmt: skip
    one.graph.op("CONCATENATION", [padded, padded], [joined], "ConcatenationOptions", axis=1)
    data = one.finish((joined, y))
    for ops in ((1,), (2,)):
        made, (note, *_) = tiled(data, TiledRegion(ops, (Split(ROWS, 2),)))
        assert note.startswith("tiled"), note
        parts = [op for op in read_model(made).main.ops if op.kind in ("PAD", "CONCATENATION")]
        # Two PADs and what joins their results; no operator for the halves of what is joined.
        assert [op.kind for op in parts] == (
            ["PAD", "PAD", "CONCATENATION", "CONCATENATION"]
            if ops == (1,)
            else ["PAD", "CONCATENATION"]
        )
