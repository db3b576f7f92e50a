"""REDUCE_MAX of int16 as MAX_POOL_2D: equal on both runtimes, and for every input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.transforms.substitutes.cleaning import cleaned, kinds_but_reshapes
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.substitutes.pool_maxima import as_image
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.terms import prove_by_terms

Shape = tuple[int, ...]


def maxima(
    shape: Shape, axes: list[int], *, keeps: bool = False, dtype: str = "int16", scale: float = 0.1
) -> bytes:
    """RELU, and the largest of what it gives along some axes. scale: of the result."""
    net = Net()
    graph = net.graph()
    quantised: dict[str, Any] = {} if dtype == "float32" else {"scale": 0.1}
    x, data = (
        graph.input("x", shape, dtype, **quantised),
        graph.tensor("data", shape, dtype, **quantised),
    )
    over = {a % len(shape) for a in axes}
    left = [1 if a in over else n for a, n in enumerate(shape) if keeps or a not in over]
    y = graph.tensor("y", left, dtype, **({"scale": scale} if quantised else {}))
    graph.op("RELU", [x], [data])
    where = graph.constant("axes", np.array(axes))
    graph.op("REDUCE_MAX", [data, where], [y], "ReducerOptions", keepDims=keeps)
    graph.outputs(y)
    return net.finish()


CASES: dict[str, tuple[Shape, list[int], bool]] = {
    "of an image": ((1, 5, 7, 3), [1, 2], False),
    "of an image, kept": ((1, 5, 7, 3), [2, 1], True),
    "of channels": ((1, 5, 7, 3), [-1], True),
    "of rows": ((2, 5, 7, 3), [1], False),
    "of a series": ((1, 16, 4), [1], False),
    "of all": ((2, 3, 4), [0, 1, 2], False),
    "of a batch of one, too": ((1, 6, 2, 3), [0, 1], False),
}


@needs_tflm
@pytest.mark.parametrize("name", CASES)
def test_maxima_of_int16_are_pooled(name: str) -> None:
    shape, axes, keeps = CASES[name]
    data = maxima(shape, axes, keeps=keeps)
    assert "REDUCE_MAX" in " ".join(api.arena(data).cannot_run)
    result = cleaned(data)
    assert kinds_but_reshapes(result) == ["RELU", "MAX_POOL_2D"]
    assert prove_by_terms(read_model(data), read_model(result)).status == "equal"
    checks = verify(data, result, VerifyOptions(inputs=9)).checks
    assert [c.status for c in checks] == ["equal", "equal"], checks
    made = api.plan(data)
    assert made.report.verified and api.check_equal(data, made.data).proved


@needs_tflm
def test_the_largest_of_one_is_itself() -> None:
    """As the channels of a grey image."""
    data = maxima((1, 5, 7, 1), [3])
    assert kinds_but_reshapes(cleaned(data)) == ["RELU"]
    assert api.plan(data).report.verified


@pytest.mark.parametrize(
    "data",
    [
        maxima((1, 300, 300, 2), [1, 2]),  # no window is so large
        maxima((1, 5, 7, 3), [1, 3]),  # apart
        maxima((1, 5, 7, 3), [1, 2], dtype="int8"),
        maxima((1, 5, 7, 3), [1, 2], dtype="float32"),
        maxima((1, 5, 7, 3), [1, 2], scale=0.2),
    ],
)
def test_others_stay(data: bytes) -> None:
    assert kinds_but_reshapes(cleaned(data)) == ["RELU", "REDUCE_MAX"]


@pytest.mark.parametrize("change", ["shape", "variable"])
def test_damaged_results_stay(change: str) -> None:
    model = read_model(maxima((1, 5, 7, 3), [1, 2]))
    if change == "shape":
        model.main.outputs[0].shape = (3, 1)
    else:
        model.main.outputs[0].is_variable = True
    run(model, Normalize())
    assert [op.kind for op in model.ops()] == ["RELU", "REDUCE_MAX"]


def test_terms_tell_axes_apart() -> None:
    rows, columns = maxima((1, 4, 4, 3), [1]), maxima((1, 4, 4, 3), [2])
    for other, status in ((rows, "equal"), (columns, "different")):
        proof = prove_by_terms(read_model(rows), read_model(cleaned(other)))
        assert proof.status == status


def test_axes_that_are_damaged_or_empty_are_none() -> None:
    assert as_image((1, 4, 3), [5]) is None and as_image((1, 4, 3), None) is None
    assert as_image((1, 4, 3), []) is None and as_image((1, 0, 3), [1]) is None
    assert as_image((1, 300, 300, 3), [1, 2]) is None  # no window is so large
    assert as_image((1, 4, 3), [0]) == (12, 1, 1)
    assert as_image((2, 1, 3, 1), [0, 2]) == (1, 6, 1)
