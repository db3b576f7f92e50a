"""What runtimes say in a word of their own is said so that a user can act on it."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.models.small import operator_alone
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


@pytest.mark.parametrize("kind", SAID)
def test_the_operator_its_types_and_what_to_do(kind: str) -> None:
    said = explain(read_model(operator_alone(kind)), SAID[kind])
    assert said.startswith(f"{kind} 'it' of int8")
    assert "An older version" not in said and "registration" not in said
    advice = said.split("; ", 1)[1]
    assert len(advice) > 30 and "batch" not in advice


def test_what_is_in_float_is_not_told_to_stay_there() -> None:
    for kind in ("ELU", "SQRT"):
        in_float = read_model(operator_alone(kind, "float32"))
        assert "in float" in explain(read_model(operator_alone(kind)), SAID[kind])
        assert "in float" not in explain(in_float, SAID[kind])


@pytest.mark.parametrize(
    ("free", "first"), [(False, "`tflm-plan IN OUT` writes it"), (True, "it mostly counts a batch")]
)
def test_a_tile_is_told_of_its_batch_where_it_counts_one(free: bool, first: str) -> None:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 2, 2, 4), scale=0.1)
    often = graph.tensor("often", (4,), "int32") if free else graph.constant("often", [1, 2, 1, 1])
    if free:
        graph.op("SHAPE", [x], [often], "ShapeOptions")
    y = graph.tensor("y", (1, 4, 2, 4), scale=0.1)
    graph.op("TILE", [x, often], [y])
    graph.outputs(y)
    said = explain(read_model(net.finish()), SAID["TILE"])
    assert said.split("; ", 1)[1].startswith(first) and "RESIZE_NEAREST_NEIGHBOR" in said


def test_what_names_no_operator_stays() -> None:
    model = read_model(operator_alone("TILE"))
    for why in ("not installed here", "Node ADD (number 3) failed", "no answer for 300 s"):
        assert explain(model, why) == why


@needs_tflm
def test_a_model_that_tflm_has_no_kernel_for() -> None:
    tiles = api.TilePermission(operators=api.AllowedOperators.ALL)
    with pytest.raises(ModelError, match=r"SIGN 'it' of int8: it has no kernel; build the model"):
        api.plan(operator_alone("SIGN", "int8"), None, api.PlanOptions(tiles=tiles))
