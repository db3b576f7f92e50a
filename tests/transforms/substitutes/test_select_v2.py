"""SELECT of operands of one shape as SELECT_V2: equal on LiteRT and by terms."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.transforms.substitutes.cleaning import cleaned, kinds_but_reshapes
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.verification.terms import prove_by_terms

Shape = tuple[int, ...]


def chosen(dtype: str = "int8", *, test: Shape = (2, 3, 4), swapped: bool = False) -> bytes:
    """An input where another one is the larger, else its negative slope. test: the shape of the
    larger; (2,) chooses rows. swapped: the other way round."""
    net = Net()
    graph, shape = net.graph(), (2, 3, 4)
    quantised: dict[str, Any] = {"scale": 0.1} if dtype in ("int8", "int16") else {}
    x, a = graph.input("x", shape, dtype, **quantised), graph.input("a", test, "float32")
    b = graph.input("b", test, "float32")
    bent = x
    if quantised or dtype == "float32":
        bent = graph.tensor("bent", shape, dtype, **quantised)
        graph.op("LEAKY_RELU", [x], [bent], "LeakyReluOptions", alpha=-0.5)
    else:
        bent = graph.tensor("bent", shape, dtype)
        graph.op("ADD", [x, graph.constant("seven", [7])], [bent], "AddOptions")
    larger, y = graph.tensor("larger", test, "bool"), graph.tensor("y", shape, dtype, **quantised)
    graph.op("GREATER", [a, b], [larger], "GreaterOptions")
    pair = [bent, x] if swapped else [x, bent]
    graph.op("SELECT", [larger, *pair], [y], "SelectOptions")
    graph.outputs(y)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "int32"])
def test_a_choice_of_elements_is_the_other_operator(dtype: str) -> None:
    data = chosen(dtype)
    assert "SELECT" in " ".join(api.arena(data).warnings)
    result = cleaned(data)
    assert "SELECT" not in kinds_but_reshapes(result)
    assert prove_by_terms(read_model(data), read_model(result)).status == "equal"
    report = api.plan(data).report
    assert report.verified and {c.status for c in report.checks} == {"equal"}
    assert "SELECT" in " ".join(report.notes)


def test_terms_tell_the_branches_apart() -> None:
    other = read_model(cleaned(chosen(swapped=True)))
    assert prove_by_terms(read_model(chosen()), other).status == "different"


def test_a_choice_between_fewer_operands_is_damaged() -> None:
    for kept in (2, 0):
        model = read_model(chosen("int32"))
        op = model.main.ops[-1]
        op.inputs = op.inputs[:kept]
        with pytest.raises(ModelError, match="damaged model"):
            read_model(write_model(model))


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_one_more_place_without_an_operand_stays(dtype: str) -> None:
    model = read_model(chosen(dtype))
    op = model.main.ops[-1]
    op.inputs = [*op.inputs, None]
    run(model, Normalize())
    assert [op.kind for op in model.ops()][-1] == "SELECT"


@needs_tflm
def test_a_file_is_no_plan_of_itself() -> None:
    """Its clean-up runs on TFLM, the file itself does not: that is no difference."""
    verdict = api.check_equal(chosen(), chosen())
    assert not verdict.differs


def test_a_choice_of_rows_stays() -> None:
    assert "SELECT" in kinds_but_reshapes(cleaned(chosen(test=(2,))))
