"""Graphs that a stranger may bring: each once made a tile that was wrong, or none at all."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Graph
from tests.models.small import SCALE, Chain
from tests.transforms.tiled import quick_differences, tiled
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import CHANNELS, ROWS
from tflm_planner.pipeline import api
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dialect import Crop
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion


@pytest.mark.parametrize(("size", "rows"), [(1, 9), (3, 8)])
def test_one_pixel_windows_keep_all_their_rows(size: int, rows: int) -> None:
    """The pool reads no ninth row. CMSIS-NN's 1x1 convolution would write it all the same, behind
    a result that was cut short; this machine's kernels would not show it."""
    chain = Chain((1, 9, 8, 4))
    made = chain.conv(8, size)
    chain.pool()
    model = read_model(chain.finish())
    run(model, Regions((TiledRegion((1,), (Split(ROWS, 2),)),)), Crop(has_reshape=False))
    name = read_model(chain.finish()).main.tensors[made].name
    (result,) = [t for t in model.main.tensors if t.name == name]
    assert result.shape == (1, rows, 8, 8)


def squeezed(*, dims: list[int] | None) -> bytes:
    chain = Chain((1, 6, 1, 32))
    y = chain.conv(16, 3)
    out, last = chain.tensor((6, 16)), chain.tensor((6, 16))
    fields = {} if dims is None else {"squeezeDims": dims}
    chain.graph.op("SQUEEZE", [y], [out], "SqueezeOptions", **fields)
    chain.graph.op("RELU", [out], [last], version=2)
    return chain.finish(last)


@needs_tflm
@pytest.mark.parametrize("dims", [None, [0, 2]])
@pytest.mark.parametrize("parts", [2, 5, 6])
def test_axes_that_tiles_make_one_long_are_not_squeezed(dims, parts) -> None:
    data = squeezed(dims=dims)
    made, notes = tiled(data, TiledRegion((0, 1, 2), (Split(0, parts),)))
    assert notes[0].startswith("tiled")
    assert quick_differences(data, made) == []


def test_empty_results_are_not_tiled() -> None:
    chain = Chain((1, 6, 6, 4))
    y = chain.conv(8, 3)
    out = chain.tensor((1, 0, 6, 8))
    limits = [chain.graph.constant(n, v) for n, v in (("begin", [0] * 4), ("size", [1, 0, 6, 8]))]
    chain.graph.op("SLICE", [y, *limits], [out], "SliceOptions", version=2)
    _, notes = tiled(chain.finish(y, out), TiledRegion((0, 1), (Split(ROWS, 2),)))
    assert notes == ["not tiled: a result of it is empty"]


def state_between() -> bytes:
    """A convolution is stored, read back, and pooled once as read and once as made."""
    chain = Chain((1, 8, 8, 4))
    once = chain.net.graph("once")

    def handle(graph: Graph) -> int:
        h = graph.tensor("handle", (1,), "resource")
        graph.op("VAR_HANDLE", [], [h], "VarHandleOptions", container="", sharedName="v")
        return h

    first = once.constant("first", np.zeros((1, 8, 8, 8)), "int8", scale=SCALE, zero=2)
    once.op("ASSIGN_VARIABLE", [handle(once), first], [], "AssignVariableOptions")
    graph = chain.graph
    graph.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=once.index)
    variable = handle(graph)
    y = chain.conv(8, 3)
    graph.op("ASSIGN_VARIABLE", [variable, y], [], "AssignVariableOptions")
    back = chain.tensor(chain.shape)
    graph.op("READ_VARIABLE", [variable], [back], "ReadVariableOptions")
    return chain.finish(chain.pool(y), chain.pool(back))


@needs_tflm
def test_state_is_read_after_it_is_written() -> None:
    """Operators 2 and 5 in tiles: as one block they would have to come before the store that
    waits for them, and behind what reads it."""
    data = state_between()
    assert [op.kind for op in read_model(data).main.ops][2:6] == [
        "CONV_2D", "ASSIGN_VARIABLE", "READ_VARIABLE", "MAX_POOL_2D",
    ]  # fmt: skip
    _, notes = tiled(data, TiledRegion((2, 5), (Split(ROWS, 2),)))
    assert notes == ["not changed: operators with side effects among it would change their order"]
    made, notes = tiled(
        data, TiledRegion((2,), (Split(ROWS, 2),)), TiledRegion((5, 6), (Split(ROWS, 2),))
    )
    assert all(note.startswith("tiled") for note in notes)
    assert quick_differences(data, made) == []


@needs_tflm
@pytest.mark.parametrize("method", ["regions", "motes"])
@pytest.mark.slow
def test_the_search_passes_operators_without_results(method) -> None:
    """CALL_ONCE and ASSIGN_VARIABLE have none."""
    tiles = api.TilePermission(method=method, operators=api.AllowedOperators.ALL, workers=1)
    result = api.plan(state_between(), None, api.PlanOptions(tiles=tiles))
    assert result.report.verified
    assert result.report.after.arena.arena <= result.report.before.arena.arena


@needs_tflm
@pytest.mark.parametrize("width", [8, 9])
def test_columns_that_no_window_reads_are_not_cut_off(width: int) -> None:
    """Bands of rows are views of the image; without its ninth column they would be copies."""
    chain = Chain((1, 12, width, 4))
    chain.conv(8, 3)
    chain.pool()
    data = chain.finish()
    made, notes = tiled(data, TiledRegion((1,), (Split(ROWS, 3),)))
    assert notes[0].startswith("tiled") and quick_differences(data, made) == []
    slices = [op.outputs[0].shape for op in read_model(made).main.ops if op.kind == "SLICE"]
    assert slices == [(1, 4, width, 8)] * 3


@needs_tflm
@pytest.mark.parametrize("axis", [0, 3])
def test_a_bias_may_name_the_axis_of_its_weights(axis: int) -> None:
    """TFLM's person detection has biases that are quantised along axis 3, and one axis."""
    chain = Chain((1, 6, 6, 4))
    chain.conv(8, 3)
    bias = next(t for t in chain.graph.table.tensors if t.name.startswith("b"))
    bias.quantization.quantizedDimension = axis
    data = chain.finish()
    result, notes = tiled(data, TiledRegion((0,), (Split(CHANNELS, 2),)))
    assert notes[0].startswith("tiled")
    assert quick_differences(data, result, ("TFLM",)) == []
