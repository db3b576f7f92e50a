"""Models of a free batch get the shapes that LiteRT computes for one image, and no others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net, unpack
from tests.models.small import operator_alone
from tflm_planner.model.edit import end_after
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.declared_shapes import misdeclaration
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.verification import on_litert
from tflm_planner.verification.declare import declared_anew


def dense_on_a_sequence(
    shape_from: str = "batch", declared: tuple[int, int] = (1, 1), ends_with: str | None = None
) -> bytes:
    """Dense on (1, 6, 8), as Keras writes it with a free batch: RESHAPE to (batch * 6, 8), which is
    declared as `declared`, FULLY_CONNECTED, RESHAPE. shape_from: "batch", looked up in the
    operand; "input", given beside it. ends_with: an operator of float32 at the end, as which
    everything is then written."""
    net = Net()
    graph = net.graph()
    number: dict[str, Any] = {"scale": 0.1} if ends_with is None else {"dtype": "float32"}
    x = graph.input("x", (1, 6, 8), **number)
    graph.table.tensors[x].shapeSignature = [-1, 6, 8]
    six, eight = graph.constant("six", np.array(6)), graph.constant("eight", np.array(8))
    for each in (six, eight):
        graph.table.tensors[each].shape = []
    if shape_from == "input":
        rows = graph.input("rows", (), "int32")
    else:
        shape, batch, rows = (
            graph.tensor(n, s, "int32") for n, s in (("shape", (3,)), ("batch", ()), ("rows", ()))
        )
        graph.op("SHAPE", [x], [shape], "ShapeOptions", outType=2)
        limits = [graph.constant(n, np.array([v])) for n, v in (("a", 0), ("b", 1), ("c", 1))]
        graph.op(
            "STRIDED_SLICE", [shape, *limits], [batch], "StridedSliceOptions", shrinkAxisMask=1
        )
        graph.op("MUL", [batch, six], [rows], "MulOptions")
    packed = graph.tensor("packed", (2,), "int32")
    graph.op("PACK", [rows, eight], [packed], "PackOptions", valuesCount=2)
    flat, y = graph.tensor("flat", declared, **number), graph.tensor("y", (1, 4), **number)
    graph.op("RESHAPE", [x, packed], [flat], "ReshapeOptions")
    weights = np.random.default_rng(0).integers(-99, 99, (4, 8))
    w = graph.constant(
        "w", weights, **({"dtype": "int8", "scale": 0.01} if ends_with is None else number)
    )
    graph.op("FULLY_CONNECTED", [flat, w, -1], [y], "FullyConnectedOptions")
    z = graph.tensor("z", (1, 6, 4), **number)
    graph.op("RESHAPE", [y, graph.constant("to", [1, 6, 4])], [z], "ReshapeOptions")
    if ends_with is not None:
        z, before = graph.tensor("last", (1, 6, 4), **number), z
        graph.op(ends_with, [before], [z])
    graph.outputs(z)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("operators", [None, "none", "all"])
def test_dense_on_a_sequence_of_a_free_batch_is_planned_and_proved(operators: str | None) -> None:
    data = dense_on_a_sequence()
    assert misdeclaration(read_model(data).ops()) is not None
    tiles = None
    if operators is not None:
        allowed = {"none": api.AllowedOperators.NONE, "all": api.AllowedOperators.ALL}[operators]
        tiles = api.TilePermission(operators=allowed, workers=1)
    made = api.plan(data, None, api.PlanOptions(tiles=tiles))
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert "for one image" in " ".join(made.report.notes)
    equality = api.check_equal(data, made.data)
    assert equality.proved and equality.equal


def test_only_shapes_are_other_ones() -> None:
    data = dense_on_a_sequence()
    declared = declared_anew(data)
    before, after = unpack(data).subgraphs[0], unpack(declared.data).subgraphs[0]
    changed = {
        old.name: list(new.shape)
        for old, new in zip(before.tensors, after.tensors, strict=True)
        if list(old.shape) != list(new.shape)
    }
    assert changed == {b"flat": [6, 8], b"y": [6, 4]}
    assert [list(op.inputs) for op in before.operators] == [
        list(op.inputs) for op in after.operators
    ]
    model = read_model(declared.data)
    run(model, Normalize())
    assert misdeclaration(model.ops()) is None
    assert [op.kind for op in model.main.ops] == ["RESHAPE", "FULLY_CONNECTED", "RESHAPE"]


def test_a_shape_that_an_input_says_is_not_declared() -> None:
    """Whatever LiteRT computes for one input is wrong for another one."""
    data = dense_on_a_sequence("input")
    assert declared_anew(data) == (data, "")


def test_what_is_right_stays_as_it_is() -> None:
    for data in (dense_on_a_sequence(declared=(6, 8)), operator_alone("RELU")):
        if misdeclaration(read_model(data).ops()) is None:
            assert declared_anew(data).data is data


@needs_tflm
def test_an_output_may_be_declared_wrongly_too() -> None:
    """As of a decoder that ends in an image: (1, 1, 40, 2) in place of (1, 40, 40, 2)."""
    model = read_model(dense_on_a_sequence())
    (flat, dense) = model.main.ops[-3:-1]
    assert (flat.kind, dense.kind) == ("RESHAPE", "FULLY_CONNECTED")
    end_after(model, dense)
    data = write_model(model)
    assert read_model(data).main.outputs[0].shape == (1, 4)
    made = api.plan(data)
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert read_model(made.data).main.outputs[0].shape == (6, 4)
    assert api.check_equal(data, made.data).proved


@needs_tflm
def test_a_tensor_that_litert_does_not_know_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a damaged file, whose tensor has no type."""
    data = dense_on_a_sequence()
    model = read_model(data)
    names = [t.name for t in model.main.tensors]
    real = on_litert.Session.receive

    def without_one(session: on_litert.Session) -> object:
        answer = real(session)
        if not isinstance(answer, list):  # how loading went
            return answer
        shapes, *outputs = answer
        known = zip(names, shapes, strict=True)
        return [[None if n == "six" else shape for n, shape in known], *outputs]

    with monkeypatch.context() as patch:
        patch.setattr(on_litert.Session, "receive", without_one)
        computed = on_litert.computed_on_litert(data, model, 1)
    assert computed is not None and computed.shapes[names.index("six")] is None
    assert computed.shapes[names.index("flat")] == (6, 8)


@needs_tflm
@pytest.mark.parametrize("kind", ["CEIL", "ROUND", "ELU"])
def test_shapes_are_known_where_litert_has_no_slow_kernel(kind: str) -> None:
    """It registers no reference kernel for these."""
    data = dense_on_a_sequence(ends_with=kind)
    made = api.plan(data)
    assert "for one image" in " ".join(made.report.notes)
    assert {c.runtime: c.status for c in made.report.checks}["TFLM"] == "equal"
    operators = [op.kind for op in read_model(made.data).ops()]
    assert operators == ["RESHAPE", "FULLY_CONNECTED", "RESHAPE", kind]
