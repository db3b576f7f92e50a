"""What computes something else is never equal as terms: rewrites with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from tests.models.build import Net
from tests.models.generator import random_model
from tests.models.small import Chain
from tests.transforms.tiled import quick_differences, rewritten
from tests.verification.terms.proofs import changed, proof
from tflm_planner.model.edit import set_option
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.quantization import Quantization
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import ROWS
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification.terms import prove_by_terms

Change = Callable[[Model], object]


def network() -> bytes:
    """Windows of two sizes, a pool, and a sum of two branches."""
    chain = Chain((1, 8, 4, 3))
    chain.conv(4, 3)
    first = chain.conv(4, 1)
    chain.conv(4, 3)
    y = chain.tensor(chain.shape)
    chain.graph.op("ADD", [first, chain.x], [y], "AddOptions", version=2)
    chain.x = y
    chain.pool()
    return chain.finish()


def in_tiles(data: bytes) -> bytes:
    """All of it in three bands."""
    made, (result,) = rewritten(data, TiledRegion((0, 1, 2, 3, 4), (Split(ROWS, 2),)))
    assert not result.refusal, result.note
    return made


def value(tensor: Tensor, at: int, by: int) -> None:
    """One number of a constant changed."""
    dtype = {"int32": "<i4", "int8": "i1", "float32": "<f4", "int16": "<i2", "int64": "<i8"}
    numbers = np.frombuffer(tensor.buffer.data.tobytes(), dtype[tensor.type_name]).copy()
    numbers[at] += by
    tensor.buffer.data = numbers.view(np.uint8)


def swap(tensors: list[Tensor | None]) -> None:
    tensors[0], tensors[1] = tensors[1], tensors[0]


def wrong(model: Model) -> Iterator[tuple[str, Callable[[Op], object], int]]:
    """(what, change, position) of every operator of a tiled model."""
    for i, op in enumerate(model.main.ops):
        if op.kind == "SLICE":
            by = 1 if _has_room(op) else -1
            yield "offset", lambda op, by=by: value(op.inputs[1], 1, by), i
        if op.kind == "CONCATENATION" and op.inputs[0].shape == op.inputs[1].shape:
            yield "order", lambda op: swap(op.inputs), i
        if op.kind == "CONV_2D":
            yield "weight", lambda op: value(op.inputs[1], 5, 1), i
            yield "bias", lambda op: value(op.inputs[2], 1, 1), i
            yield "scale", lambda op: scale(op.inputs[1]), i
        if op.kind == "ADD":
            yield "scale", lambda op: scale(op.outputs[0]), i
        if op.kind in ("CONV_2D", "MAX_POOL_2D"):
            yield "activation", lambda op: set_option(op, "fused_activation_function", 1), i


def _has_room(op: Op) -> bool:
    """Whether a SLICE could as well begin a row further down."""
    begin = np.frombuffer(op.inputs[1].buffer.data.tobytes(), "<i4")
    return begin[1] + op.outputs[0].shape[1] < op.inputs[0].shape[1]


def scale(tensor: Tensor) -> None:
    first, *others = tensor.quantization.scales
    scales = Quantization.of([1.25 * first, *others]).scales
    tensor.quantization = replace(tensor.quantization, scales=scales)


def own_constants(op: Op) -> None:
    """Constants of an operator apart from those that others read too."""
    for i, t in enumerate(op.inputs):
        if t is not None and t.is_constant:
            twin = copy(t)
            twin.buffer = copy(t.buffer)
            op.inputs[i] = twin


def corrupted(data: bytes, change: Callable[[Op], object], at: int) -> Model:
    model = read_model(data)
    op = model.main.ops[at]
    own_constants(op)
    change(op)
    return model


def test_a_tiled_network_with_one_thing_wrong_is_found() -> None:
    data = network()
    made = in_tiles(data)
    assert proof(data, made).status == "equal"
    original, found = read_model(data), list[str]()
    for what, change, at in wrong(read_model(made)):
        outcome = prove_by_terms(original, corrupted(made, change, at))
        assert outcome.status == "different", (what, at)
        assert outcome.culprit is not None
        assert outcome.culprit.position >= at or what in ("offset", "order")
        found.append(what)
    assert len(found) >= 30
    assert {"offset", "weight", "bias", "activation", "scale"} <= {*found}


def test_the_first_operator_that_differs_is_named() -> None:
    data = network()
    model = read_model(data)
    (second,) = (i for i, op in enumerate(model.main.ops) if i == 1)
    broken = changed(data, lambda m: value(m.main.ops[second].inputs[1], 3, 2))
    found = proof(data, broken)
    assert found.status == "different" and found.culprit is not None
    assert (found.culprit.position, found.culprit.kind) == (1, "CONV_2D")
    assert "element" in found.detail


@pytest.mark.parametrize("wrong_at", [2, 4])
def test_elements_that_are_cut_off_later_are_not_at_fault(wrong_at: int) -> None:
    """Tiles make such elements at their borders. Here the model makes none of what ABS makes."""
    shape, wide = (1, 4, 4, 2), (1, 4, 4, 4)

    def network(made: bool) -> bytes:
        net = Net()
        graph = net.graph()

        def step(kind: str, inputs: list[int], size: tuple[int, ...], options: str | None = None,
                 **fields: int) -> int:  # fmt: skip
            y = graph.tensor(f"t{len(graph.table.operators)}", size, scale=0.1)
            graph.op(kind, inputs, [y], options, **fields)
            return y

        x = y = graph.input("x", shape, scale=0.1)
        if made:
            other = step("ABS", [x], shape, "AbsOptions")
            y = step("CONCATENATION", [x, other], wide, "ConcatenationOptions", axis=3)
        y = step("RELU6" if made and wrong_at == 2 else "RELU", [y], wide if made else shape)
        if made:
            ends = graph.constant("begin", [0, 0, 0, 0]), graph.constant("size", shape)
            y = step("SLICE", [y, *ends], shape, "SliceOptions")
        y = step("LOGISTIC" if made and wrong_at == 4 else "TANH", [y], shape)
        graph.outputs(y)
        return net.finish()

    found = proof(network(made=False), network(made=True))
    assert found.status == "different" and found.culprit is not None
    assert found.culprit.position == wrong_at and f"operator {wrong_at} of" in found.detail


def _swap_first(kind: str) -> Change:
    def change(model: Model) -> None:
        swap(next(op for op in model.main.ops if op.kind == kind).inputs)

    return change


def _set(kind: str, name: str, setting: object) -> Change:
    def change(model: Model) -> None:
        op = next(op for op in model.main.ops if op.kind == kind)
        before = op.options.key()
        set_option(op, name, setting)
        assert op.options.key() != before

    return change


def one(kind: str, options: str | None, *more: object, dtype: str = "int8", **fields: object):
    """A model of one operator on an image, with further constants."""
    net = Net()
    graph = net.graph()
    shape = (1, 6, 6, 4)
    ends = {} if dtype == "float32" else {"scale": 0.1}
    inputs = [graph.input("x", shape, dtype, **ends), graph.input("z", shape, dtype, **ends)]
    result = fields.pop("result", shape)
    count = fields.pop("operands", 1)
    constants = [graph.constant(f"c{i}", c) for i, c in enumerate(more)]
    y = graph.tensor("y", result, dtype, **ends)
    operands = [*inputs[:count], *constants]
    graph.op(kind, operands, [y], options, **fields)
    graph.outputs(y)
    return net.finish()


POOL = {"strideH": 1, "strideW": 1, "filterHeight": 3, "filterWidth": 3, "padding": 0}
WRONG: dict[str, tuple[bytes, Change]] = {
    "sub the other way": (one("SUB", "SubOptions", operands=2), _swap_first("SUB")),
    "div the other way": (
        one("DIV", "DivOptions", operands=2, dtype="float32"),
        _swap_first("DIV"),
    ),
    "softmax beta": (
        one("SOFTMAX", "SoftmaxOptions", beta=1.0),
        _set("SOFTMAX", "beta", 2.0),
    ),
    "leaky alpha": (
        one("LEAKY_RELU", "LeakyReluOptions", alpha=0.5),
        _set("LEAKY_RELU", "alpha", 0.25),
    ),
    "pool window": (
        one("AVERAGE_POOL_2D", "Pool2DOptions", **POOL),
        _set("AVERAGE_POOL_2D", "filter_height", 2),
    ),
    "pool columns": (
        one("MAX_POOL_2D", "Pool2DOptions", **POOL),
        _set("MAX_POOL_2D", "filter_width", 2),
    ),
    "pool activation": (
        one("MAX_POOL_2D", "Pool2DOptions", **POOL),
        _set("MAX_POOL_2D", "fused_activation_function", 3),
    ),
    "add activation": (
        one("ADD", "AddOptions", operands=2),
        _set("ADD", "fused_activation_function", 1),
    ),
    "mean of other axes": (
        one("MEAN", "ReducerOptions", [1, 2], result=(1, 1, 1, 4), keepDims=True),
        lambda m: m.main.ops[0].inputs.__setitem__(0, m.main.inputs[1]),
    ),
    "transposed otherwise": (
        one("TRANSPOSE", "TransposeOptions", [0, 2, 1, 3]),
        lambda m: value(m.main.ops[0].inputs[1], slice(1, 3), np.array([-1, 1])),
    ),
    "pads elsewhere": (
        one("PAD", "PadOptions", [[0, 0], [1, 0], [0, 0], [0, 0]], result=(1, 7, 6, 4)),
        lambda m: value(m.main.ops[0].inputs[1], slice(2, 4), np.array([-1, 1])),
    ),
    "gathers another row": (
        one("GATHER", "GatherOptions", [0, 3], result=(1, 2, 6, 4), axis=1),
        lambda m: value(m.main.ops[0].inputs[1], 1, 1),
    ),
    "strides from elsewhere": (
        one(
            "STRIDED_SLICE", "StridedSliceOptions", [0, 0, 0, 0], [1, 6, 6, 4], [1, 2, 1, 1],
            result=(1, 3, 6, 4),
        ),
        lambda m: value(m.main.ops[0].inputs[1], 1, 1),
    ),
    "resized by corners": (
        one(
            "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions", [9, 9],
            result=(1, 9, 9, 4),
        ),
        _set("RESIZE_NEAREST_NEIGHBOR", "align_corners", True),
    ),
    "resized by half pixels": (
        one("RESIZE_BILINEAR", "ResizeBilinearOptions", [12, 12], result=(1, 12, 12, 4)),
        _set("RESIZE_BILINEAR", "half_pixel_centers", True),
    ),
    "joined the other way": (
        one("CONCATENATION", "ConcatenationOptions", operands=2, axis=1, result=(1, 12, 6, 4)),
        _swap_first("CONCATENATION"),
    ),
    "product turned": (
        one("BATCH_MATMUL", "BatchMatMulOptions", operands=2, result=(1, 6, 6, 6), adjY=True),
        _swap_first("BATCH_MATMUL"),
    ),
    "reversed along another axis": (
        one("REVERSE_V2", "ReverseV2Options", [1]),
        lambda m: value(m.main.ops[0].inputs[1], 0, 1),
    ),
    "quantised otherwise": (one("RELU", None), lambda m: scale(m.main.outputs[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WRONG))
def test_an_operator_with_one_thing_wrong_is_found(name: str) -> None:
    data, change = WRONG[name]
    assert proof(data, data).status == "equal"
    assert proof(data, changed(data, change)).status == "different"


def test_sums_of_floats_count_their_order() -> None:
    """Products of the same pairs, summed up in another order, are rounded otherwise."""

    def product(order: list[int]) -> bytes:
        net = Net()
        graph = net.graph()
        x = graph.input("x", (1, 4), "float32")
        there = graph.tensor("t", (1, 4), "float32")
        graph.op("GATHER", [x, graph.constant("order", order)], [there], "GatherOptions", axis=1)
        w = graph.constant("w", np.array([[1.5, 2.5, 3.5, 4.5]])[:, order], "float32")
        y = graph.tensor("y", (1, 1), "float32")
        graph.op("FULLY_CONNECTED", [there, w], [y], "FullyConnectedOptions")
        graph.outputs(y)
        return net.finish()

    assert proof(product([0, 1, 2, 3]), product([0, 1, 2, 3])).status == "equal"
    assert proof(product([0, 1, 2, 3]), product([0, 2, 1, 3])).status == "different"


@pytest.mark.parametrize("seed", range(12))
def test_what_a_runtime_tells_apart_is_different(seed: int) -> None:
    """Random models with one number or scale changed: terms see all that eight inputs see."""
    data = random_model(seed, steps=3 + seed % 5)
    rng = np.random.default_rng(seed)
    model = read_model(data)
    weights = [
        i
        for i, t in enumerate(model.main.tensors)
        if t.is_constant
        and any(len(op.inputs) > 2 and op.inputs[1] is t for op in t.consumers)
        and t.type_name in ("int8", "float32")
    ]
    scaled = [
        i for i, t in enumerate(model.main.tensors)
        if t.producer is not None and t.quantization.scales
        and t.producer.kind in ("CONV_2D", "ADD", "MUL")
    ]  # fmt: skip
    changes: list[Change] = []
    for i in weights:
        at = int(rng.integers(model.main.tensors[i].elements))
        changes.append(lambda m, i=i, at=at: value(m.main.tensors[i], at, 3))
    changes += [lambda m, i=i: scale(m.main.tensors[i]) for i in scaled]
    for change in changes[:4]:
        broken = changed(data, change)
        try:
            differ = quick_differences(data, broken, ("LiteRT",))
        except RuntimeError:  # it refuses the scale
            continue
        if differ:
            assert proof(data, broken).status == "different"


def test_what_the_result_takes_from_outside_is_a_fault() -> None:
    """Not a model that cannot be written as terms: the original takes nothing from there."""
    made = one("GATHER", "GatherOptions", np.int32([5, 1]), axis=1, result=(1, 2, 6, 4))
    outside = read_model(made)
    value(outside.main.ops[0].inputs[1], 0, 1)
    found = prove_by_terms(read_model(made), outside)
    assert found.status == "different" and "what its operand does not have" in found.detail
    assert prove_by_terms(outside, outside).status == "not run"


@pytest.mark.parametrize("scale, dtype, status", [
    (0.1, "int8", "equal"), (0.2, "int8", "different"), (0.2, "int16", "equal"),
])  # fmt: skip
def test_a_join_that_no_runtime_runs_is_different_though_nobody_reads_the_part(
    scale: float, dtype: str, status: str
) -> None:
    """Both runtimes refuse to join int8 of another scale, whatever becomes of the elements."""

    def joined(second: int) -> bytes:
        net = Net()
        graph = net.graph()
        shape = (1, 4, 4, 2)
        x = graph.input("x", shape, dtype, scale=0.1)
        parts = [
            graph.tensor("a", shape, dtype, scale=0.1),
            graph.tensor("b", shape, dtype, scale=scale),
        ]
        for part in parts:
            graph.op("QUANTIZE", [x], [part])
        both = graph.tensor("both", (1, 4, 4, 4), dtype, scale=0.1)
        graph.op("CONCATENATION", [parts[0], parts[second]], [both], "ConcatenationOptions", axis=3)
        first = graph.constant("begin", [0, 0, 0, 0]), graph.constant("size", shape)
        y = graph.tensor("y", shape, dtype, scale=0.1)
        graph.op("SLICE", [both, *first], [y], "SliceOptions")
        graph.outputs(y, *parts)
        return net.finish()

    assert proof(joined(0), joined(1)).status == status
