"""Sums in shares: only if allowed, and as near as stock operators get."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.registry import add, conv, relu, start
from tests.models.small import One, bottleneck
from tests.transforms.tiled import outputs_of_both, quick_differences, tiled
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import ROWS
from tflm_planner.transforms.tile.box_plan import HALOS, HaloPolicy, Split
from tflm_planner.transforms.tile.operator_tiles import BORDERS, Border
from tflm_planner.transforms.tile.partial_sums import largest_sum
from tflm_planner.transforms.tile.tile import SUM, TiledRegion


def sums(parts: int, *ops: int) -> TiledRegion:
    return TiledRegion(ops, (Split(SUM, parts),))


def apart(data: bytes, made: bytes) -> np.ndarray:
    found = [
        np.abs(a.astype(float) - b.astype(float)).reshape(-1)
        for _, _, a, b in outputs_of_both(data, made)
    ]
    return np.concatenate(found)


def test_not_without_permission():
    _, (note, *_) = tiled(bottleneck(), sums(3, 1, 2, 3))
    assert note == "not tiled: to split a sum changes bits; --allow-inexact does it"


@needs_tflm
@pytest.mark.parametrize("activation", [0, 1, 3])
@pytest.mark.parametrize("parts", [2, 3, 5])
@pytest.mark.mostly_slow(fast=2)
def test_int8_sums_are_at_most_one_step_apart(parts, activation):
    data = bottleneck(activation=activation)
    made, (note, *_) = tiled(data, sums(parts, 1, 2, 3), inexact=True)
    assert f"{parts} parts of a sum (NOT exact)" in note
    differences = apart(data, made)
    assert differences.max() <= 1 and (differences > 0).mean() < 0.03


@needs_tflm
@pytest.mark.parametrize("activation", [0, 1, 3])
def test_float_sums_differ_by_rounding_alone(activation):
    data = bottleneck("float32", activation)
    made, _ = tiled(data, sums(4, 1, 2, 3), inexact=True)
    assert 0 < apart(data, made).max() < 1e-5


def test_shares_have_their_own_weights_and_the_bias_once():
    data = bottleneck()
    made, _ = tiled(data, sums(3, 1, 2, 3), inexact=True)
    ops = [op for op in read_model(made).main.ops if op.kind == "CONV_2D"]
    last = [op for op in ops if op.inputs[1].shape[0] == 6]
    assert [op.inputs[1].shape for op in last] == [(6, 1, 1, 8)] * 3
    biases = [op.inputs[2].buffer.data.view("<i8") for op in last]
    assert biases[0].any() and not any(b.any() for b in biases[1:])
    assert [op.outputs[0].type_name for op in last] == ["int16"] * 3
    assert {op.kind for op in read_model(made).main.ops} == {
        "RELU", "CONV_2D", "DEPTHWISE_CONV_2D", "QUANTIZE", "ADD",
    }  # fmt: skip


def test_no_sum_of_shares_can_overflow():
    """The bound is reached by the inputs that are worst for a channel, and is the scale's."""
    op = read_model(bottleneck()).main.ops[3]
    weights = op.inputs[1].buffer.data.view(np.int8).reshape(6, 24).astype(float)
    scales = np.asarray(op.inputs[1].quantization.scales) * 0.1
    bias = np.abs(op.inputs[2].buffer.data.view("<i4")) * scales
    worst = np.maximum(
        (weights.clip(0) * 127 - weights.clip(max=0) * 128).sum(1),
        (weights.clip(0) * 128 - weights.clip(max=0) * 127).sum(1),
    )
    assert largest_sum(op) == pytest.approx((worst * scales + bias).max())


@needs_tflm
@pytest.mark.parametrize(("dtype", "most"), [("int8", 1), ("float32", 1e-6)])
def test_means_in_shares(dtype: str, most: float) -> None:
    """Shares of three rows and of two."""
    one = One((1, 9, 4, 3), dtype)
    y = one.tensor((1, 4, 3))
    one.graph.op("MEAN", [one.x, one.integers(1)], [y], "ReducerOptions", keepDims=False)
    one.graph.outputs(y)
    data = one.net.finish()
    made, (note, *_) = tiled(data, sums(4, 1), inexact=True)
    assert note.startswith("tiled") and apart(data, made).max() <= most


@needs_tflm
def test_a_result_that_the_axis_runs_through_is_put_together():
    """The sum's operand is an output too: its parts are exact, the sum is not."""
    net, graph, x = start((1, 5, 5, 8))
    shape = (1, 5, 5, 8)
    y = relu(graph, x, shape, "kept")
    graph.outputs(y, conv(graph, y, shape, "summed"))
    data = net.finish()
    made, (note, *_) = tiled(data, sums(2, 0, 1), inexact=True)
    assert note.startswith("tiled")
    for _, _, a, b in list(outputs_of_both(data, made))[::2]:
        assert a.tobytes() == b.tobytes()


def test_schemes_that_are_not_valid():
    """A region must end in the sum; and no sum on the way may be over the same axis."""
    net, graph, x = start((1, 5, 5, 8))
    shape = (1, 5, 5, 8)
    x = relu(graph, x, shape, "a")
    y = conv(graph, x, shape, "b")
    z = relu(graph, add(graph, x, y, shape), shape, "c")
    graph.outputs(conv(graph, z, shape, "d"))
    data = net.finish()
    for ops in ((0,), (1, 2), (1, 2, 3)):
        assert "no result of the region is a sum" in tiled(data, sums(2, *ops), inexact=True)[1][0]
    _, (note, *_) = tiled(data, sums(2, 0, 1, 2, 3, 4), inexact=True)
    assert "CONV_2D 'b' is no output and would be split along its reduce axis" in note


@needs_tflm
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("halo", HALOS)
def test_a_sum_has_no_halos_to_keep(halo: HaloPolicy, border: Border):
    net, graph, x = start((1, 5, 5, 8))
    y = relu(graph, x, (1, 5, 5, 8), "a")
    graph.outputs(conv(graph, y, (1, 5, 5, 8), "b"))
    data = net.finish()
    how = TiledRegion((0, 1), (Split(SUM, 4),), halo, border)
    made, (note, *_) = tiled(data, how, inexact=True)
    if halo == "recompute":
        assert note.startswith("tiled") and apart(data, made).max() <= 1
    else:
        assert f"no halo that halo={halo} could keep" in note


@needs_tflm
def test_exact_tiles_stay_exact_beside_the_permission():
    data = bottleneck()
    made, _ = tiled(data, TiledRegion((1, 2, 3), (Split(ROWS, 3),)), inexact=True)
    assert quick_differences(data, made) == []
