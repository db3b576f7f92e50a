"""FILL of types that TFLM's kernel lacks: constants of the file, equal on both runtimes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize

BELOW = np.tril(np.ones((1, 1, 4, 4), bool))


def causal_scores(heads: int = 2, joined: str = "LOGICAL_AND") -> bytes:
    """Scores of a self-attention of 4 steps, of which those of later steps are hidden, as Keras
    writes it: a mask that forbids nothing is joined with one that forbids what comes later."""
    net = Net()
    graph = net.graph()
    shape = (1, heads, 4, 4)
    x = graph.input("x", shape, scale=0.1)
    free, mask = graph.tensor("free", shape, "bool"), graph.tensor("mask", shape, "bool")
    hidden, y = (
        graph.constant("hidden", np.array(-128), "int8", scale=0.1),
        graph.tensor("y", shape, scale=0.1),
    )
    true = graph.constant("true", np.array(True), "bool")
    for scalar in (hidden, true):
        graph.table.tensors[scalar].shape = []
    graph.op("FILL", [graph.constant("shape", np.array(shape)), true], [free], "FillOptions")
    graph.op(joined, [free, graph.constant("below", BELOW, "bool")], [mask])
    graph.op("SELECT_V2", [mask, x, hidden], [y], "SelectV2Options")
    graph.outputs(y)
    return net.finish()


def first_state(dtype: str) -> bytes:
    """A state of zeros, added to the first step."""
    net = Net()
    graph = net.graph()
    x, state, y = (
        graph.input("x", (1, 8), dtype, scale=0.1),
        graph.tensor("state", (1, 8), dtype, scale=0.1),
        graph.tensor("y", (1, 8), dtype, scale=0.1),
    )
    zero = graph.constant("zero", np.array(0), dtype, scale=0.1)
    graph.table.tensors[zero].shape = []
    shape = graph.constant("shape", np.array([1, 8]))
    graph.op("FILL", [shape, zero], [state], "FillOptions", version=3)
    graph.op("ADD", [x, state], [y], "AddOptions", version=2)
    graph.outputs(y)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("joined", ["LOGICAL_AND", "LOGICAL_OR"])
def test_a_causal_mask_is_a_constant(joined: str) -> None:
    data = causal_scores(joined=joined)
    assert "FILL" in " ".join(api.arena(data).cannot_run)
    made = api.plan(data)
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    (select,) = read_model(made.data).ops()
    assert select.kind == "SELECT_V2" and select.inputs[0] is not None
    mask = select.inputs[0].buffer.data
    assert mask is not None
    expected = np.tile(BELOW, (1, 2, 1, 1)) if joined == "LOGICAL_AND" else np.ones(32, bool)
    assert np.array_equal(mask[:32].view(bool), expected.reshape(-1))
    assert "computed ahead 2 operators from FILL" in " ".join(made.report.notes)


@needs_tflm
def test_a_state_of_int16_is_a_constant() -> None:
    data = first_state("int16")
    made = api.plan(data)
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert [op.kind for op in read_model(made.data).ops()] == ["ADD"]


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (first_state("int8"), ["FILL", "ADD"]),  # TFLM's kernel takes it
        (causal_scores(heads=5000), ["FILL", "LOGICAL_AND", "SELECT_V2"]),  # too large
    ],
)
def test_what_tflm_runs_and_what_is_large_stays(data: bytes, kinds: list[str]) -> None:
    model = read_model(data)
    run(model, Normalize())
    assert [op.kind for op in model.ops()] == kinds
