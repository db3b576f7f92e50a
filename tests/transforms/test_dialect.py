"""In the TFLM dialect a RESHAPE in the middle costs no operator; the last one stays."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.transforms.plans import dialect_plan
from tests.transforms.tiled import quick_differences
from tflm_planner.model.serde import read_model

IMAGE, ROWS = (1, 8, 8, 4), (64, 4)


def reshaped(kind: str, *, last: bool = False) -> bytes:
    """x -> RELU -> an operator that changes the shape -> RELU, unless that operator is the last."""
    shape, rows = {
        "RESHAPE": (IMAGE, ROWS),
        "SQUEEZE": ((1, 8, 8, 4), (8, 8, 4)),
        "EXPAND_DIMS": ((8, 8, 4), (1, 8, 8, 4)),
    }[kind]
    net = Net()
    graph = net.graph()
    x = graph.input("x", shape, scale=0.05)
    made = graph.tensor("made", shape, scale=0.05)
    turned = graph.tensor("turned", rows, scale=0.05)
    graph.op("RELU", [x], [made])
    if kind == "RESHAPE":
        graph.op(kind, [made, graph.constant("to", list(rows))], [turned], "ReshapeOptions")
    elif kind == "SQUEEZE":
        graph.op(kind, [made], [turned], "SqueezeOptions", squeezeDims=[0])
    else:
        graph.op(kind, [made, graph.constant("axis", 0)], [turned], "ExpandDimsOptions")
    if last:
        graph.outputs(turned)
        return net.finish()
    y = graph.tensor("y", rows, scale=0.05)
    graph.op("RELU", [turned], [y])
    graph.outputs(y)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("kind", ["RESHAPE", "SQUEEZE", "EXPAND_DIMS"])
def test_a_shape_in_the_middle_costs_no_operator(kind: str) -> None:
    before = reshaped(kind)
    after = dialect_plan(before, ()).data
    assert [op.kind for op in read_model(after, dialect=True).main.ops] == ["RELU", "RELU"]
    assert quick_differences(before, after, ("TFLM",)) == []


@needs_tflm
@pytest.mark.parametrize("kind", ["RESHAPE", "SQUEEZE", "EXPAND_DIMS"])
def test_the_last_operator_stays(kind: str) -> None:
    """TFLM keeps a graph output alive because an operator makes it."""
    before = reshaped(kind, last=True)
    after = dialect_plan(before, ()).data
    assert [op.kind for op in read_model(after, dialect=True).main.ops] == ["RELU", kind]
    assert quick_differences(before, after, ("TFLM",)) == []
