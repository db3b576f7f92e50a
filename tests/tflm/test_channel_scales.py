"""Which TFLM takes a FULLY_CONNECTED whose weights have a scale for each channel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.constants import pack_int4
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.channel_scales import (
    channel_scales_since,
    refusal_of_channel_scales,
    takes_channel_scales,
)
from tflm_planner.tflm.targets import HOST_RUNTIME, load_target
from tflm_planner.tflm.versions import with_tflm

SCALES = np.linspace(0.002, 0.02, 5).astype(np.float32)


def dense(
    dtype: str = "int8",
    *,
    scales: Any = SCALES,
    rows: int = 1,
    bias: bool = True,
    depth: int = 12,
    weights: str = "int8",
) -> bytes:
    """FULLY_CONNECTED of five channels, limited to what is positive. weights: their type."""
    rng = np.random.default_rng(7)
    net = Net()
    graph = net.graph()
    zero, fine = (0, 0.0003) if dtype == "int16" else (3, 0.05)
    x = graph.input("x", (rows, depth), dtype, scale=fine, zero=zero)
    y = graph.tensor("y", (rows, 5), dtype, scale=fine * 4, zero=zero)
    most = 127 if weights == "int8" else 7
    numbers = rng.integers(-most, most + 1, (5, depth)).astype(np.int8)
    data = numbers if weights == "int8" else pack_int4(numbers.reshape(-1))
    w = graph.tensor("w", (5, depth), weights, data=data, scale=scales)
    wide = "int64" if dtype == "int16" else "int32"
    b = graph.constant("b", rng.integers(-900, 900, 5), wide, scale=np.float32(fine) * scales)
    options = {"fusedActivationFunction": 1}
    graph.op("FULLY_CONNECTED", [x, w, b if bias else -1], [y], "FullyConnectedOptions", **options)
    graph.outputs(y)
    return net.finish()


def op_of(data: bytes) -> Op:
    (op,) = read_model(data).ops()
    return op


@pytest.mark.parametrize(
    ("dtype", "target", "tflm", "said"),
    [
        ("int8", "cortex-m4/cmsis-nn", "current", None),
        ("int8", "cortex-m4/cmsis-nn", "2024-10", None),
        ("int8", "cortex-m4/cmsis-nn", "2024-09", "refuses it (since 2024-09-27)"),
        ("int8", "cortex-m4/reference", "2024-05", "takes the first scale for all channels"),
        ("int8", "arduino-2023", None, "takes the first scale for all channels"),
        ("int8", "esp32s3/esp-nn-1.1.2", "2025-01", "takes the first scale for all channels"),
        ("int8", "esp32s3/esp-nn-1.1.2", "2025-03", None),
        ("int16", "cortex-m4/cmsis-nn", "current", "CMSIS-NN takes one scale for all"),
        ("int16", "cortex-m55/cmsis-nn", "2025-10", "CMSIS-NN takes one scale for all"),
        ("int16", "cortex-m4/reference", "current", None),
        ("int16", "cortex-m4/reference", "2025-03", "refuses it (since 2025-03-17)"),
        ("int16", "cortex-m4/unknown", "current", None),  # nobody has read it
    ],
)
def test_each_library_and_day(dtype: str, target: str, tflm: str | None, said: str | None) -> None:
    named = load_target(target)
    board = named if tflm is None else with_tflm(named, tflm)
    op = op_of(dense(dtype))
    reason = refusal_of_channel_scales(op, board)
    assert takes_channel_scales(op, board) is (said is None)
    assert reason is None if said is None else reason is not None and said in reason
    assert refusal_of_channel_scales(op_of(dense(dtype, scales=0.01)), board) is None
    cannot_run = " ".join(api.arena(dense(dtype), board).cannot_run)
    assert ("a scale for each channel" in cannot_run) is (said is not None)


def test_operators_without_such_scales_were_always_taken() -> None:
    op = op_of(dense(scales=0.01))
    assert channel_scales_since(op, load_target("arduino-2023")) is not None
    assert takes_channel_scales(op, load_target("arduino-2023"))


@pytest.mark.parametrize(
    ("target", "said"),
    [("cortex-m4/cmsis-nn", "CMSIS-NN takes one"), ("cortex-m4/reference", "TFLM takes one")],
)
def test_no_kernel_takes_them_of_int4(target: str, said: str) -> None:
    reason = refusal_of_channel_scales(op_of(dense(weights="int4")), load_target(target))
    assert reason is not None and said in reason and "int8 and int4" in reason


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_the_reference_kernels_here_take_them(dtype: str) -> None:
    """As LiteRT does; with int16 it rounds otherwise, by one step."""
    from ai_edge_litert.interpreter import Interpreter
    from tflite_micro import runtime

    data = dense(dtype, rows=9)
    assert takes_channel_scales(op_of(data), load_target(HOST_RUNTIME))
    limits = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(limits.min, limits.max + 1, (9, 12)).astype(dtype)
    ours: Any = runtime.Interpreter.from_bytes(data, arena_size=1 << 15)
    ours.set_input(x, 0)
    ours.invoke()
    theirs: Any = Interpreter(model_content=data)
    theirs.allocate_tensors()
    theirs.set_tensor(theirs.get_input_details()[0]["index"], x)
    theirs.invoke()
    expected = theirs.get_tensor(theirs.get_output_details()[0]["index"])
    far = np.abs(expected.astype(int) - ours.get_output(0)).max()
    assert far <= (dtype == "int16") and len(np.unique(expected)) > 10
