"""What CMSIS-NN computes wrong is said for the targets that have it, and for no other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.build import Net
from tests.models.small import Chain
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.tflm.versions import with_tflm

M4, M55 = load_target("cortex-m4/cmsis-nn"), load_target("cortex-m55/cmsis-nn")
REFERENCE = load_target("cortex-m4/reference")


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
    ],
)
def test_wrong_kernels_are_named(model: bytes, target, said: bool) -> None:
    warnings = [w for w in arena_of(read_model(model), target).warnings if "planned or not" in w]
    assert len(warnings) == said


def test_a_reason_is_said_once() -> None:
    (said,) = arena_of(read_model(turned((1, 2, 2, 3, 4), count=3)), M4).warnings
    assert "and 2 more" in said
