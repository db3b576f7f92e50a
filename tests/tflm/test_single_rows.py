"""Which single rows CMSIS-NN's MVE kernel computes right: its copies made, and compared."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.models.small import SCALE, Chain
from tests.transforms.row_loops import geometry_of
from tests.transforms.tiled import tiled
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import ROWS
from tflm_planner.tflm.kernels import computes_single_row
from tflm_planner.transforms.row_loop import LoopedRegion, NotStreamableError
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

GARBAGE = 1e6


def by_mve(row: np.ndarray, weights: np.ndarray, out: int, stride: int, pad: int) -> list[float]:
    """What arm_convolve_1_x_n_s8 computes of one row; [] where it fails. Memory behind the row
    holds garbage, as does what it does not write of its buffer."""
    width, kernel = len(row), len(weights)
    memory = np.concatenate([row, np.full(4 * kernel + 8, GARBAGE)])
    total = (out - 1) * stride + kernel - width
    uneven = int(np.fmod(total, 2))
    if pad * 2 + uneven != total:
        return []
    right = max(1, int((pad + uneven + stride - 1) / stride)) if pad + uneven != 0 else 0
    left = max(1, (pad + stride - 1) // stride) if pad != 0 else 0
    middle = max(out - (right + left), 0)
    if right + middle + left != out:  # arm_convolve_s8
        padded = np.concatenate([np.zeros(pad), row, np.zeros(kernel * stride)])
        return [float(padded[i * stride :][:kernel] @ weights) for i in range(out)]
    after = right if uneven else pad

    def windows(buffer: np.ndarray, count: int) -> list[float]:
        return [float(buffer[i * stride :][:kernel] @ weights) for i in range(count)]

    fill = np.full(4 * kernel + 4 * stride, GARBAGE)
    found = windows(np.concatenate([np.zeros(pad), memory[:kernel], fill]), left)
    start = stride * left - pad
    if start < 0:
        return []
    found += windows(memory[start:], middle)
    start = stride * (left + middle) - pad
    copy = np.concatenate([memory[start:][: kernel - 1], np.zeros(after), fill])
    return found + windows(copy, right)


def one_row(width: int, out: int, kernel: int, stride: int, padding: int):
    chain = Chain((1, 1, width, 4))
    w = chain.graph.constant("w", np.ones((8, 1, kernel, 4)), "int8", scale=np.full(8, 0.01))
    y = chain.tensor((1, 1, out, 8))
    dilation = 2 if kernel == 1 else 1  # without one, a 1x1 kernel goes elsewhere
    fields = {"strideH": 1, "strideW": stride, "dilationHFactor": dilation, "dilationWFactor": 1}
    chain.graph.op("CONV_2D", [chain.x, w], [y], "Conv2DOptions", padding=padding, **fields)
    return read_model(chain.finish(y)).main.ops[0]


def test_single_rows_are_judged_as_the_kernel_computes_them() -> None:
    rng, right, wrong = np.random.default_rng(2), 0, 0
    cases = itertools.product(range(2, 15), range(1, 7), range(1, 5), (0, 1))
    for width, kernel, stride, padding in cases:
        covered = width if padding == 0 else width - kernel + 1
        out = -(-covered // stride)
        if out < 1:
            continue
        pad = max((out - 1) * stride + kernel - width, 0) // 2
        row, weights = rng.normal(size=width), rng.normal(size=kernel)
        whole = np.concatenate([np.zeros(pad), row, np.zeros(kernel * stride)])
        expected = [whole[i * stride :][:kernel] @ weights for i in range(out)]
        found = by_mve(row, weights, out, stride, pad)
        same = len(found) == out and np.allclose(found, expected)
        assert (
            computes_single_row(one_row(width, out, kernel, stride, padding), width, out, pad)
            == same
        )
        right, wrong = right + same, wrong + (not same)
    assert right > 250 and wrong > 60


def strided(stride: int, kernel: int, padding: int) -> bytes:
    """A convolution along the rows of an image; of 1x1, it is dilated in height."""
    chain = Chain((1, 8, 10, 4))
    scales = np.full(8, 1 / 300)
    weights = chain.rng.integers(-127, 128, (8, 1, kernel, 4))
    w = chain.graph.constant("w", weights, "int8", scale=scales)
    b = chain.graph.constant("b", np.zeros(8), scale=SCALE * scales)
    covered = 10 if padding == 0 else 11 - kernel
    y = chain.tensor((1, 8, -(-covered // stride), 8))
    dilation = 2 if kernel == 1 else 1
    fields = {"strideH": 1, "strideW": stride, "dilationHFactor": dilation, "dilationWFactor": 1}
    chain.graph.op("CONV_2D", [chain.x, w, b], [y], "Conv2DOptions", padding=padding, **fields)
    return chain.finish(y)


@pytest.mark.parametrize(
    ("stride", "kernel", "parts", "padding", "made"),
    [
        (1, 5, 8, 0, True), (2, 5, 8, 0, False), (2, 5, 4, 0, True), (2, 3, 8, 0, True),
        (1, 5, 8, 1, True), (2, 1, 8, 0, False), (2, 1, 4, 0, True), (1, 1, 8, 0, True),
    ],
)  # fmt: skip
def test_no_tile_is_such_a_row(
    stride: int, kernel: int, parts: int, padding: int, made: bool
) -> None:
    """The last window of SAME, stride 2, reads two columns of padding: the kernel gives it one.
    VALID of the same row reads none."""
    _, notes = tiled(strided(stride, kernel, padding), TiledRegion((0,), (Split(ROWS, parts),)))
    assert notes[0].startswith("tiled") == made
    assert made or "CMSIS-NN" in notes[0]


def test_no_loop_runs_over_such_rows() -> None:
    """With stride 2 no window of VALID reads the last column: the kernel pads the last one."""
    assert geometry_of(read_model(strided(1, 3, 1)), LoopedRegion((0,), 1)).turns == 8
    with pytest.raises(NotStreamableError, match="CMSIS-NN"):
        geometry_of(read_model(strided(2, 3, 1)), LoopedRegion((0,), 1))
