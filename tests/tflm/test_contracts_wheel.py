"""Stock TFLM's reference kernels, in the flesh: which distances keep every bit.

Each model has one operator and an offline plan that puts the output D bytes below the input.
The replay must foretell the fate of every single distance, not only of the smallest one.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.tflm.kernel_loops import Shape, reference, safe_distances, smallest_safe
from tests.tflm.overlap_trials import (
    Runner,
    gather_model,
    model_of,
    op_of,
    pad_model,
    random_inputs,
    transpose_conv_model,
)
from tflm_planner.tflm.kernels.contracts import (
    exact_bound,
    input_overlap_contract,
    replays,
)
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE

pytest.importorskip("tflite_micro")

SHAPES = [
    Shape("conv", 4, 4, 2, 2, 3, 3),
    Shape("conv", 5, 4, 3, 2, 3, 3, same=False),
    Shape("conv", 6, 5, 2, 3, 3, 3, 2, 2),
    Shape("conv", 6, 6, 2, 4, 3, 3, 2, 2, same=False),
    Shape("conv", 5, 6, 3, 3, 5, 2, 1, 3),
    Shape("conv", 7, 7, 2, 2, 5, 5, 2, 2),
    Shape("conv", 6, 6, 2, 2, 3, 3, dh=2, dw=2),
    Shape("conv", 7, 6, 2, 3, 3, 2, dh=2, dw=3, same=False),
    Shape("conv", 4, 4, 3, 3),
    Shape("conv", 5, 4, 4, 2, sh=2, sw=2),
    Shape("conv", 4, 4, 4, 4, 3, 3, groups=2),
    Shape("conv", 1, 12, 4, 3, 1, 5),
    Shape("conv", 3, 4, 2, 2, 3, 3, batch=2),
    Shape("conv", 4, 4, 2, 2, 3, 3, element=2),
    Shape("conv", 4, 3, 2, 2, 3, 3, element=4),
    Shape("depthwise", 4, 4, 3, 3, 3, 3),
    Shape("depthwise", 6, 6, 3, 3, 3, 3, 2, 2),
    Shape("depthwise", 6, 6, 3, 3, 3, 3, 2, 2, same=False),
    Shape("depthwise", 5, 4, 2, 4, 3, 3),
    Shape("depthwise", 4, 4, 1, 4, 3, 3),
    Shape("depthwise", 6, 6, 2, 2, 3, 3, dh=2, dw=2),
    Shape("depthwise", 6, 5, 2, 2, 5, 5),
    Shape("depthwise", 4, 4, 2, 2, 3, 3, element=2),
    Shape("depthwise", 3, 4, 2, 2, 3, 3, element=4),
    Shape("max", 6, 6, 3, 3, 2, 2, 2, 2),
    Shape("max", 5, 5, 2, 2, 3, 3),
    Shape("max", 5, 5, 2, 2, 3, 2, 2, 1, same=False),
    Shape("max", 4, 4, 2, 2, 3, 3, element=2),
    Shape("average", 6, 6, 3, 3, 2, 2, 2, 2),
    Shape("average", 5, 5, 2, 2, 3, 3),
    Shape("average", 4, 4, 2, 2, 3, 3, batch=2),
    Shape("average", 4, 4, 2, 2, 3, 3, element=4),
]


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as found:
        yield found


def inputs_of(shape: Shape) -> list[np.ndarray]:
    """Pools lose a byte silently more often than convolutions do: more inputs for them."""
    size = (shape.batch, shape.h, shape.w, shape.ci)
    return random_inputs(size, shape.element, 24 if shape.kind in ("max", "average") else 6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.mostly_slow(fast=4)
def test_wheel_does_what_the_replay_foretells(shape: Shape, runner: Runner) -> None:
    stock, planned = model_of(shape), model_of(shape, planned=True)
    distances = range(-shape.bytes_in - 1, shape.bytes_out + 2)
    found = runner.safe_distances(stock, planned, inputs_of(shape), distances)
    loops = safe_distances(shape, reference(shape), distances)
    assert found == loops, [d for d, a, b in zip(distances, found, loops, strict=True) if a != b]
    (replay,) = replays(op := op_of(stock), op.operands()[0], REFERENCE)
    assert [replay.safe(d) for d in distances] == found
    allowed = exact_bound(op_of(stock), REFERENCE)
    smallest = smallest_safe(found, distances)
    assert allowed is not None and replay.smallest() == smallest <= allowed.least


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.slow
def test_outputs_vary(shape: Shape, runner: Runner) -> None:
    """Equal bits prove something only where bits differ in general."""
    first, second, *_ = runner.outputs(model_of(shape), inputs_of(shape))
    assert len(np.unique(first)) >= min(8, first.size // 4)
    assert np.mean(first != second) > 0.6


def test_int4_filters_are_unpacked_and_keep_the_order(runner: Runner) -> None:
    shape = Shape("conv", 4, 4, 2, 2, 3, 3)
    stock, planned = model_of(shape, packed=True), model_of(shape, packed=True, planned=True)
    distances = list(range(shape.bytes_out))
    found = runner.safe_distances(stock, planned, inputs_of(shape), distances)
    (replay,) = replays(op := op_of(stock), op.operands()[0], REFERENCE)
    assert [replay.safe(d) for d in distances] == found


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize(
    "pads", [[[0, 0], [1, 1], [1, 1], [0, 0]], [[0, 0], [0, 1], [2, 0], [1, 0]]]
)
def test_padding(dtype: str, pads: list[list[int]], runner: Runner) -> None:
    shape, element = (1, 3, 4, 2), {"int8": 1, "int16": 2, "float32": 4}[dtype]
    stock = pad_model(shape, pads, dtype)
    op = op_of(stock)
    distances = list(range(op.outputs[0].nbytes))
    found = runner.safe_distances(
        stock, pad_model(shape, pads, dtype, planned=True),
        random_inputs(shape, element, 6), distances,
    )  # fmt: skip
    (replay,) = replays(op, op.operands()[0], REFERENCE)
    assert [replay.safe(d) for d in distances] == found
    for input_overlap in input_overlap_contract(op, REFERENCE):
        assert all(found[input_overlap.low :])


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("rows", [(0, 1, 2), (1, 2), (2, 3, 4), (4,)], ids=str)
def test_gathered_rows(dtype: str, rows: tuple[int, ...], runner: Runner) -> None:
    """By every distance: a safe one keeps the bits. Where a row overlaps itself alone the C library
    may keep them too, which is not to be relied upon."""
    shape, element = (1, 5, 3, 2), {"int8": 1, "float32": 4}[dtype]
    stock = gather_model(shape, rows, dtype)
    op = op_of(stock)
    distances = list(range(-op.operands()[0].nbytes - 1, op.outputs[0].nbytes + 2))
    planned = gather_model(shape, rows, dtype, planned=True)
    found = runner.safe_distances(stock, planned, random_inputs(shape, element, 6), distances)
    (replay,) = replays(op, op.operands()[0], REFERENCE)
    safe = [replay.safe(d) for d in distances]
    assert all(kept for kept, trusted in zip(found, safe, strict=True) if trusted)
    assert not all(found) or len(rows) == 1
    for overlap in input_overlap_contract(op, REFERENCE):
        allowed = [d for d in distances if overlap.low <= d <= overlap.high]
        assert all(replay.safe(d) for d in allowed)


def test_transpose_conv_may_lie_anywhere(runner: Runner) -> None:
    stock = transpose_conv_model(3, (4, 2))
    planned = transpose_conv_model(3, (4, 2), planned=True)
    distances = list(range(-36, 72, 3))
    inputs = random_inputs((1, 3, 3, 4), 1, 4)
    assert all(runner.safe_distances(stock, planned, inputs, distances))
    assert len(np.unique(runner.outputs(stock, inputs)[0])) > 8


@pytest.mark.slow
def test_a_whole_layer_trails_at_the_contract_and_not_below(runner: Runner) -> None:
    """The second convolution of ResNet8's first stage, at 16-aligned distances."""
    shape = Shape("conv", 32, 32, 16, 16, 3, 3)
    stock, planned = model_of(shape), model_of(shape, planned=True)
    (input_overlap,) = input_overlap_contract(op_of(stock), REFERENCE)
    assert input_overlap.low == 544
    inputs = inputs_of(shape)[:2]
    distances = [
        input_overlap.low - 32,
        input_overlap.low - 16,
        input_overlap.low,
        input_overlap.low + 16,
    ]
    assert runner.safe_distances(stock, planned, inputs, distances) == [False, False, True, True]
