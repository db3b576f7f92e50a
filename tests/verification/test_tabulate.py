"""Operators of int8 that TFLM lacks, as tables: what LiteRT computes of each of the 256 numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError
from tflm_planner.verification import tabulate
from tflm_planner.verification.tabulate import needs_table, tabulated

OPTIONS = {"GELU": "GeluOptions", "EXP": "ExpOptions", "RELU_0_TO_1": None}
KINDS = ["EXP", "GELU", "LOG", "RELU_0_TO_1", "SQRT"]
LOOKED_UP = ["CAST", "ADD", "GATHER"]


def operator(
    kind: str,
    times: int = 1,
    dtype: str = "int8",
    *,
    scale: float = 0.02,
    zero: int = -100,
    below_zero: bool = False,
) -> bytes:
    """256 numbers through as many operators side by side: none below zero for a root, unless
    `below_zero`."""
    net = Net()
    graph = net.graph()
    quantised: dict[str, Any] = {} if dtype == "float32" else {"scale": scale, "zero": zero}
    x = graph.input("x", (4, 64), dtype, **quantised)
    if kind == "SQRT" and not below_zero:
        x, given = graph.tensor("some", (4, 64), dtype, **quantised), x
        graph.op("RELU", [given], [x])
    outputs: list[int] = []
    for number in range(times):
        y = graph.tensor(f"y{number}", (4, 64), dtype, **quantised)
        graph.op(kind, [x], [y], OPTIONS.get(kind))
        outputs.append(y)
    graph.outputs(*outputs)
    return net.finish()


ALL = np.arange(-128, 128).astype(np.int8).reshape(4, 64)


@needs_tflm
@pytest.mark.parametrize("kind", KINDS)
def test_each_of_the_numbers_is_the_one_that_litert_computes(kind: str) -> None:
    from ai_edge_litert.interpreter import Interpreter
    from tflite_micro import runtime

    data = operator(kind)
    original: Any = Interpreter(model_content=data)
    original.allocate_tensors()
    original.set_tensor(original.get_input_details()[0]["index"], ALL)
    original.invoke()
    expected = original.get_tensor(original.get_output_details()[0]["index"])
    made = api.plan(data)
    planned: Any = runtime.Interpreter.from_bytes(made.data, arena_size=1 << 16)
    planned.set_input(ALL, 0)
    planned.invoke()
    assert np.array_equal(expected, planned.get_output(0))
    assert len(np.unique(expected)) > 20
    operators = [op.kind for op in read_model(made.data).ops()]
    assert operators == ["RELU"] * (kind == "SQRT") + LOOKED_UP
    assert made.report.verified and kind in " ".join(made.report.notes)


@needs_tflm
@pytest.mark.parametrize("kind", KINDS)
def test_the_file_as_it_was_is_equal_to_its_plan_and_to_itself(kind: str) -> None:
    data = operator(kind)
    for other in (api.plan(data).data, data):
        equality = api.check_equal(data, other)
        assert equality.equal and equality.proved
    assert not api.check_equal(data, api.plan(operator(kind, scale=0.021)).data).equal


@needs_tflm
def test_a_square_root_of_what_is_negative_is_that_of_zero() -> None:
    """LiteRT refuses such inputs, so that any number is as good."""
    original, _ = tabulated(operator("SQRT"))
    (gather,) = (op for op in read_model(original).ops() if op.kind == "GATHER")
    assert gather.inputs[0] is not None and gather.inputs[0].buffer.data is not None
    table = gather.inputs[0].buffer.data.view(np.int8)
    assert set(table[: 128 - 100]) == {-100} and table[-1] > -100


@needs_tflm
def test_a_root_of_an_input_is_a_table_though_litert_refuses_most_inputs() -> None:
    data = operator("SQRT", below_zero=True)
    made = api.plan(data)
    assert [op.kind for op in read_model(made.data).ops()] == LOOKED_UP


@pytest.mark.parametrize("zero", [1000, -1000])
def test_a_zero_point_that_is_no_int8_stays(zero: int) -> None:
    data = operator("SQRT", zero=zero)
    assert tabulated(data) == (data, [])


@needs_tflm
def test_equal_operators_share_a_table() -> None:
    original, notes = tabulated(operator("EXP", times=3))
    gathers = [op for op in read_model(original).ops() if op.kind == "GATHER"]
    tables = {op.inputs[0].buffer.data.tobytes() for op in gathers if op.inputs[0]}
    assert len(gathers) == 3 and len(tables) == 1
    assert notes == [
        "3 operators of int8 written as tables of 256 numbers, as TFLM lacks the kernels: EXP"
    ]


@pytest.mark.parametrize(
    ("kind", "dtype"), [("EXP", "float32"), ("EXP", "int16"), ("ABS", "int8"), ("TANH", "int8")]
)
def test_what_tflm_runs_and_other_types_stay(kind: str, dtype: str) -> None:
    data = operator(kind, dtype=dtype)
    assert tabulated(data) == (data, [])


def test_damaged_shapes_and_constants_stay() -> None:
    (op,) = read_model(operator("EXP")).ops()
    assert needs_table(op)
    op.outputs[0].shape = (4, 63)
    assert not needs_table(op)


def test_nothing_is_looked_up_without_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    data = operator("EXP")
    monkeypatch.setattr(tabulate, "is_installed", lambda _: False)
    assert tabulated(data) == (data, [])
    with pytest.raises(ModelError, match="EXP of int8"):
        api.plan(data)


@needs_tflm
def test_a_table_that_gives_other_outputs_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    data = operator("EXP")
    wrong = np.zeros(256, np.int8)
    monkeypatch.setattr(tabulate, "_table_of", lambda _: wrong)
    assert tabulated(data) == (data, [])
