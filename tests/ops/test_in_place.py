"""Which results may lie in which operands, operator by operator."""

from __future__ import annotations

import pytest

from tests.models.handmade import MODELS
from tflm_planner.model.serde import read_model
from tflm_planner.ops import has_side_effects, sharings


def distances(name: str) -> dict[str, list[tuple[int, bool]]]:
    """Operator kind -> (distance, exclusive) of each sharing, over a whole model."""
    found: dict[str, list[tuple[int, bool]]] = {}
    for op in read_model(MODELS[name].make()).ops():
        found.setdefault(op.kind, []).extend((s.distance, s.exclusive) for s in sharings(op))
    return found


def test_add_onto_either_operand_and_once_onto_the_same():
    assert distances("same_operand_twice")["ADD"] == [(0, True)]
    pairs = distances("branches_of_different_depth")["ADD"]
    assert pairs and len(pairs) % 2 == 0 and set(pairs) == {(0, True)}


def test_parts_along_the_outer_axis_are_views():
    found = distances("views_on_the_outer_axis")
    assert found, "the model has no views"
    for kind in ("CONCATENATION", "SPLIT", "SLICE", "PACK", "UNPACK"):
        if kind in found:
            assert found[kind], f"{kind} along the outermost axis shares nothing"


def test_parts_along_an_inner_axis_are_not():
    assert distances("same_operand_twice")["CONCATENATION"] == []


@pytest.mark.parametrize("name", ["call_once", "custom_operator", "while_loop", "svdf"])
def test_side_effects_are_seen(name):
    model = read_model(MODELS[name].make())
    assert any(has_side_effects(op) for op in model.main.ops)


def test_pure_operators_may_move(cnn):
    assert not any(has_side_effects(op) for op in read_model(cnn).ops())
