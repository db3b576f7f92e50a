"""What TFLM refuses, or ruins itself with, is known before it runs: by the number of axes or of
operands, for want of elements or of a value, and where nothing places scratch."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.models.registry import IMAGE, SCALE, conv, relu, start
from tests.models.small import one_operator
from tests.tflm.operator_models import MODELS as OPERATORS
from tests.tflm.test_arena import measured
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.guidance.paste import paste_of
from tflm_planner.report.text.arena import render_arena
from tflm_planner.tflm.refusals import (
    CONSTANT_OPERANDS,
    COPY_SHAPES,
    COPY_SHAPES_OF_FLOATS,
    MOST_AXES,
    MOST_JOINED,
    cannot_run,
)
from tflm_planner.tflm.targets import load_target
from tflm_planner.tflm.versions import with_tflm

BOARD = load_target("nano33ble")


def of_axes(kind: str, axes: int) -> bytes:
    """One operator on a float tensor of 1 x ... x 1 x 2 x 3, whose result has its shape (but for
    SQUEEZE: an axis less)."""
    net = Net()
    graph = net.graph()
    shape = (*[1] * (axes - 2), 2, 3)
    x = graph.input("x", shape, "float32")
    y = graph.tensor("y", shape[1:] if kind == "SQUEEZE" else shape, "float32")
    block = [1] * (axes - 2)
    numbers = {
        "BATCH_MATMUL": [np.ones((*[1] * (axes - 2), 3, 3), np.float32)],
        "BATCH_TO_SPACE_ND": [block, np.zeros((axes - 2, 2))],
        "BROADCAST_TO": [shape],
        "L2_NORMALIZATION": [],
        "PAD": [np.zeros((axes, 2))],
        "PADV2": [np.zeros((axes, 2)), np.float32(0)],
        "SLICE": [[0] * axes, shape],
        "SPACE_TO_BATCH_ND": [block, np.zeros((axes - 2, 2))],
        "SQUEEZE": [],
        "STRIDED_SLICE": [[0] * axes, shape, [1] * axes],
        "TRANSPOSE": [range(axes)],
    }[kind]
    constants = [
        graph.constant(f"c{i}", v, "float32" if np.asarray(v).dtype == np.float32 else "int32")
        for i, v in enumerate(numbers)
    ]
    options = {"STRIDED_SLICE": "StridedSliceOptions", "L2_NORMALIZATION": "L2NormOptions"}
    if kind == "SQUEEZE":
        graph.op(kind, [x], [y], "SqueezeOptions", squeezeDims=[0])
    else:
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
        refused = cannot_run(read_model(data), BOARD)
        assert runs is (axes == most) is not bool(refused)


def with_axes(name: str, axes: int) -> bytes:
    """A model of `operator_models` whose activations have further axes, of length 1."""
    model = read_model(OPERATORS[name]())
    for tensor in model.main.tensors:
        if not tensor.is_constant and tensor.shape:
            tensor.shape = (*tensor.shape, *[1] * (axes - len(tensor.shape)))
    return write_model(model)


def names_of(kinds: Collection[str]) -> dict[str, str]:
    """The first model of each of these kinds."""
    found: dict[str, str] = {}
    for name, make in OPERATORS.items():
        (op,) = read_model(make()).main.ops
        if op.kind in kinds:
            found.setdefault(op.kind, name)
    return found


@needs_tflm
@pytest.mark.mostly_slow(fast=6)
@pytest.mark.parametrize("kind", sorted(COPY_SHAPES | COPY_SHAPES_OF_FLOATS))
def test_kernels_that_copy_shapes_take_six_axes_and_no_more(kind: str) -> None:
    """More is refused by what their sources say: the wheel may seem to run it."""
    name = names_of([kind])[kind]
    six = with_axes(name, 6)
    assert cannot_run(read_model(six), BOARD) == []
    assert measured(six, 1 << 16) is not None or kind in OTHERWISE_LIMITED
    (reason,) = cannot_run(read_model(with_axes(name, 7)), BOARD)
    assert f"{kind} of 7 axes: TFLM's kernel takes 6 at most" in reason
    *_, before = cannot_run(read_model(six), with_tflm(BOARD, "2023-04-04"))
    assert f"{kind} of 6 axes: TFLM's kernel takes 5 at most" in before


OTHERWISE_LIMITED = ("DYNAMIC_UPDATE_SLICE", "EXPAND_DIMS", "FILL", "PRELU")
"""Kinds whose models have constants that further axes do not fit."""


@needs_tflm
@pytest.mark.mostly_slow(fast=4)
@pytest.mark.parametrize(
    "name",
    ["abs_int8", "gather_int8", "logistic_int8", "mean_int8", "pack_int8", "quantize_int8",
     "reduce_max_int8", "reshape_int8", "shape_int8", "sin_float32", "split", "split_v",
     "sum_float32", "unpack"],
)  # fmt: skip
def test_kernels_that_read_shapes_where_they_lie_take_all_axes(name: str) -> None:
    data = requantized(32) if name == "quantize_int8" else with_axes(name, 32)
    assert measured(data, 1 << 16) is not None
    assert cannot_run(read_model(data), BOARD) == []


def requantized(axes: int) -> bytes:
    """QUANTIZE of int8 to int16."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (*[1] * (axes - 1), 3), scale=0.5)
    y = graph.tensor("y", (*[1] * (axes - 1), 3), "int16", scale=0.25)
    graph.op("QUANTIZE", [x], [y], "QuantizeOptions")
    graph.outputs(y)
    return net.finish()


@needs_tflm
def test_the_wheel_dies_of_more_axes_than_its_array_has() -> None:
    assert measured(with_axes("relu_int8", 12), 1 << 16) is None


def joined(operands: int) -> bytes:
    """One tensor, again and again in one CONCATENATION."""
    net = Net()
    graph = net.graph()
    x, y = graph.input("x", (1, 4), scale=0.5), graph.tensor("y", (operands, 4), scale=0.5)
    graph.op("CONCATENATION", [x] * operands, [y], "ConcatenationOptions", axis=0)
    graph.outputs(y)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("operands", [MOST_JOINED, MOST_JOINED + 1])
def test_no_more_operands_are_joined_than_fit_the_kernels_array(operands: int) -> None:
    data = joined(operands)
    for target in (BOARD, load_target("arduino-2023")):
        reasons = cannot_run(read_model(data), target)
        assert bool(reasons) is (operands > MOST_JOINED) is (measured(data, 1 << 16) is None)
        assert not reasons or "CONCATENATION of 11 operands" in reasons[0]


def computed(kind: str, which: int | None) -> bytes:
    """An operator on (1, 2, 2, 4) floats, one of whose operands comes from outside; None: all are
    constants."""
    net = Net()
    graph = net.graph()
    shape: tuple[int, ...] = (1, 2, 2, 4)
    operands: list[object] = {
        "BROADCAST_TO": ["x", [1, 2, 2, 4]], "EXPAND_DIMS": ["x", 0], "FILL": [[1, 4], "v"],
        "PAD": ["x", [[0, 0]] * 4], "PADV2": ["x", [[0, 0]] * 4, "v"],
        "RESIZE_BILINEAR": ["x", [2, 2]], "RESIZE_NEAREST_NEIGHBOR": ["x", [2, 2]],
        "SPLIT": [3, "x"], "SPLIT_V": ["x", [4], 3],
        "STRIDED_SLICE": ["x", [0] * 4, [1, 2, 2, 4], [1] * 4], "TRANSPOSE": ["x", [0, 1, 2, 3]],
    }[kind]  # fmt: skip
    inputs: list[int] = []
    for number, operand in enumerate(operands):
        if operand == "x":
            inputs.append(graph.input("x", shape, "float32"))
        elif operand == "v":
            inputs.append(graph.constant("v", np.float32(1), "float32"))
            graph.table.tensors[inputs[-1]].shape = []
        elif number == which:
            inputs.append(graph.input("numbers", np.shape(operand), "int32"))
        else:
            inputs.append(graph.constant(f"c{number}", np.array(operand), "int32"))
            graph.table.tensors[inputs[-1]].shape = list(np.shape(operand))
    if kind == "FILL" and which is None:
        graph.input("unread", (1,), "float32")
    out = {"EXPAND_DIMS": (1, *shape), "FILL": (1, 4)}.get(kind, shape)
    y = graph.tensor("y", out, "float32")
    options = {
        "RESIZE_BILINEAR": "ResizeBilinearOptions", "STRIDED_SLICE": "StridedSliceOptions",
        "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
    }  # fmt: skip
    fields = {"SPLIT": {"numSplits": 1}, "SPLIT_V": {"numSplits": 1}}.get(kind, {})
    names = {"SPLIT": "SplitOptions", "SPLIT_V": "SplitVOptions", **options}
    graph.op(kind, inputs, [y], names.get(kind), **fields)
    graph.outputs(y)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize(
    ("kind", "which"), [(k, i) for k, places in CONSTANT_OPERANDS.items() for i in (None, *places)]
)
def test_numbers_that_kernels_read_at_prepare_must_be_constants(
    kind: str, which: int | None
) -> None:
    data = computed(kind, which)
    reasons = cannot_run(read_model(data), BOARD)
    assert bool(reasons) is (which is not None) is (measured(data, 1 << 16) is None)
    assert not reasons or f"{kind} of numbers that are computed" in reasons[0]


def sliced(*shape: int) -> bytes:
    """A SPLIT_V whose first part has this shape, of which one axis is empty."""
    net = Net()
    graph = net.graph()
    x, rest = graph.input("x", (4, 8), scale=0.5), graph.tensor("rest", (4, 8), scale=0.5)
    part = graph.tensor("part", shape, scale=0.5)
    sizes, axis = graph.constant("sizes", [0, -1]), graph.constant("axis", 0)
    graph.op("SPLIT_V", [x, sizes, axis], [part, rest], "SplitVOptions", numSplits=2)
    graph.outputs(rest)
    return net.finish()


@needs_tflm
def test_empty_results_are_refused_since_tflm_looks_for_dynamic_ones() -> None:
    data = sliced(0, 8)
    assert measured(data, 1 << 16) is None
    for of_day, is_refused in (("current", True), ("2025-08-22", True), ("2025-08-21", False)):
        assert bool(cannot_run(read_model(data), with_tflm(BOARD, of_day))) is is_refused
    (reason,) = cannot_run(read_model(data), BOARD)
    assert "SPLIT_V 'part' (number 0): SPLIT_V with a result of 0 x 8" in reason


@needs_tflm
def test_what_tflm_takes_for_a_scalar_is_not_empty() -> None:
    net = Net()
    graph = net.graph()
    x, y = graph.input("x", (), scale=0.5), graph.tensor("y", (0,), "int32")
    graph.op("SHAPE", [x], [y], "ShapeOptions", outType=2)
    z = graph.tensor("z", (), scale=0.5)
    graph.op("RELU", [x], [z])
    graph.outputs(z)
    data = net.finish()
    assert measured(data, 1 << 16) is not None
    assert cannot_run(read_model(data), BOARD) == []


def with_second_signature() -> bytes:
    """RELU, and a CONV_2D that a signature of its own offers: with CMSIS-NN alone it requests
    scratch."""
    net, main, x = start()
    main.outputs(relu(main, x, IMAGE))
    second = net.graph("second")
    y = second.input("y", IMAGE, scale=SCALE)
    second.outputs(conv(second, y, IMAGE))
    net.signature("clip", main, ["x"], ["y"])
    net.signature("encode", second, ["y"], ["z"])
    return net.finish()


def test_scratch_that_only_a_signature_reaches_is_written_to_a_wild_place() -> None:
    data = with_second_signature()
    (reason,) = cannot_run(read_model(data), BOARD)
    assert reason.startswith("CONV_2D 'conv' (number 1): its kernel requests scratch")
    assert "convert the model again with the signature of that sub-graph left out" in reason
    assert "CANNOT RUN" in render_arena("m", api.arena(data, BOARD), BOARD)
    assert cannot_run(read_model(data), load_target("x86-64/reference")) == []


@pytest.mark.parametrize("name, refused", [("nano33ble", True), ("cortex-m4/unknown", False)])
def test_scratch_of_kernels_that_nobody_has_read_is_warned_of(name: str, refused: bool) -> None:
    """And what is refused is not said twice."""
    target = load_target(name)
    arena = api.arena(with_second_signature(), target)
    assert bool(arena.cannot_run) is refused
    assert any("wild place" in w for w in arena.warnings) is not refused


def test_too_many_axes_are_no_arena_that_works() -> None:
    shown = render_arena("m", api.arena(of_axes("STRIDED_SLICE", 5), BOARD), BOARD)
    assert "STRIDED_SLICE of 5 axes: TFLM's kernel takes 4 at most" in shown
    assert "CANNOT RUN" in shown and "smallest that works" not in shown


def test_a_variable_that_nothing_writes_holds_rubbish() -> None:
    assert cannot_run(read_model(variable(written=True)), BOARD) == []
    (reason,) = cannot_run(read_model(variable(written=False)), BOARD)
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


@pytest.mark.parametrize(
    ("kind", "dtype", "said"),
    [
        ("ADD", "int32", "runs on TFLM of 2023-03-30 and later (ADD of int32)"),
        ("RELU6", "int16", "runs on TFLM of 2024-09-26 and later (RELU6 of int16)"),
        ("ADD", "int8", "runs on TFLM of January 2023 and later"),
    ],
)
def test_the_oldest_tflm_is_one_whose_kernels_take_the_types(
    kind: str, dtype: str, said: str
) -> None:
    model = of_type(kind, dtype)
    nano = load_target("nano33ble")
    remarks = " ".join(paste_of(read_model(model), api.arena(model, nano), nano).remarks)
    assert said in remarks
    lacking = f"Arduino_TensorFlowLite of February 2023 lacks {kind} of {dtype}"
    assert (lacking in remarks) is (dtype != "int8")


def of_type(kind: str, dtype: str) -> bytes:
    """An operator of one or two equal operands."""
    net = Net()
    graph = net.graph()
    scale = {} if dtype == "int32" else {"scale": 0.1}
    x, y = graph.input("x", (1, 8), dtype, **scale), graph.tensor("y", (1, 8), dtype, **scale)
    graph.op(kind, [x, x] if kind == "ADD" else [x], [y])
    graph.outputs(y)
    return net.finish()


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
