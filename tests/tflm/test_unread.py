"""What TFLM does not read, or reads wrong, is refused as it is, and planned where it can be."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.models.handmade_data import data_behind_the_flatbuffer, external_buffers
from tests.models.registry import MODELS
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.unread import why_unread
from tflm_planner.verification.prepared import as_in, kept_inside


@needs_tflm
def test_data_behind_the_flatbuffer_are_moved_into_it() -> None:
    """As AI Edge Quantizer writes larger models. TFLM makes room for them, and fills it with
    nothing; the plan is right, and so is the comparison with the file."""
    data = data_behind_the_flatbuffer()
    assert "outside of the flatbuffer" in " ".join(api.arena(data).cannot_run)
    made = api.plan(data, None, api.PlanOptions(tiles=api.TilePermission(workers=1)))
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert "moved into it" in " ".join(made.report.notes)
    assert not any(b.external for b in read_model(made.data).buffers)
    assert api.check_equal(data, made.data).proved
    assert not api.arena(made.data).cannot_run


def test_what_lies_inside_stays_as_it_is() -> None:
    data = _embedding(1)
    assert kept_inside(data) == (data, [])
    outside = data_behind_the_flatbuffer()
    inside = kept_inside(outside)[0]
    assert inside != outside and kept_inside(inside) == (inside, [])
    assert as_in(outside, read_model(outside)) == outside  # compared with one like it
    assert as_in(outside, read_model(inside)) == inside


def test_data_in_another_file_are_refused() -> None:
    data = external_buffers()
    assert "no data of other files" in " ".join(api.arena(data).cannot_run)
    with pytest.raises(ModelError, match="other files"):
        api.plan(data)


@pytest.mark.parametrize("name", [n for n in MODELS if n.startswith("sparse")])
def test_sparse_data_are_refused(name: str) -> None:
    model = read_model(MODELS[name].make())
    reasons = {why_unread(t) for t in model.tensors()} - {None}
    assert reasons == {"TFLM reads sparse tensors as if they were dense"}
    assert "without sparsity" in " ".join(api.arena(MODELS[name].make()).cannot_run)


def _embedding(scales: int, result: str = "float32") -> bytes:
    net = Net()
    graph = net.graph()
    table = np.arange(24).reshape(6, 4) - 9
    steps = np.linspace(0.1, 0.4, scales)
    words = graph.input("words", (3,), "int32")
    rows = graph.constant("rows", table, "int8", scale=steps)
    y = graph.tensor("y", (3, 4), result, **({} if result == "float32" else {"scale": 0.1}))
    graph.op("EMBEDDING_LOOKUP", [words, rows], [y])
    graph.outputs(y)
    return net.finish()


def test_a_table_of_several_scales_is_refused() -> None:
    assert "EMBEDDING_LOOKUP of int8" in " ".join(api.arena(_embedding(6)).cannot_run)
    assert api.arena(_embedding(1)).cannot_run == ()
    assert api.arena(_embedding(6, "int8")).cannot_run == ()  # bytes are copied
