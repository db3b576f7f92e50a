"""Inputs whose channels come first are told, as are those that QUANTIZE reads before they turn."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.build import Net
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.guidance.layouts import channels_first_notes


def turned(order: tuple[int, ...] = (0, 2, 3, 1), *, floats: bool = False) -> bytes:
    """RELU of an image that TRANSPOSE turns. floats: the image comes as floats."""
    net = Net()
    graph, shape = net.graph(), (1, 3, 4, 5)
    x = graph.input("image", shape, "float32" if floats else "int8", scale=None if floats else 0.1)
    image = x
    if floats:
        image = graph.tensor("quantised", shape, scale=0.1)
        graph.op("QUANTIZE", [x], [image], "QuantizeOptions")
    there = tuple(shape[axis] for axis in order)
    last, y = graph.tensor("last", there, scale=0.1), graph.tensor("y", there, scale=0.1)
    axes = graph.constant("axes", np.array(order))
    graph.op("TRANSPOSE", [image, axes], [last], "TransposeOptions")
    graph.op("RELU", [last], [y])
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize("floats", [False, True])
def test_an_image_that_is_turned_is_told(*, floats: bool) -> None:
    data = turned(floats=floats)
    (note,) = channels_first_notes(read_model(data))
    assert "'image' has its channels first" in note and f"{240 if floats else 60} B" in note
    assert note in api.plan(data, None, api.PlanOptions(verify=None)).report.notes


def test_another_order_of_axes_is_not() -> None:
    assert [*channels_first_notes(read_model(turned((0, 2, 1, 3))))] == []
