"""What CMSIS-NN computes wrong is said for the targets that have it, and for no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.models.build import Net
from tests.models.small import ONES, Chain
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.tflm.versions import with_tflm

M4, M55 = load_target("cortex-m4/cmsis-nn"), load_target("cortex-m55/cmsis-nn")
REFERENCE, ARDUINO = load_target("cortex-m4/reference"), load_target("arduino-2023")


def turned(
    shape: tuple[int, ...], dtype: str = "int8", *, count: int = 1, swap: bool = True
) -> bytes:
    """Transpositions, one behind the other: of the last two axes, or of none."""
    net = Net()
    graph = net.graph()
    last = (-1, -2) if swap else (-2, -1)
    order = [*range(len(shape) - 2), *(len(shape) + k for k in last)]
    scale = {} if dtype == "float32" else {"scale": 0.5}
    x = graph.input("x", shape, dtype, **scale)
    for k in range(count):
        shape = tuple(shape[axis] for axis in order)
        y = graph.tensor(f"y{k}", shape, dtype, **scale)
        graph.op("TRANSPOSE", [x, graph.constant(f"order{k}", np.array(order))], [y])
        x = y
    graph.outputs(x)
    return net.finish()


def row(width: int, stride: int, height: int = 1) -> bytes:
    """A 1 x 3 convolution, SAME."""
    chain = Chain((1, height, width, 4))
    w = chain.graph.constant("w", np.ones((8, 1, 3, 4)), "int8", scale=np.full(8, 0.01))
    y = chain.tensor((1, height, -(-width // stride), 8))
    fields = {"strideH": 1, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1}
    chain.graph.op("CONV_2D", [chain.x, w], [y], "Conv2DOptions", padding=0, **fields)
    return chain.finish(y)


def unbiased(channels: int, *, groups: int = 0, batch: int = 1, bias: bool = False) -> bytes:
    """A 3x3 convolution without a bias: depthwise, or in groups."""
    chain = Chain((batch, 4, 5, channels))
    shape = (channels, 3, 3, channels // groups) if groups else (1, 3, 3, channels)
    scale, axis = np.full(channels, 0.01), 0 if groups else 3
    operands = [chain.x, chain.graph.constant("w", np.ones(shape), "int8", scale=scale, axis=axis)]
    operands += [chain.graph.constant("b", np.zeros(channels), scale=scale)] if bias else []
    y = chain.tensor(chain.shape)
    options: dict[str, Any] = {**ONES} if groups else {**ONES, "depthMultiplier": 1}
    kind, table = ("CONV_2D", "Conv2D") if groups else ("DEPTHWISE_CONV_2D", "DepthwiseConv2D")
    chain.graph.op(kind, operands, [y], f"{table}Options", **options)
    return chain.finish(y)


def transposed(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    *,
    padding: int = 0,
    channels: int = 3,
    dtype: str = "int8",
) -> bytes:
    """A transposed convolution, SAME or VALID, of an image of 3 by 4 pixels."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 3, 4, channels), dtype, scale=0.5)
    sizes = zip((3, 4), kernel, stride, strict=True)
    rows, columns = (n * s if padding == 0 else (n - 1) * s + k for n, k, s in sizes)
    shape = graph.constant("shape", [1, rows, columns, 5])
    w = graph.constant("w", np.ones((5, *kernel, channels)), "int8", scale=np.full(5, 0.01))
    y = graph.tensor("y", (1, rows, columns, 5), dtype, scale=0.5)
    fields: dict[str, Any] = {"strideH": stride[0], "strideW": stride[1], "padding": padding}
    options = "TransposeConvOptions"
    graph.op("TRANSPOSE_CONV", [shape, w, x], [y], options, version=3, **fields)
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize(
    ("model", "target", "said"),
    [
        (turned((1, 2, 2, 3, 4)), M4, True),
        (turned((1, 2, 2, 3, 4)), M55, True),
        (turned((1, 2, 2, 3, 4)), REFERENCE, False),
        (turned((1, 2, 2, 3, 4)), with_tflm(M4, "2025-03"), False),  # before CMSIS-NN's
        (turned((1, 2, 2, 3, 4), "int16"), M4, False),
        (turned((2, 2, 3, 4)), M4, False),
        (turned((2, 2, 3, 4)), M55, False),
        (turned((2, 2, 3, 4), swap=False), M55, True),
        (turned((2, 2, 1, 4), swap=False), M55, False),
        (turned((2, 2, 3, 4), swap=False), M4, False),
        (turned((3, 4), swap=False), M4, True),
        (turned((3, 4)), M4, False),
        (turned((3, 1), swap=False), M4, False),
        (row(8, 4), M55, True),
        (row(8, 4), M4, False),  # another kernel
        (row(8, 4, height=2), M55, False),
        (row(8, 2), M55, False),
        (row(8, 1), M55, False),
        (transposed((4, 4), (2, 2)), M4, True),  # one row of padding, strides of two
        (transposed((4, 4), (2, 2)), M55, True),
        (transposed((4, 4), (2, 2)), REFERENCE, False),
        (transposed((4, 4), (2, 2)), ARDUINO, False),
        (transposed((4, 4), (2, 2), channels=17), M4, False),  # as a convolution
        (transposed((5, 5), (3, 3), channels=17), M4, True),
        (transposed((4, 4), (2, 2), dtype="int16"), M4, False),
        (transposed((4, 4), (2, 2), padding=1), M4, False),
        (transposed((3, 3), (2, 2)), M4, False),
        (transposed((6, 6), (2, 2)), M4, False),  # two rows
        (transposed((2, 2), (3, 2), padding=1), M4, True),  # three rows a turn, of two
        (transposed((2, 2), (3, 2)), M4, False),
        (transposed((3, 2), (1, 3)), M4, True),  # scratch for two columns, of three
        (transposed((1, 3), (1, 3)), M4, False),
        (unbiased(8, groups=2), M4, True),
        (unbiased(8, groups=2), M55, True),
        (unbiased(8, groups=2), REFERENCE, False),
        (unbiased(8, groups=2, bias=True), M4, False),
        (unbiased(8, groups=1), M4, False),
        (unbiased(125), M55, True),
        (unbiased(125), M4, False),
        (unbiased(125, bias=True), M55, False),
        (unbiased(124), M55, False),
        (unbiased(125, batch=2), M55, False),  # another kernel
    ],
)
def test_wrong_kernels_are_named(model: bytes, target, said: bool) -> None:
    warnings = [w for w in arena_of(read_model(model), target).warnings if "planned or not" in w]
    assert len(warnings) == said


def test_a_reason_is_said_once() -> None:
    (said,) = arena_of(read_model(turned((1, 2, 2, 3, 4), count=3)), M4).warnings
    assert "and 2 more" in said
