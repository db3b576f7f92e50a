"""Places of operands, against a model of every operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.tflm.operator_models import MODELS
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.ops.roles import PRODUCTS, SPLITS


def operators(kinds: Mapping[str, Any]) -> list[Op]:
    """Operators of these kinds, at least one of each."""
    ops = [op for make in MODELS.values() for op in read_model(make()).ops() if op.kind in kinds]
    assert {op.kind for op in ops} == {*kinds}
    return ops


def test_products() -> None:
    for op in operators(PRODUCTS):
        roles = PRODUCTS[op.kind]
        data, weights = op.inputs[roles.data], op.inputs[roles.weights]
        assert data is not None and not data.is_constant, op
        channels = (op.outputs[0].shape or ())[-1]
        assert weights is not None and len(weights.shape or ()) > 1, op
        assert channels in (weights.shape or ()), op
        if len(op.inputs) > roles.bias:
            bias = op.inputs[roles.bias]
            assert bias is None or bias.shape == (channels,), op


def test_splits() -> None:
    for op in operators(SPLITS):
        axis, data = (op.inputs[place] for place in SPLITS[op.kind])
        assert axis is not None and axis.is_constant and axis.elements == 1
        assert data is not None and data.type == op.outputs[0].type
        assert data.elements == sum(t.elements for t in op.outputs)
