"""What inputs a proof compares: of every kind that a model may be sensitive to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.build import Net
from tflm_planner.model.ir import Graph
from tflm_planner.model.serde import read_model
from tflm_planner.verification.inputs import input_sets

KINDS = ("float32", "int8", "uint8", "int16", "bool", "int32")


def graph_of(*shapes: tuple[int, ...], dtype: str = "int8", zero: int = 0) -> Graph:
    net = Net()
    graph = net.graph()
    scale = {"scale": 0.1, "zero": zero} if dtype in ("int8", "uint8", "int16") else {}
    inputs = [graph.input(f"x{i}", shape, dtype, **scale) for i, shape in enumerate(shapes)]
    graph.outputs(*inputs)
    return read_model(net.finish()).main


def drawn(graph: Graph, count: int = 8) -> dict[str, np.ndarray]:
    return {label: values[0] for label, values in input_sets(graph, 7, count=count)}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(), (1,), (1, 10), (1, 16, 12, 3), (2, 5, 1)])
def test_inputs_of_all_types_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    graph = graph_of(shape, dtype=dtype)
    sets = list(input_sets(graph, 7, count=10))
    again = list(input_sets(graph, 7, count=10))
    for (label, (values,)), (_, (same,)) in zip(sets, again, strict=True):
        assert values.shape == shape and values.dtype == np.dtype(dtype), label
        assert np.array_equal(values, same)


def test_eight_inputs_are_of_seven_kinds() -> None:
    labels = [label for label, _ in input_sets(graph_of((1, 8)), 0)]
    assert labels == ["random", "all minimum", "all maximum", "constant", "random", "faint",
                      "natural", "sparse"]  # fmt: skip


@pytest.mark.parametrize("zero", [-128, 0, 5])
def test_faint_and_sparse_ones_lie_around_the_zero_point(zero: int) -> None:
    sets = drawn(graph_of((1, 40, 40, 3), zero=zero))
    assert np.abs(sets["faint"].astype(int) - zero).max() < 20
    assert len(np.unique(sets["faint"])) > 4
    assert 0.9 < (sets["sparse"] == zero).mean() < 0.99
    assert np.ptp(sets["sparse"].astype(int)) > 200


def test_a_natural_one_is_smooth_and_dark_in_one_half() -> None:
    for dtype, size in (("float32", 1.0), ("int8", 127.0)):
        image = drawn(graph_of((1, 40, 30, 1), dtype=dtype))["natural"][0, :, :, 0] / size
        dark, bright = image[:20], image[20:]
        assert np.abs(dark).max() < 0.1 < np.ptp(bright)
        assert np.abs(np.diff(bright, axis=1)).mean() < 0.2


def test_a_scale_of_all_of_the_data_shows_in_some_input() -> None:
    """What a hybrid kernel does: a RELU6 that saturates for random inputs hides it."""

    def hybrid(part: np.ndarray) -> np.ndarray:
        scale = np.abs(part).max() / 127 or 1.0
        return np.clip(np.round(part / scale) * scale * 50 + 3, 0, 6)

    shown = []
    for label, (values,) in input_sets(graph_of((1, 32, 8, 3), dtype="float32"), 1):
        halves = np.concatenate([hybrid(values[:, :16]), hybrid(values[:, 16:])], 1)
        shown += [label] if not np.array_equal(hybrid(values), halves) else []
    assert "natural" in shown
