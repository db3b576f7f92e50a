"""What TFLM refuses by the number of axes, or for want of a value, is known before it runs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.models.small import one_operator
from tests.tflm.test_arena import measured
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.guidance.paste import paste_of
from tflm_planner.report.text.arena import render_arena
from tflm_planner.tflm.refusals import MOST_AXES, cannot_run
from tflm_planner.tflm.targets import load_target

BOARD = load_target("nano33ble")


def of_axes(kind: str, axes: int) -> bytes:
    """One operator on a float tensor of 1 x ... x 1 x 2 x 3, whose result has its shape."""
    net = Net()
    graph = net.graph()
    shape = (*[1] * (axes - 2), 2, 3)
    x = graph.input("x", shape, "float32")
    y = graph.tensor("y", shape, "float32")
    numbers = {
        "BROADCAST_TO": [shape],
        "L2_NORMALIZATION": [],
        "SLICE": [[0] * axes, shape],
        "STRIDED_SLICE": [[0] * axes, shape, [1] * axes],
        "TRANSPOSE": [range(axes)],
    }[kind]
    constants = [graph.constant(f"c{i}", np.array(v), "int32") for i, v in enumerate(numbers)]
    options = {"STRIDED_SLICE": "StridedSliceOptions", "L2_NORMALIZATION": "L2NormOptions"}
    graph.op(kind, [x, *constants], [y], options.get(kind))
    graph.outputs(y)
    return net.finish()


def variable(*, written: bool) -> bytes:
    """READ_VARIABLE, behind an ASSIGN_VARIABLE or without one, as in a function whose variables
    were not frozen."""
    net = Net()
    graph = net.graph()
    x, z = graph.input("x", (4,), "float32"), graph.tensor("z", (4,), "float32")
    handle, y = graph.tensor("handle", (1,), "resource"), graph.tensor("y", (4,), "float32")
    graph.op("VAR_HANDLE", [], [handle], "VarHandleOptions", sharedName="v")
    if written:
        graph.op("ASSIGN_VARIABLE", [handle, x], [])
    graph.op("READ_VARIABLE", [handle], [y])
    graph.op("ADD", [x, y], [z], "AddOptions")
    graph.outputs(z)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("kind", MOST_AXES)
def test_tflm_takes_as_many_axes_and_no_more(kind: str) -> None:
    most = MOST_AXES[kind]
    for axes in (most, most + 1):
        data = of_axes(kind, axes)
        runs = measured(data, 1 << 16) is not None
        refused = cannot_run(read_model(data).ops(), BOARD)
        assert runs is (axes == most) is not bool(refused)


def test_too_many_axes_are_no_arena_that_works() -> None:
    shown = render_arena("m", api.arena(of_axes("STRIDED_SLICE", 5), BOARD), BOARD)
    assert "STRIDED_SLICE of 5 axes: TFLM's kernel takes 4 at most" in shown
    assert "CANNOT RUN" in shown and "smallest that works" not in shown


def test_a_variable_that_nothing_writes_holds_rubbish() -> None:
    assert cannot_run(read_model(variable(written=True)).ops(), BOARD) == []
    (reason,) = cannot_run(read_model(variable(written=False)).ops(), BOARD)
    assert "READ_VARIABLE of a variable that no operator writes" in reason
    with pytest.raises(api.ModelError, match="Freeze the function's variables"):
        api.plan(variable(written=False))


@pytest.mark.parametrize("custom", [True, False])
def test_the_resolver_adds_no_builtin_of_your_own(custom: bool) -> None:
    """`AddCustom` finds operators by their names in the file, which builtin ones lack."""
    data = one_operator("CUSTOM", "Mystery") if custom else one_operator("SIGN")
    remarks = " ".join(paste_of(read_model(data), api.arena(data, BOARD), BOARD).remarks)
    assert ("resolver.AddCustom() for your own Mystery" in remarks) is custom
    assert ("TFLM has no SIGN" in remarks) is not custom


def test_sizes_that_change_from_turn_to_turn_are_no_free_batch() -> None:
    """What a recurrent layer that returns its sequence becomes where its loop is not unrolled."""
    net = Net()
    graph, condition, body = net.graph(), net.graph("condition"), net.graph("body")
    x, y = graph.input("x", (3, 8), "float32"), graph.tensor("y", (3, 8), "float32")
    graph.op("WHILE", [x], [y], "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    graph.outputs(y)
    condition.input("c", (3, 8), "float32")
    condition.outputs(condition.constant("go", [False], "bool"))
    step = body.input("b", (3, 8), "float32")
    part = body.tensor("part", (1, 1), "float32", shapeSignature=[-1, -1])
    rest = body.tensor("rest", (1, 8), "float32", shapeSignature=[-1, 8])
    whole = body.tensor("whole", (3, 8), "float32")
    for taken, size in ((part, (1, 1)), (rest, (1, 8))):
        limits = [body.constant(f"{taken}{i}", v) for i, v in enumerate(([0, 0], size))]
        body.op("SLICE", [step, *limits], [taken])
    body.op("CONCATENATION", [part, rest], [whole], "ConcatenationOptions")
    body.outputs(whole)
    with pytest.raises(api.ModelError, match=r"turn to turn.*unroll=True"):
        api.plan(net.finish())
