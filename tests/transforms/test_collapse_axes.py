"""Transpositions of five axes and more, which CMSIS-NN leaves unwritten, are made with four."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.models.small import Chain
from tests.transforms.tiled import outputs_of_both, quick_differences, tiled
from tflm_planner.model.check import check
from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops.window import ROWS
from tflm_planner.pipeline import api
from tflm_planner.transforms.collapse_axes import collapse_transpose_axes, collapsed_axes, swaps_of
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification.terms import prove_by_terms

SHUFFLE = (0, 1, 2, 4, 3)


class Turns(Chain):
    """Images, turned between RESHAPEs."""

    def reshape(self, shape: Sequence[int], x: int | None = None) -> int:
        y = self.tensor(tuple(shape))
        told = self.graph.constant(f"shape{y}", np.array(shape))
        self.graph.op(
            "RESHAPE", [self.x if x is None else x, told], [y], "ReshapeOptions",
            newShape=list(shape),
        )  # fmt: skip
        return y

    def turn(self, x: int, shape: Sequence[int], order: Sequence[int]) -> int:
        y = self.tensor(tuple(shape[axis] for axis in order))
        told = self.graph.constant(f"order{y}", np.array(order))
        self.graph.op("TRANSPOSE", [x, told], [y], "TransposeOptions")
        return y

    def shuffle(self, groups: int) -> None:
        """Channels shuffled among groups (ShuffleNet)."""
        *image, channels = self.shape
        apart = (*image, groups, channels // groups)
        turned = self.turn(self.reshape(apart), apart, SHUFFLE)
        self.x = self.reshape(self.shape, turned)


def block(batch: int = 1) -> bytes:
    """The middle of a ShuffleNet unit."""
    net = Turns((batch, 6, 5, 8))
    net.conv(12, 1)
    net.shuffle(3)
    net.conv(12, 3)
    net.shuffle(2)
    net.conv(4, 1)
    return net.finish()


def turned(data: bytes) -> tuple[bytes, list[str]]:
    model = read_model(data)
    notes = collapse_transpose_axes(model)
    check(model)
    return write_model(model), notes


def transpositions(data: bytes) -> list[Op]:
    return [op for op in read_model(data).main.ops if op.kind == "TRANSPOSE"]


@needs_tflm
@pytest.mark.parametrize(
    ("batch", "shape"), [(1, (6, 5, 3, 4)), (2, (2, 30, 3, 4))], ids=["one", "two"]
)
def test_shuffled_channels_are_the_same(batch: int, shape: tuple[int, ...]) -> None:
    data = block(batch)
    made, (note,) = turned(data)
    assert note.startswith("2 TRANSPOSE of more than 4 axes")
    first, _ = transpositions(made)
    assert first.inputs[0].shape == shape and integers(first.inputs[1]) == [0, 1, 3, 2]
    kinds = [op.kind for op in read_model(data).main.ops]
    assert [op.kind for op in read_model(made).main.ops] == kinds
    seen = set[bytes]()
    for runtime, label, a, b in outputs_of_both(data, made):
        assert a.tobytes() == b.tobytes(), (runtime, label)
        seen.add(a.tobytes())
    assert len(seen) > 3, "constant outputs prove nothing"
    assert turned(made) == (made, [])


@needs_tflm
def test_what_was_garbage_on_cmsis_nn_is_none_any_more() -> None:
    """As a plan, and in tiles of rows, which the merged axes leave apart."""
    data = block()
    board = api.load_target("cortex-m4/cmsis-nn")
    on = api.MemoryOptions(time_limit=5.0, kernels=api.kernels_of(board))
    result = api.plan(data, None, api.PlanOptions(on, verify=api.VerifyOptions(inputs=2)))
    assert any("unwritten" in w for w in api.arena(data, board).warnings)
    assert not any("unwritten" in w for w in api.arena(result.data, board).warnings)
    assert any("CMSIS-NN leaves the results" in n for n in result.report.notes)
    assert {c.status for c in result.report.checks} == {"equal"}
    parts, notes = tiled(turned(data)[0], TiledRegion(tuple(range(4)), (Split(ROWS, 3),)))
    assert notes[0].startswith("tiled 4 operators")
    assert quick_differences(data, parts) == []


def between_reshapes(shape: Sequence[int], order: Sequence[int]) -> bytes:
    net = Turns((1, 1, 1, math.prod(shape)))
    result = net.turn(net.reshape(shape), shape, order)
    return net.finish(net.reshape((1, math.prod(shape)), result))


@needs_tflm
@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.permutations(range(6)), st.lists(st.sampled_from([1, 1, 2, 3]), min_size=5, max_size=6))
@pytest.mark.slow
def test_any_axes_in_any_order(drawn: list[int], shape: list[int]) -> None:
    """TFLM turns five axes at most, LiteRT six."""
    order = [axis for axis in drawn if axis < len(shape)]
    data = between_reshapes(shape, order)
    made, notes = turned(data)
    groups = collapsed_axes(shape, order, 4)
    assert bool(notes) == (groups != sorted(groups))
    assume(notes)
    turns = transpositions(made)
    assert (len(turns) == 1) == (len(groups) <= 4)
    assert all(len(op.outputs[0].shape or ()) <= 4 for op in turns)
    assert prove_by_terms(read_model(data), read_model(made)).status == "equal"
    runtimes = ("LiteRT", "TFLM") if len(shape) == 5 else ("LiteRT",)
    assert quick_differences(data, made, runtimes) == []


PIXELS = (1, 6, 5, 2, 2, 3), (0, 1, 3, 2, 4, 5)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_pixels_shuffled_in_six_axes_are_the_same(dtype: str) -> None:
    """As converters write depth to space. TFLM does not run the original, LiteRT does."""
    shape, order = PIXELS
    net = Net()
    graph, scale = net.graph(), {} if dtype == "float32" else {"scale": 0.1}
    turned_shape = tuple(shape[axis] for axis in order)
    ends = ((1, 6, 5, 12), shape, turned_shape, (1, 12, 10, 3))
    x, apart, order_of, y = (
        graph.input("x", ends[0], dtype, **scale),
        *(graph.tensor(f"t{i}", ends[i], dtype, **scale) for i in (1, 2, 3)),
    )
    told = [graph.constant(f"shape{i}", np.array(ends[i])) for i in (1, 3)]
    graph.op("RESHAPE", [x, told[0]], [apart], "ReshapeOptions", newShape=list(shape))
    graph.op("TRANSPOSE", [apart, graph.constant("order", np.array(order))], [order_of],
             "TransposeOptions")  # fmt: skip
    graph.op("RESHAPE", [order_of, told[1]], [y], "ReshapeOptions", newShape=list(ends[3]))
    graph.outputs(y)
    data = net.finish()
    made, notes = turned(data)
    (op,) = transpositions(made)
    assert len(notes) == 1 and len(op.outputs[0].shape or ()) <= (4 if dtype == "int8" else 5)
    assert quick_differences(data, made, ("LiteRT",)) == []
    board = api.load_target("cortex-m4/cmsis-nn")
    assert api.arena(data, board).cannot_run and not api.arena(made, board).cannot_run
    report = api.plan(data, None, api.PlanOptions()).report
    assert report.verified and {c.runtime for c in report.checks if c.status == "equal"} == {
        "LiteRT", "TFLM"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "order", "groups"),
    [
        ((1, 6, 5, 3, 4), SHUFFLE, [[1], [2], [4], [3]]),
        ((2, 6, 5, 3, 4), SHUFFLE, [[0], [1, 2], [4], [3]]),  # rows and columns, not the batch
        ((1, 6, 2, 5, 2, 4), (0, 1, 3, 2, 4, 5), [[1], [3], [2], [4, 5]]),
        ((2, 3, 1, 4, 5, 6), (1, 2, 3, 5, 4, 0), [[1, 3], [5], [4], [0]]),  # 1 between them
        ((2, 3, 4, 5, 6), (4, 3, 2, 1, 0), [[4], [3], [2], [1], [0]]),
        ((2, 3, 4, 5, 6), (0, 1, 2, 3, 4), [[0], [1], [2], [3, 4]]),
    ],
)
def test_which_axes_are_merged(shape, order, groups) -> None:
    assert collapsed_axes(shape, order, 4) == groups


@pytest.mark.parametrize("count", range(1, 7))
def test_swaps_bring_axes_into_any_order(count: int) -> None:
    for order in itertools.permutations(range(count)):
        now = sorted(order)
        for before, first, second, behind in swaps_of(order):
            assert now == [*before, *first, *second, *behind] and first and second
            now = [*before, *second, *first, *behind]
        assert now == [*order]


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_pixels_that_onnx2tf_shuffles_are_turned_in_two_steps(dtype: str) -> None:
    """Its DepthToSpace leaves five axes apart: too many for int8, with CMSIS-NN."""
    net = Net()
    graph, scale = net.graph(), {} if dtype == "float32" else {"scale": 0.1}
    shape, order = (1, 6, 5, 3, 2, 2), (0, 1, 4, 2, 5, 3)
    there = tuple(shape[axis] for axis in order)
    x, y = graph.input("x", shape, dtype, **scale), graph.tensor("y", there, dtype, **scale)
    graph.op("TRANSPOSE", [x, graph.constant("order", np.array(order))], [y], "TransposeOptions")
    graph.outputs(y)
    data = net.finish()
    made, _ = turned(data)
    assert len(transpositions(made)) == (2 if dtype == "int8" else 1)
    assert prove_by_terms(read_model(data), read_model(made)).status == "equal"
    result = api.plan(data)
    assert result.report.verified
    assert not api.arena(result.data, api.load_target("cortex-m4/cmsis-nn")).warnings


def odd(what: str) -> bytes:
    """A shuffle whose shape somebody else sees, or which is not int8 of five axes that turn."""
    shape, order = (1, 3, 2, 2, 4), SHUFFLE
    if what == "four axes":
        shape, order = shape[1:], (0, 1, 3, 2)
    if what == "nothing turned":
        order = (3, 0, 1, 2, 4)
        shape = (3, 2, 2, 1, 4)
    net = Turns((1, 3, 2, 8) if what != "no reshape" else (1, 3, 2, 2, 4))
    x = net.x if what == "no reshape" else net.reshape(shape)
    y = net.turn(x, shape, order)
    seen = [net.reshape((1, 48), y)]
    if what == "an output":
        seen.append(y)
    if what == "operand read again":
        seen.append(net.reshape((1, 48), x))
    if what == "another reader":
        z = net.tensor(tuple(shape[axis] for axis in order))
        net.graph.op("LEAKY_RELU", [y], [z], "LeakyReluOptions", alpha=0.5)
        seen.append(z)
    data = net.finish(*seen)
    return data


@pytest.mark.parametrize("what", ["four axes", "nothing turned"])
def test_what_every_kernel_turns_stays(what: str) -> None:
    model = read_model(odd(what))
    before = write_model(model)
    assert collapse_transpose_axes(model) == []
    assert write_model(model) == before


@needs_tflm
@pytest.mark.parametrize(
    "what", ["no reshape", "an output", "operand read again", "another reader"]
)
def test_what_others_see_is_turned_between_reshapes(what: str) -> None:
    data = odd(what)
    made, notes = turned(data)
    (op,) = transpositions(made)
    assert len(notes) == 1 and len(op.outputs[0].shape or ()) == 4
    kinds = [[op.kind for op in read_model(d).ops()] for d in (data, made)]
    assert sorted(kinds[1]) == sorted([*kinds[0], "RESHAPE", "RESHAPE"])
    shapes = [[t.shape for t in read_model(d).main.outputs] for d in (data, made)]
    assert shapes[0] == shapes[1]
    assert quick_differences(data, made) == []
    assert prove_by_terms(read_model(data), read_model(made)).status == "equal"


def test_the_plain_shuffle_of_these_is_merged() -> None:
    _, notes = turned(odd("nothing of the kind"))
    assert len(notes) == 1
