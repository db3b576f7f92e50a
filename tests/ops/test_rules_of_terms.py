"""Every operator has one rule of terms, or is a hash of all that it reads because that is said."""

from __future__ import annotations

import pytest

from tests.tflm.operator_models import MODELS
from tests.tflm.registered import BUILTIN
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.ops import has_side_effects, sharings
from tflm_planner.ops.axes import ELEMENT_WISE, axis_map
from tflm_planner.ops.terms import (  # fmt: skip
    movement,
    one_hot,
    pointwise,
    products,
    reductions,
    resizing,
    windows,
)
from tflm_planner.ops.terms.rules import RULES

FAMILIES = (movement, one_hot, pointwise, products, reductions, resizing, windows)
CONTROL = {"WHILE", "IF", "CALL_ONCE"}
"""Their graphs are run."""
HASHED = {
    "ARG_MAX", "ARG_MIN", "BROADCAST_ARGS", "CUMSUM", "DEPTH_TO_SPACE",
    "EMBEDDING_LOOKUP", "GATHER_ND", "L2_POOL_2D",
    "SPACE_TO_DEPTH", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM",
}  # fmt: skip
"""Nothing takes them apart, so that a hash of all that they read says enough."""
STATE = {"ASSIGN_VARIABLE", "READ_VARIABLE", "VAR_HANDLE"}
"""Hashed together with the model's state."""


def test_no_operator_has_two_rules() -> None:
    kinds = [kind for family in FAMILIES for kind in family.RULES]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == set(RULES)


def test_every_operator_of_the_runtime_has_a_rule_or_is_hashed_on_purpose() -> None:
    rules, declared = set(RULES), CONTROL | HASHED | STATE
    assert not rules & declared
    assert set(BUILTIN.split()) <= rules | declared
    assert declared <= set(BUILTIN.split())


def test_what_is_element_wise_has_the_rule_of_such() -> None:
    assert set(pointwise.RULES) >= ELEMENT_WISE


@pytest.mark.parametrize("name", sorted(MODELS))
def test_what_can_be_taken_apart_or_viewed_has_a_rule(name: str) -> None:
    for op in read_model(MODELS[name]()).ops():
        if _is_taken_apart(op):
            assert op.kind in RULES


def _is_taken_apart(op: Op) -> bool:
    axes = axis_map(op)
    views = any(s.same_bytes for s in sharings(op))
    return bool(axes.links or axes.reduces or views) and not has_side_effects(op)
