"""Products of int16 with a bias of int32: read as int64 by most kernels, which is garbage."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.build import Net
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.guidance.paste import paste_of
from tflm_planner.tflm.narrow_biases import has_narrow_bias, refusal_of_narrow_bias
from tflm_planner.tflm.targets import load_target
from tflm_planner.tflm.versions import with_tflm

WINDOW = {"padding": 1, "strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}


def product(kind: str, bias: str = "int32") -> bytes:
    """One product of int16, of four channels, with one scale."""
    net = Net()
    graph = net.graph()
    rows = kind == "FULLY_CONNECTED"
    x = graph.input("x", (1, 4) if rows else (1, 2, 2, 4), "int16", scale=0.0003)
    y = graph.tensor("y", (1, 4) if rows else (1, 2, 2, 4), "int16", scale=0.002)
    deep = kind == "DEPTHWISE_CONV_2D"
    shape = (4, 4) if rows else (1, 1, 1, 4) if deep else (4, 1, 1, 4)
    scales = 0.01 if rows else np.full(4, 0.01)
    weights = graph.constant("w", np.ones(shape), "int8", scale=scales, axis=3 if deep else 0)
    b = graph.constant("b", np.arange(4), bias, scale=0.000003)
    if kind == "TRANSPOSE_CONV":
        sizes = graph.constant("sizes", [1, 2, 2, 4])
        operands, options = [sizes, weights, x, b], "TransposeConvOptions"
        fields = {"padding": 1, "strideW": 1, "strideH": 1}
    else:
        operands, fields = [x, weights, b], {} if rows else dict(WINDOW)
        options = {"CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}.get(
            kind, "FullyConnectedOptions"
        )
        if deep:
            fields["depthMultiplier"] = 1
    graph.op(kind, operands, [y], options, **fields)
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize(
    ("kind", "target", "tflm", "is_read"),
    [
        ("CONV_2D", "cortex-m4/reference", "2023-02", True),
        ("CONV_2D", "cortex-m4/cmsis-nn", "current", True),
        ("CONV_2D", "cortex-m4/cmsis-nn", "2024-04", False),
        ("FULLY_CONNECTED", "cortex-m4/cmsis-nn", "current", False),
        ("FULLY_CONNECTED", "cortex-m4/reference", "current", True),
        ("FULLY_CONNECTED", "cortex-m4/reference", "2025-03", False),
        ("FULLY_CONNECTED", "cortex-m4/unknown", "2025-03", True),  # nobody has read it
        ("DEPTHWISE_CONV_2D", "cortex-m4/reference", "current", False),
        ("DEPTHWISE_CONV_2D", "cortex-m55/cmsis-nn", "current", False),
        ("TRANSPOSE_CONV", "cortex-m4/reference", "current", False),
    ],
)
def test_each_kernel_and_day(kind: str, target: str, tflm: str, is_read: bool) -> None:
    board = with_tflm(load_target(target), tflm)
    (op,) = read_model(product(kind)).ops()
    assert has_narrow_bias(op)
    reason = refusal_of_narrow_bias(op, board)
    assert (reason is None) is is_read
    assert reason is None or "reads it as int64" in reason
    said = " ".join(api.arena(product(kind), board).cannot_run)
    assert ("with a bias of int32" in said) is not is_read
    (wide,) = read_model(product(kind, "int64")).ops()
    assert not has_narrow_bias(wide) and refusal_of_narrow_bias(wide, board) is None


def test_the_lines_to_paste_name_the_day() -> None:
    data, target = product("CONV_2D"), load_target("cortex-m4/cmsis-nn")
    remarks = " ".join(paste_of(read_model(data), api.arena(data, target), target).remarks)
    assert "2024-04-29 and later (CONV_2D with a bias of int32)" in remarks
