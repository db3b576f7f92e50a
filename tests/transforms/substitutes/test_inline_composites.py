"""STABLEHLO_COMPOSITE written as the operators of its sub-graph: equal on LiteRT and by terms."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.conftest import needs_tflm
from tests.models.build import Graph, Net
from tests.transforms.substitutes.cleaning import cleaned, kinds_but_reshapes
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError
from tflm_planner.transforms.substitutes.inline_composites import inline_composites
from tflm_planner.verification.terms import prove_by_terms

SHAPE = (1, 4, 5, 3)
COMPOSITE = "STABLEHLO_COMPOSITE"


def _compose(graph: Graph, operands: list[int], result: int, number: int) -> None:
    """A composite of a sub-graph, without attributes of its own."""
    attributes = flexbuffers.Builder()
    with attributes.Map():
        pass
    fields = {
        "name": f"made.up.{number}",
        "decompositionSubgraphIndex": number,
        "compositeAttributes": np.frombuffer(attributes.Finish(), np.uint8),
    }
    graph.op(COMPOSITE, operands, [result], "StableHLOCompositeOptions", second=True, **fields)


def _inside(net: Net, number: int, slope: float, inner: int | None, what: str) -> None:
    """x * c, LEAKY_RELU, and what is inside of another composite."""
    graph = net.graph(f"inside{number}")
    x, y = graph.input("in", SHAPE, "float32"), graph.tensor("out", SHAPE, "float32")
    scaled, bent = (graph.tensor(name, SHAPE, "float32") for name in ("scaled", "bent"))
    c = graph.constant("c", np.array([0.5, -2.0, 3.0], np.float32), "float32")
    graph.op("MUL", [x, c], [scaled], "MulOptions")
    graph.op("LEAKY_RELU", [scaled], [bent], "LeakyReluOptions", alpha=slope)
    if inner is None:
        graph.op("ABS", [bent], [y])
    else:
        _compose(graph, [bent], y, inner)
    graph.outputs(x if what == "input handed on" else c if what == "constant" else y)


def composed(*, slope: float = 0.25, nested: bool = True, what: str = "") -> bytes:
    """One composite called twice, which calls another one."""
    net = Net()
    main = net.graph()
    x = main.input("x", SHAPE, "float32")
    a, b, y = (main.tensor(name, SHAPE, "float32") for name in "aby")
    _compose(main, [x], a, 1)
    main.op("ADD", [a, x], [b], "AddOptions")
    _compose(main, [b], y, 1)
    main.outputs(y)
    _inside(net, 1, slope, 2 if nested else None, what)
    if nested:
        _inside(net, 2, 0.75, None, "")
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("nested", [False, True])
def test_what_is_inside_is_written_in_its_place(*, nested: bool) -> None:
    data = composed(nested=nested)
    assert COMPOSITE in " ".join(api.arena(data).warnings)
    result = cleaned(data)
    once = ["MUL", "LEAKY_RELU"] * (2 if nested else 1) + ["ABS"]
    assert kinds_but_reshapes(result) == [*once, "ADD", *once]
    assert len(read_model(result).graphs) == 1
    assert prove_by_terms(read_model(data), read_model(result)).status == "equal"
    report = api.plan(data).report
    assert report.verified and {c.status for c in report.checks} == {"equal"}
    assert COMPOSITE in " ".join(report.notes)


def test_terms_look_inside() -> None:
    other = read_model(cleaned(composed(slope=0.26)))
    assert prove_by_terms(read_model(composed()), other).status == "different"
    assert prove_by_terms(read_model(composed()), read_model(composed())).status == "equal"
    changed = read_model(composed(slope=0.26))
    assert prove_by_terms(read_model(composed()), changed).status == "different"


@pytest.mark.parametrize("what", ["input handed on", "constant"])
def test_what_makes_no_result_of_its_own_stays(what: str) -> None:
    data = composed(nested=False, what=what) if what != "constant" else _of_a_constant()
    model = read_model(data)
    before = write_model(model)
    assert inline_composites(model) == [] and write_model(model) == before


def _of_a_constant() -> bytes:
    net = Net()
    main = net.graph()
    x, y = main.input("x", SHAPE, "float32"), main.tensor("y", (3,), "float32")
    _compose(main, [x], y, 1)
    main.outputs(y)
    _inside(net, 1, 0.25, None, "constant")
    return net.finish()


@pytest.mark.parametrize("change", ["shape", "state", "type"])
def test_odd_ones_stay(change: str) -> None:
    model = read_model(composed(nested=False))
    inner = model.graphs[1]
    if change == "shape":
        inner.inputs[0].shape = (1, 5, 4, 3)
    elif change == "state":
        inner.ops[0].outputs[0].is_variable = True
    else:
        inner.outputs[0].type += 1
    assert inline_composites(model) == []


def test_a_wrong_number_of_operands_is_refused() -> None:
    net = Net()
    main = net.graph()
    x, y = main.input("x", SHAPE, "float32"), main.tensor("y", SHAPE, "float32")
    _compose(main, [x, x], y, 1)
    main.outputs(y)
    _inside(net, 1, 0.25, None, "")
    with pytest.raises(ModelError, match="calls the graph 'inside1' with 2 tensors"):
        read_model(net.finish())
