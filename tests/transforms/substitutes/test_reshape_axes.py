"""EXPAND_DIMS and SQUEEZE of types that TFLM's kernels lack become RESHAPE."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize


def masked(dtype: str = "bool") -> bytes:
    """Words that are none are masked in what was found of them: (1, 6) and (1, 6, 4)."""
    net = Net()
    graph = net.graph()
    word, found = graph.input("word", (1, 6), "int32"), graph.input("found", (1, 6, 4), "float32")
    zero, axis = graph.constant("zero", np.array(0)), graph.constant("axis", np.array(-1))
    nothing = graph.constant("nothing", np.array(0), "float32")
    for scalar in (zero, axis, nothing):
        graph.table.tensors[scalar].shape = []
    is_word, y = graph.tensor("is_word", (1, 6), "bool"), graph.tensor("y", (1, 6, 4), "float32")
    mask = graph.tensor("mask", (1, 6, 1), dtype)
    graph.op("NOT_EQUAL", [word, zero], [is_word], "NotEqualOptions")
    narrow = is_word
    if dtype != "bool":
        narrow, told = graph.tensor("narrow", (1, 6), dtype), is_word
        graph.op("CAST", [told], [narrow], "CastOptions")
    graph.op("EXPAND_DIMS", [narrow, axis], [mask], "ExpandDimsOptions")
    if dtype == "bool":
        graph.op("SELECT_V2", [mask, found, nothing], [y], "SelectV2Options")
    else:
        graph.op("MUL", [mask, found], [y], "MulOptions")
    graph.outputs(y)
    return net.finish()


@needs_tflm
def test_a_mask_of_words_is_planned_and_proved() -> None:
    data = masked()
    assert "EXPAND_DIMS" in " ".join(api.arena(data).cannot_run)
    made = api.plan(data)
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    kinds = [op.kind for op in read_model(made.data).ops()]
    assert kinds == ["NOT_EQUAL", "RESHAPE", "SELECT_V2"]


def test_what_tflm_runs_stays() -> None:
    model = read_model(masked("float32"))
    run(model, Normalize())
    assert [op.kind for op in model.ops()] == ["NOT_EQUAL", "CAST", "EXPAND_DIMS", "MUL"]


@pytest.mark.parametrize("shape", [(1, 6, 2), (6, 2), (1, 1, 6), (6, 1, 1)])
def test_damaged_shapes_stay(shape: tuple[int, ...]) -> None:
    """Two of them have as many elements."""
    model = read_model(masked())
    mask = next(t for t in model.main.tensors if t.name == "mask")
    mask.shape = shape
    run(model, Normalize())
    assert "EXPAND_DIMS" in [op.kind for op in model.ops()]
