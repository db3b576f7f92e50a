"""Persistent memory that overwrites what Prepare fetched: exactly the bytes nobody reads again."""

import numpy as np
import pytest

from tests.models.build import Graph, Net
from tests.tflm.wheel import assert_needs
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.targets import load_target

WHEEL = load_target("x86-64/wheel")


def scaled(graph: Graph, name: str, shape: tuple[int, ...], scales: int, given: bool = True) -> int:
    make = graph.input if given else graph.tensor
    return make(name, shape, **({"scale": np.full(scales, 0.1)} if scales else {}))


def gather_nd(graph: Graph, many: int, more: int) -> int:
    x = scaled(graph, "x", (5, 4), many)
    y = scaled(graph, "y", (2, 4), more, given=False)
    graph.op("GATHER_ND", [x, graph.constant("rows", [[0], [3]])], [y])
    return y


def batch_matmul(graph: Graph, many: int, more: int) -> int:
    x, z = scaled(graph, "x", (3, 5), many or 1), scaled(graph, "z", (5, 4), many or 1)
    y = scaled(graph, "y", (3, 4), more or 1, given=False)
    graph.op("BATCH_MATMUL", [x, z], [y], "BatchMatMulOptions")
    return y


def add_n(graph: Graph, many: int, more: int) -> int:
    inputs = [scaled(graph, f"x{i}", (2, 3), many or 1) for i in range(4)]
    y = scaled(graph, "y", (2, 3), more or 1, given=False)
    graph.op("ADD_N", inputs, [y])
    return y


@pytest.mark.parametrize("build", [gather_nd, batch_matmul, add_n])
@pytest.mark.parametrize(("many", "more"), [(0, 0), (1, 0), (0, 1), (1, 4), (10, 6), (3, 11)])
@pytest.mark.mostly_slow(fast=3)
def test_any_number_of_scales(build, many: int, more: int) -> None:
    pytest.importorskip("tflite_micro")
    net = Net()
    graph = net.graph()
    graph.outputs(build(graph, many, more))
    data = net.finish()
    arena = arena_of(read_model(data), WHEEL)
    assert_needs(data, arena)
