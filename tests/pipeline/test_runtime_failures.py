"""What runtimes say in a word of their own is said so that a user can act on it."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.runtime_failures import explain
from tflm_planner.support.errors import ModelError

SAID = {
    "TILE": "TFLM failed to allocate tensors: Failed to get registration from op code TILE",
    "ELU": "Didn't find op for builtin opcode 'ELU' version '1'. An older version might be",
    "FILL": "TFLM failed to allocate tensors: Node FILL (number 0) failed to prepare with status 1",
    "SQRT": "random input: Interpreter invocation failed.: Node SQRT (number 0) failed to invoke",
    "SIGN": "Node SIGN (number 0) failed to prepare with status 1",
}


def one(kind: str, dtype: str = "int8") -> bytes:
    net = Net()
    graph = net.graph()
    scale = {"scale": 0.1} if dtype == "int8" else {}
    x = graph.input("x", (1, 4), dtype, **scale)
    more = [graph.constant("times", [1, 2])] if kind == "TILE" else []
    shape = (1, 8) if kind == "TILE" else (1, 4)
    y = graph.tensor("it", shape, dtype, **scale)
    graph.op(kind, [x, *more], [y], version=3 if kind == "TILE" else 1)
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize("kind", SAID)
def test_the_operator_its_types_and_what_to_do(kind: str) -> None:
    said = explain(read_model(one(kind)), SAID[kind])
    assert said.startswith(f"{kind} 'it' of int8")
    assert "An older version" not in said and "registration" not in said
    assert len(said.split("; ", 1)[1]) > 30


def test_what_names_no_operator_stays() -> None:
    model = read_model(one("TILE"))
    for why in ("not installed here", "Node ADD (number 3) failed", "no answer for 300 s"):
        assert explain(model, why) == why


@needs_tflm
def test_a_model_that_tflm_has_no_kernel_for() -> None:
    tiles = api.TilePermission(new_kinds=None)
    with pytest.raises(ModelError, match=r"TILE 'it' of int8, int32: it has no kernel; .*batch"):
        api.plan(one("TILE", "int8"), None, api.PlanOptions(tiles=tiles))
