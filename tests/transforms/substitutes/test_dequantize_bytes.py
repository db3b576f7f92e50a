"""Bytes of a camera as floats: DEQUANTIZE of scale 1 in place of a CAST, which TFLM lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.verification.terms import prove_by_terms


def camera(*, scale: float | None = None, also: str | None = None) -> bytes:
    """Bytes as floats, times 1/255. scale: of the bytes. also: another operator that reads them."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 16, 16), "uint8", scale=scale)
    whole, y = (
        graph.tensor("whole", (1, 16, 16), "float32"),
        graph.tensor("y", (1, 16, 16), "float32"),
    )
    step = graph.constant("step", np.array(1 / 255), "float32")
    graph.table.tensors[step].shape = []
    graph.op("CAST", [x], [whole], "CastOptions", inDataType=3, outDataType=0)
    graph.op("MUL", [whole, step], [y], "MulOptions")
    outputs = [y]
    if also is not None:
        outputs.append(graph.tensor("other", (1, 16, 16), "uint8"))
        graph.op(also, [x, graph.constant("to", [1, 16, 16])], [outputs[1]], "ReshapeOptions")
    graph.outputs(*outputs)
    return net.finish()


def kinds_of_clean(data: bytes) -> list[str]:
    model = read_model(data)
    run(model, Normalize())
    return [op.kind for op in model.ops()]


@needs_tflm
def test_a_camera_is_planned_and_proved_byte_by_byte() -> None:
    from ai_edge_litert.interpreter import Interpreter
    from tflite_micro import runtime

    data = camera()
    assert "CAST of uint8" in " ".join(api.arena(data).cannot_run)
    made = api.plan(data)
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert [op.kind for op in read_model(made.data).ops()] == ["DEQUANTIZE", "MUL"]
    equality = api.check_equal(data, made.data)
    assert equality.equal and equality.proved

    every = np.arange(256).astype(np.uint8).reshape(1, 16, 16)
    original: Any = Interpreter(model_content=data)
    original.allocate_tensors()
    original.set_tensor(original.get_input_details()[0]["index"], every)
    original.invoke()
    planned: Any = runtime.Interpreter.from_bytes(made.data, arena_size=1 << 16)
    planned.set_input(every, 0)
    planned.invoke()
    expected = original.get_tensor(original.get_output_details()[0]["index"])
    assert np.array_equal(expected, planned.get_output(0)) and len(np.unique(expected)) == 256


@pytest.mark.parametrize("data", [camera(scale=0.5), camera(also="RESHAPE")])
def test_bytes_with_a_scale_or_another_reader_stay(data: bytes) -> None:
    assert "CAST" in kinds_of_clean(data)


def test_terms_tell_scales_apart() -> None:
    clean = read_model(camera())
    run(clean, Normalize())
    assert prove_by_terms(read_model(camera()), clean).status == "equal"
    other = read_model(
        write_model(clean).replace(np.float32(1.0).tobytes(), np.float32(2).tobytes())
    )
    assert other.main.inputs[0].quantization.single == (2.0, 0)
    assert prove_by_terms(read_model(camera()), other).status == "different"
