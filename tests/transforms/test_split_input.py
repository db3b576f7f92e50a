"""Where a model can be split for an input that comes row by row."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.models.build import Net
from tests.transforms.row_loops import chain as image_chain
from tflm_planner.model.serde import read_model
from tflm_planner.transforms.row_loop.geometry import strip_geometry
from tflm_planner.transforms.row_loop.split_input import ends_of


def chain(length: int) -> bytes:
    """RELU after RELU; every fifth result is added to the one five before."""
    net = Net()
    graph = net.graph()
    x = skip = graph.input("x", (1, 8, 8, 4), scale=0.05)
    for i in range(length):
        y = graph.tensor(f"t{i}", (1, 8, 8, 4), scale=0.05)
        if i % 5 == 4:
            graph.op("ADD", [x, skip], [y], "AddOptions", version=2)
            skip = y
        else:
            graph.op("RELU", [x], [y], version=2)
        x = y
    graph.outputs(x)
    return net.finish()


@pytest.mark.parametrize(
    ("layers", "turns", "delays", "halos"),
    [
        # 12 rows of result, of which two windows wait for one row of their operand each
        ([(3, 1, 4), (3, 1, 4)], 7, [0, 1, 2], [2, 2]),
        # stride 2 pads below only: each of 6 rows waits for the last row that its window reads
        ([(3, 2, 4), (3, 1, 4)], 4, [0, 1, 2], [2, 2]),
        ([(1, 1, 4), (3, 2, 4)], 4, [0, 0, 1], [0, 2]),
    ],
)
def test_strips_wait_for_the_rows_that_their_windows_read(
    layers: list[tuple[int, int, int]], turns: int, delays: list[int], halos: list[int]
) -> None:
    graph = read_model(image_chain(*layers)).main
    found = strip_geometry(graph, graph.ops, 2)
    assert found.turns == turns and not found.backwards
    tensors = [graph.inputs[0], *(op.outputs[0] for op in graph.ops)]
    assert [found.delays[t] for t in tensors] == delays
    assert [u.halo for u in found.uses] == halos


def test_an_end_needs_what_its_result_depends_on() -> None:
    """x -> 0 -> 1 -> 4 <- 3 <- 0; 2 depends on a constant alone."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (4,), "float32")
    a, b, c, d, y = (graph.tensor(name, (4,), "float32") for name in "abcdy")
    graph.op("ABS", [x], [a])
    graph.op("NEG", [a], [b])
    graph.op("SQUARE", [graph.constant("k", [1, 2, 3, 4], "float32")], [c])
    graph.op("SQRT", [a], [d])
    graph.op("ADD_N", [b, d], [y])
    graph.outputs(y)
    assert list(ends_of(read_model(net.finish()))) == [(0,), (0, 1), (0, 3), (0, 1, 3, 4)]


def test_ends_of_a_long_chain_take_no_room_of_its_square() -> None:
    model = read_model(chain(2000))
    tracemalloc.start()
    count = sum(1 for _ in ends_of(model))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 2000
    assert peak < 4 << 20, f"{peak:,} bytes: an entry for every pair of operators takes 100 million"
