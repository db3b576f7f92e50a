"""STRIDED_SLICE of many axes with fewer: the same elements, and TFLM runs it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.substitutes.merge_axes import merge_sliced_axes, merged_axes
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.terms import prove_by_terms

BOARD = load_target("nano33ble")


def sliced(shape: tuple[int, ...], *parts: slice | int, dtype: str = "int8") -> bytes:
    """RELU and a STRIDED_SLICE of these parts; an index removes its axis."""
    net = Net()
    graph = net.graph()
    scale = {} if dtype == "float32" else {"scale": 0.05}
    x, data = graph.input("x", shape, dtype, **scale), graph.tensor("data", shape, dtype, **scale)
    graph.op("RELU", [x], [data])
    ranges = [
        p.indices(n) if isinstance(p, slice) else (p, p + 1, 1)
        for p, n in zip(parts, shape, strict=True)
    ]
    mask = sum(isinstance(p, int) << axis for axis, p in enumerate(parts))
    made = tuple(len(range(*r)) for r, p in zip(ranges, parts, strict=True) if isinstance(p, slice))
    y = graph.tensor("y", made, dtype, **scale)
    limits = [graph.constant(f"c{i}", np.array([r[i] for r in ranges])) for i in range(3)]
    graph.op("STRIDED_SLICE", [data, *limits], [y], "StridedSliceOptions", shrinkAxisMask=mask)
    graph.outputs(y)
    return net.finish()


ALL = slice(None)
CASES = {
    "anchors": ((1, 3, 3, 2, 7), ALL, ALL, ALL, ALL, slice(0, 2)),
    "anchors, every other": ((1, 3, 3, 2, 7), ALL, ALL, ALL, ALL, slice(1, 7, 2)),
    "a frame": ((1, 4, 3, 3, 2), ALL, 2, ALL, ALL, ALL),
    "a clip": ((2, 4, 3, 1, 2), ALL, slice(1, 3), ALL, ALL, ALL),
    "two axes": ((2, 4, 3, 3, 5), ALL, slice(1, 3), ALL, ALL, 4),
    "six axes": ((2, 2, 3, 2, 2, 3), ALL, ALL, slice(0, 3, 2), ALL, ALL, slice(1, 3)),
}


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_axes_that_are_taken_whole_are_merged(name: str, dtype: str) -> None:
    data = sliced(*CASES[name], dtype=dtype)
    assert cannot_run(read_model(data), BOARD)
    model = read_model(data)
    run(model, Normalize())
    assert not cannot_run(model, BOARD)
    assert prove_by_terms(read_model(data), model).status == "equal"
    if len(CASES[name][0]) == 5:  # LiteRT takes no more axes
        checks = verify(data, write_model(model), VerifyOptions(inputs=3)).checks
        assert [c.status for c in checks] == ["equal", "equal"], checks
        assert api.plan(data).report.verified


def test_few_axes_and_what_cannot_be_merged_stay() -> None:
    few = sliced((2, 4, 3, 3), ALL, slice(1, 3), ALL, 2)
    apart = sliced((4, 4, 4, 4, 4), *[slice(1, 3)] * 5)
    for data in (few, apart):
        model = read_model(data)
        run(model, Normalize())
        assert [op.kind for op in model.main.ops] == ["RELU", "STRIDED_SLICE"]


def test_a_stride_beyond_the_axis_stays() -> None:
    """As in a damaged file."""
    data = bytearray(sliced((1, 3, 3, 2, 7), ALL, ALL, ALL, ALL, slice(0, 7, 3)))
    ones = np.array([1, 1, 1, 1, 3], "<i4").tobytes()
    at = data.index(ones) + 16
    data[at : at + 4] = (1 << 30).to_bytes(4, "little")
    model = read_model(bytes(data))
    assert merge_sliced_axes(model) == []


def test_an_axis_of_one_goes_with_the_one_before() -> None:
    assert merged_axes([(2, 0, 1, 2), (3, 0, 1, 3), (5, 1, 1, 2), (1, 0, 1, 1), (7, 0, 1, 7)]) == [
        (6, 0, 1, 6), (5, 1, 1, 2), (7, 0, 1, 7)
    ]  # fmt: skip
    assert merged_axes([(5, 1, 2, 2), (1, 0, 1, 1), (1, 0, 1, 1)]) == [(5, 1, 2, 2)]
    assert merged_axes([(1, 0, 1, 1), (7, 0, 1, 7)]) == [(7, 0, 1, 7)]
