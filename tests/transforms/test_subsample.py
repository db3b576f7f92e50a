"""Values that are computed only at the pixels that are read: the same bits, and less of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.conftest import needs_tflm, published
from tests.models.small import Chain
from tests.models.stages import random_stages
from tests.transforms.tiled import quick_differences
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops.window import picked_stride
from tflm_planner.transforms.base import run
from tflm_planner.transforms.subsample import PICKS, PickKind, Subsample
from tflm_planner.verification.terms import prove_by_terms


class Stage(Chain):
    """The end of a stage, and the beginning of the next one."""

    def skipping(
        self, channels: int, of: int, shape: tuple[int, ...], *, of_weights: int = -1
    ) -> int:
        """A convolution of 1x1 with a stride of 2. of_weights: the weights of which convolution."""
        batch, height, width, depth = shape
        number = len(self.graph.table.tensors)
        w = of_weights
        if w < 0:
            values = self.rng.integers(-127, 128, (channels, 1, 1, depth))
            w = self.graph.constant(f"w{number}", values, "int8", scale=np.full(channels, 1 / 300))
        b = self.graph.constant(
            f"b{number}", np.arange(channels), scale=np.full(channels, 1 / 6000)
        )
        y = self.tensor((batch, -(-height // 2), -(-width // 2), channels))
        self.graph.op(
            "CONV_2D", [of, w, b], [y], "Conv2DOptions", version=3, strideH=2, strideW=2,
            dilationHFactor=1, dilationWFactor=1,
        )  # fmt: skip
        return y

    def add(self, a: int, b: int) -> int:
        y = self.tensor(self.shape)
        self.graph.op("ADD", [a, b], [y], "AddOptions", version=2)
        return y

    def average(self, of: int, size: int, stride: int) -> int:
        """An average pool with SAME borders, so that the firmware has one."""
        batch, height, width, depth = self.shape
        y = self.tensor((batch, -(-height // stride), -(-width // stride), depth))
        self.graph.op(
            "AVERAGE_POOL_2D", [of], [y], "Pool2DOptions", version=2, strideH=stride,
            strideW=stride, filterHeight=size, filterWidth=size,
        )  # fmt: skip
        return y


def end_of_a_stage() -> bytes:
    """A sum that two convolutions with a stride of 2 read; one of its operands lives on."""
    net = Stage((1, 9, 8, 4))
    block = net.conv(8, 3)
    expanded = net.conv(8, 1, keep=False)
    total = net.add(block, expanded)
    shape = net.shape
    return net.finish(
        net.skipping(12, total, shape), net.skipping(4, total, shape), net.average(block, 3, 1)
    )


def skip_with_a_stride() -> bytes:
    """A value that a convolution of 3x3 reads, and the wider skip beside it."""
    net = Stage((1, 8, 8, 4))
    x, shape = net.conv(4, 3), net.shape
    skip = net.skipping(8, x, shape)
    return net.finish(skip, net.conv(8, 3))


def subsampled(data: bytes, pick: PickKind | None) -> tuple[bytes, list[str]]:
    model = read_model(data)
    notes = run(model, Subsample(pick))
    return write_model(model), notes


def shapes_of(data: bytes, kind: str) -> list[tuple[int, ...]]:
    return [op.outputs[0].shape or () for op in read_model(data).main.ops if op.kind == kind]


def test_a_sum_is_computed_at_the_pixels_that_are_read() -> None:
    made, notes = subsampled(end_of_a_stage(), "AVERAGE_POOL_2D")
    assert [note.split(" ")[0] for note in notes] == ["ADD"]
    assert shapes_of(made, "ADD") == [(1, 5, 4, 8)]
    assert sorted(shapes_of(made, "CONV_2D")) == [
        (1, 5, 4, 4), (1, 5, 4, 8), (1, 5, 4, 12), (1, 9, 8, 8),
    ]  # fmt: skip
    picks = [op for op in read_model(made).main.ops if picked_stride(op) == (2, 2)]
    assert [op.outputs[0].shape for op in picks] == [(1, 5, 4, 8)]  # of the operand that lives on


def test_without_picks_it_stays() -> None:
    """One operand of the sum would have to be picked."""
    assert subsampled(end_of_a_stage(), None)[1] == []


@pytest.mark.parametrize("pick", PICKS)
def test_a_wide_skip_waits_for_its_turn(pick: PickKind) -> None:
    made, notes = subsampled(skip_with_a_stride(), pick)
    assert "can wait" in notes[0] and len(notes) == 1
    assert (1, 4, 4, 4) in shapes_of(made, pick)
    assert prove_by_terms(read_model(skip_with_a_stride()), read_model(made)).status == "equal"


def test_a_narrow_skip_stays() -> None:
    """What is picked would be larger than the skip's result."""
    net = Stage((1, 8, 8, 4))
    x, shape = net.conv(4, 3), net.shape
    data = net.finish(net.skipping(4, x, shape), net.conv(8, 3))
    assert subsampled(data, "MAX_POOL_2D")[1] == []


def test_what_the_application_reads_is_whole() -> None:
    net = Stage((1, 8, 8, 4))
    x, shape = net.conv(4, 1), net.shape
    data = net.finish(net.skipping(4, x, shape), x)
    assert subsampled(data, "MAX_POOL_2D")[1] == []


def test_weights_are_no_image() -> None:
    """Two convolutions share their weights, and only one of them skips pixels."""
    net = Stage((1, 8, 8, 4))
    x, shape = net.conv(4, 1), net.shape
    (w,) = (i for i, t in enumerate(net.graph.table.tensors) if t.name == "w0")
    net.skipping(4, net.conv(4, 1), shape, of_weights=w)
    data = net.finish(net.x, len(net.graph.table.tensors) - 1, x)
    made, _ = subsampled(data, "MAX_POOL_2D")
    assert prove_by_terms(read_model(data), read_model(made)).status == "equal"


def test_a_window_whose_padding_would_begin_elsewhere_stays() -> None:
    """A SAME window of 3x3 begins above an even image, and inside it with a stride of 2."""
    for size, lifted in ((8, False), (9, True)):
        net = Stage((1, size, size, 4))
        x = net.conv(4, 3)
        data = net.finish(net.skipping(4, x, net.shape))
        made, notes = subsampled(data, "MAX_POOL_2D")
        assert bool(notes) is lifted
        assert prove_by_terms(read_model(data), read_model(made)).status == "equal"


def test_random_stages_keep_their_terms() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150):
        data = random_stages(seed, 1 + seed % 12)
        made, notes = subsampled(data, (None, *PICKS)[seed % 4])
        seen.update(" ".join(note.split(" ")[:1]) for note in notes)
        proof = prove_by_terms(read_model(data), read_model(made))
        assert proof.status == "equal", (seed, proof, notes)
    assert {"ADD", "CONV_2D", "RELU", "MAX_POOL_2D", "AVERAGE_POOL_2D"} <= {*seen}


@needs_tflm
@pytest.mark.parametrize("seed", range(0, 80, 4))
def test_random_stages_keep_their_bits(seed: int) -> None:
    data = random_stages(seed, 1 + seed % 12)
    made, _ = subsampled(data, PICKS[seed % 3])
    assert quick_differences(data, made) == []


def test_only_pools_of_one_pixel_copy() -> None:
    """Not where an activation is fused, and not floating-point numbers."""
    pools = [
        (picked_stride(op), op.options.pool_size, op.options.activation, op.inputs[0].type_name)
        for seed in range(60)
        for op in read_model(random_stages(seed, 8)).main.ops
        if op.kind.endswith("POOL_2D") and op.inputs[0] is not None
    ]
    for stride, size, activation, _ in pools:
        assert (stride is not None) == (size == (1, 1) and activation == 0)
    assert {stride for stride, *_ in pools} >= {None, (1, 1), (2, 2)}


def test_resnet8_holds_its_skips_back() -> None:
    data = published("pretrainedResnet_quant")
    made, notes = subsampled(data, "AVERAGE_POOL_2D")
    assert len(notes) == 2 and all("can wait" in note for note in notes)
    assert [s for s in shapes_of(made, "AVERAGE_POOL_2D") if s[1] > 1] == [
        (1, 16, 16, 16), (1, 8, 8, 32),
    ]  # fmt: skip
