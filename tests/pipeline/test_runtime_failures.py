"""What runtimes say in a word of their own is said so that a user can act on it."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
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
    assert len(said.split("; ", 1)[1]) > 30


def test_what_names_no_operator_stays() -> None:
    model = read_model(operator_alone("TILE"))
    for why in ("not installed here", "Node ADD (number 3) failed", "no answer for 300 s"):
        assert explain(model, why) == why


@needs_tflm
def test_a_model_that_tflm_has_no_kernel_for() -> None:
    tiles = api.TilePermission(operators=api.AllowedOperators.ALL)
    with pytest.raises(ModelError, match=r"TILE 'it' of int8, int32: it has no kernel; .*batch"):
        api.plan(operator_alone("TILE", "int8"), None, api.PlanOptions(tiles=tiles))
