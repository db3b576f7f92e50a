"""ONE_HOT as a comparison: every number of every word is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.transforms.substitutes.cleaning import cleaned, kinds_but_reshapes
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.substitutes.one_hot import compare_for_one_hot
from tflm_planner.verification.terms import prove_by_terms

SCALED: dict[str, dict[str, Any]] = {"float32": {}, "int8": {"scale": 0.5, "zero": 3}}


def one_hot(
    dtype: str = "float32", *, depth: int = 5, axis: int = -1, cast: bool = True, on: int = 1
) -> bytes:
    """Six words of `depth`, as Keras writes it, with a CAST to int64, or as they are."""
    net = Net()
    graph = net.graph()
    word = graph.input("word", (1, 6), "int32")
    place = graph.tensor("place", (1, 6), "int64") if cast else word
    if cast:
        graph.op("CAST", [word], [place], "CastOptions", inDataType=2, outDataType=4)
    shape = (1, 6, depth) if axis in (-1, 2) else (1, depth, 6)
    y = graph.tensor("y", shape, dtype, **SCALED[dtype])
    many = graph.constant("depth", np.array(depth))
    chosen = [
        graph.constant(name, np.array(value), dtype, **SCALED[dtype])
        for name, value in (("on", on), ("off", 0))
    ]
    for scalar in (many, *chosen):
        graph.table.tensors[scalar].shape = []
    graph.op("ONE_HOT", [place, many, *chosen], [y], "OneHotOptions", axis=axis)
    graph.outputs(y)
    return net.finish()


def status(original: bytes, result: bytes) -> str:
    return prove_by_terms(read_model(original), read_model(result)).status


@needs_tflm
@pytest.mark.parametrize("dtype", SCALED)
@pytest.mark.parametrize("cast", [True, False])
@pytest.mark.parametrize("axis", [-1, 2])
def test_words_are_compared(dtype: str, cast: bool, axis: int) -> None:
    from ai_edge_litert.interpreter import Interpreter
    from tflite_micro import runtime

    data = one_hot(dtype, cast=cast, axis=axis)
    made = api.plan(data)
    assert kinds_but_reshapes(made.data) == ["EQUAL", "SELECT_V2"]
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert api.check_equal(data, made.data).proved
    given = np.array([[0, 4, -1, 5, 2, 2**31 - 1]], np.int32)
    original: Any = Interpreter(model_content=data)
    original.allocate_tensors()
    original.set_tensor(original.get_input_details()[0]["index"], given)
    original.invoke()
    expected = original.get_tensor(original.get_output_details()[0]["index"])
    planned: Any = runtime.Interpreter.from_bytes(made.data, arena_size=1 << 16)
    planned.set_input(given, 0)
    planned.invoke()
    assert np.array_equal(expected, planned.get_output(0))
    assert [row.argmax() for row in expected[0] if row.any()] == [0, 4, 2]


def test_terms_tell_what_is_on_and_how_many_apart() -> None:
    assert status(one_hot(), cleaned(one_hot())) == "equal"
    assert status(one_hot(), cleaned(one_hot(on=2))) == "different"
    assert status(one_hot("int8"), cleaned(one_hot("int8", on=7))) == "different"


def test_another_axis_and_damaged_shapes_stay() -> None:
    assert kinds_but_reshapes(cleaned(one_hot(axis=1))) == ["CAST", "ONE_HOT"]
    model = read_model(one_hot(cast=False))
    model.main.outputs[0].shape = (1, 6, 6)
    (op,) = model.ops()
    assert compare_for_one_hot(model) == [] and op in list(model.ops())


def test_a_depth_beyond_all_memory_is_no_fault() -> None:
    model = read_model(one_hot(cast=False))
    depth = next(t for t in model.main.tensors if t.name == "depth")
    depth.buffer.data = np.array(2**31 - 1, "<i4").reshape(-1).view(np.uint8)
    assert compare_for_one_hot(model) == []
    assert prove_by_terms(model, model).status == "not run"


@pytest.mark.parametrize("change", ["rank", "scale"])
def test_choices_of_other_ranks_and_words_with_scales_stay(change: str) -> None:
    model = read_model(one_hot(cast=False))
    if change == "rank":
        next(t for t in model.main.tensors if t.name == "on").shape = (1, 1, 1, 1)
    else:
        word = model.main.inputs[0]
        word.quantization = type(word.quantization).of([0.5])
    assert compare_for_one_hot(model) == []
