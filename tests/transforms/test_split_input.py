"""Where a model can be split for an input that comes row by row."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tests.call_counts import assert_near_linear
from tests.models.build import Net
from tests.models.small import Chain, One
from tests.transforms.row_loops import chain as image_chain
from tflm_planner.model.serde import read_model
from tflm_planner.transforms.row_loop.geometry import strip_geometry
from tflm_planner.transforms.row_loop.loop import NotStreamableError
from tflm_planner.transforms.row_loop.split_input import can_split, can_stream, split_points_of


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
    assert list(split_points_of(read_model(net.finish()))) == [(0,), (0, 1), (0, 3), (0, 1, 3, 4)]


@pytest.mark.slow
def test_ends_of_a_long_chain_take_no_room_of_its_square() -> None:
    model = read_model(chain(2000))
    tracemalloc.start()
    count = sum(1 for _ in split_points_of(model))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 2000
    assert peak < 4 << 20, f"{peak:,} bytes: an entry for every pair of operators takes 100 million"


def two_inputs() -> bytes:
    """A sum of two images."""
    net = Net()
    graph = net.graph()
    shape = (1, 8, 8, 4)
    x, other, y = graph.input("x", shape), graph.input("other", shape), graph.tensor("y", shape)
    graph.op("ADD", [x, other], [y], "AddOptions", version=2)
    graph.outputs(y)
    return net.finish()


def vector() -> bytes:
    """An input that has no rows."""
    one = One((1, 16))
    return one.finish((one.x, (1, 16)))


def vectors(length: int) -> bytes:
    """So many times RELU of a vector, as an unrolled recurrent network is long."""
    one = One((1, 16))
    y = one.x
    for _ in range(length):
        x, y = y, one.tensor((1, 16))
        one.graph.op("RELU", [x], [y])
    return one.finish((y, (1, 16)))


def rows(height: int) -> bytes:
    """A RELU of an image of so many rows."""
    one = One((1, height, 4, 4))
    return one.finish((one.x, (1, height, 4, 4)))


@pytest.mark.parametrize(
    ("data", "can"),
    [
        (image_chain((3, 1, 4), (3, 1, 4)), True),
        (rows(2), True),
        (rows(1), False),
        (two_inputs(), False),
        (vector(), False),
    ],
    ids=["an image", "two rows", "one row", "two images", "a vector"],
)
def test_only_one_image_comes_row_by_row(data: bytes, can: bool) -> None:
    assert can_stream(read_model(data)) == can


def test_a_long_model_whose_input_is_no_image_is_known_at_once() -> None:
    models = {length: read_model(vectors(length)) for length in (30, 300)}
    assert_near_linear(lambda length: lambda: can_stream(models[length]), 30, 300)


def test_the_front_ends_before_the_outputs_and_has_the_only_input() -> None:
    model = read_model(image_chain((3, 1, 4), (3, 1, 4), (3, 1, 4)))
    assert can_split(model, (0, 1), 2).result is model.main.ops[1].outputs[0]
    with pytest.raises(NotStreamableError, match="is an output of the model"):
        can_split(model, range(len(model.main.ops)), 2)
    with pytest.raises(NotStreamableError, match="is not the model's input"):
        can_split(model, (1,), 2)
    with pytest.raises(NotStreamableError, match="has 2 inputs, not one"):
        can_split(read_model(two_inputs()), (0,), 2)


def test_where_no_row_can_be_alone_nothing_comes_row_by_row() -> None:
    """A convolution of VALID with stride 2: CMSIS-NN computes single rows of it wrong."""
    chain = Chain((1, 8, 10, 4))
    scales = np.full(8, 1 / 300)
    weights = chain.graph.constant("w", np.ones((8, 1, 3, 4)), "int8", scale=scales)
    image, last = chain.tensor((1, 8, 4, 8)), chain.tensor((1, 8, 4, 8))
    fields = {"strideH": 1, "strideW": 2, "dilationHFactor": 1, "dilationWFactor": 1}
    chain.graph.op("CONV_2D", [chain.x, weights], [image], "Conv2DOptions", padding=1, **fields)
    chain.graph.op("RELU", [image], [last])
    assert not can_stream(read_model(chain.finish(last)))
