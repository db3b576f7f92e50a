"""Operators that change nothing go, those that only look so stay, and every bit is equal."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.transforms.tiled import same_bits
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize

SHAPE = (1, 6, 6, 2)
MASKS = {
    "beginMask": 0, "endMask": 0, "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 0,
}  # fmt: skip
Constants = dict[str, list[object]]
IDENTITIES: dict[str, tuple[list[object], str, dict[str, object]]] = {
    "RESHAPE": ([list(SHAPE)], "ReshapeOptions", {}),
    "QUANTIZE": ([], "QuantizeOptions", {}),
    "SLICE": ([[0, 0, 0, 0], list(SHAPE)], "SliceOptions", {}),
    "STRIDED_SLICE": ([[0] * 4, list(SHAPE), [1] * 4], "StridedSliceOptions", MASKS),
    "PAD": ([[[0, 0]] * 4], "PadOptions", {}),
    "TRANSPOSE": ([[0, 1, 2, 3]], "TransposeOptions", {}),
    "CONCATENATION": ([], "ConcatenationOptions", {"axis": 3}),
}


def with_operator(kind: str, place: str = "inside", *, scale: float = 0.05, **other) -> bytes:
    """x -> RELU -> the operator -> RELU, or the operator first, or last."""
    constants, name, fields = IDENTITIES[kind]
    constants = other.get("constants", constants)
    net = Net()
    graph = net.graph()
    at = graph.input("x", SHAPE, scale=0.05)
    for step in {"first": "*r", "inside": "r*r", "last": "r*", "alone": "*"}[place]:
        here = scale if step == "*" else 0.05
        result = graph.tensor(f"{step}{at}", SHAPE, scale=here)
        if step == "r":
            graph.op("RELU", [at], [result])
        else:
            operands = [graph.constant(f"c{i}", v) for i, v in enumerate(constants)]
            graph.op(kind, [at, *operands], [result], name, **fields)
        at = result
    graph.outputs(at)
    return net.finish()


def normalized(data: bytes) -> tuple[bytes, list[str]]:
    model = read_model(data)
    run(model, Normalize())
    return write_model(model), [op.kind for op in model.main.ops]


@needs_tflm
@pytest.mark.parametrize("kind", IDENTITIES)
@pytest.mark.parametrize("place", ["first", "inside"])
def test_what_changes_nothing_goes(kind: str, place: str) -> None:
    before = with_operator(kind, place)
    after, kinds = normalized(before)
    assert set(kinds) == {"RELU"}
    model = read_model(after).main
    assert [t.name for t in model.inputs] == ["x"]
    assert [t.name for t in model.outputs] == [t.name for t in read_model(before).main.outputs]
    assert not same_bits(before, after)


def test_what_makes_an_output_stays() -> None:
    assert normalized(with_operator("RESHAPE", "alone"))[1] == ["RESHAPE"]
    assert normalized(with_operator("RESHAPE", "last"))[1] == ["RELU", "RESHAPE"]


@needs_tflm
@pytest.mark.parametrize(
    ("kind", "constants"),
    [
        ("STRIDED_SLICE", [[0, 5, 0, 0], [1, -7, 6, 2], [1, -1, 1, 1]]),
        ("TRANSPOSE", [[0, 2, 1, 3]]),
    ],
)
def test_what_only_looks_so_stays(kind: str, constants: list[object]) -> None:
    """Rows in reverse, and axes turned of a shape that stays the same."""
    before = with_operator(kind, constants=constants)
    assert kind in normalized(before)[1]


def test_another_scale_is_a_change() -> None:
    assert "QUANTIZE" in normalized(with_operator("QUANTIZE", scale=0.1))[1]


@needs_tflm
def test_a_chain_of_identities_goes_whole() -> None:
    net = Net()
    graph = net.graph()
    at = graph.input("x", SHAPE, scale=0.05)
    shape = graph.constant("shape", list(SHAPE))
    result = graph.tensor("made", SHAPE, scale=0.05)
    graph.op("RELU", [at], [result])
    ends = []
    for name in ("a", "b", "c"):
        at, result = result, graph.tensor(name, SHAPE, scale=0.05)
        graph.op("RESHAPE", [at, shape], [result], "ReshapeOptions")
        ends.append(result)
    graph.outputs(ends[2])
    before = net.finish()
    after, kinds = normalized(before)
    assert kinds == ["RELU", "RESHAPE"]
    assert not same_bits(before, after)


def dense_after(kind: str, *, batch: int = 1, **other) -> bytes:
    """x -> RELU -> RESHAPE or its like -> FULLY_CONNECTED of `batch` rows of 72. other: type of the
    values; shapes of image and result; first: a shape that it is given first; keep: the field
    of FULLY_CONNECTED; also: another reader."""
    dtype = other.get("dtype", "int8")
    quantized = {} if dtype == "float32" else {"scale": 0.05}
    image = {"SQUEEZE": (batch, 72, 1, 1), "EXPAND_DIMS": (72,)}.get(kind, (batch, 6, 6, 2))
    image = other.get("image", image)
    flat = {"SQUEEZE": (batch, 72), "EXPAND_DIMS": (1, 72)}.get(kind, (batch, 72))
    net = Net()
    graph = net.graph()
    at = graph.input("x", image, dtype, **quantized)
    made = graph.tensor("made", image, dtype, **quantized)
    row = graph.tensor("row", flat, dtype, **quantized)
    graph.op("RELU", [at], [made])
    if "first" in other:
        at, made = made, graph.tensor("first", other["first"], dtype, **quantized)
        to = graph.constant("to_first", list(other["first"]))
        graph.op(kind, [at, to], [made], "ReshapeOptions")
    if kind == "EXPAND_DIMS":
        graph.op(kind, [made, graph.constant("axis", 0)], [row], "ExpandDimsOptions")
    elif kind == "SQUEEZE":
        graph.op(kind, [made], [row], "SqueezeOptions", squeezeDims=[2, 3])
    else:
        graph.op(kind, [made, graph.constant("to", list(flat))], [row], "ReshapeOptions")
    values = np.random.default_rng(1).integers(-9, 9, (5, 72))
    weights = graph.constant("w", values, "int8" if quantized else dtype, **quantized)
    shape = other.get("shape", (batch, 5))
    result = graph.tensor("y", shape, dtype, **({"scale": 0.9} if quantized else {}))
    keep = {"keepNumDims": True} if other.get("keep") else {}
    graph.op("FULLY_CONNECTED", [row, weights], [result], "FullyConnectedOptions", **keep)
    outputs = [result]
    if other.get("also"):
        outputs.append(graph.tensor("z", flat, dtype, **quantized))
        graph.op("RELU", [row], [outputs[-1]])
    graph.outputs(*outputs)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("kind", ["RESHAPE", "SQUEEZE", "EXPAND_DIMS"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_a_row_is_not_reshaped_for_what_flattens_it(kind: str, dtype: str) -> None:
    before = dense_after(kind, dtype=dtype)
    after, kinds = normalized(before)
    assert kinds == ["RELU", "FULLY_CONNECTED"]
    assert not same_bits(before, after)


@needs_tflm
def test_a_row_that_is_reshaped_twice_is_not_reshaped_at_all() -> None:
    before = dense_after("RESHAPE", first=(1, 8, 9))
    assert [op.kind for op in read_model(before).main.ops].count("RESHAPE") == 2
    after, kinds = normalized(before)
    assert kinds == ["RELU", "FULLY_CONNECTED"]
    assert not same_bits(before, after)


def test_rows_that_something_else_reads_are_reshaped() -> None:
    kept = ["RELU", "RESHAPE", "FULLY_CONNECTED"]
    assert normalized(dense_after("RESHAPE", batch=2))[1] == kept
    assert normalized(dense_after("RESHAPE", keep=True))[1] == kept
    assert normalized(dense_after("RESHAPE", shape=(1, 1, 5)))[1] == kept
    assert normalized(dense_after("RESHAPE", also=True))[1] == [*kept, "RELU"]
    assert normalized(dense_after("RESHAPE", image=(1, 2, 3, 6, 2)))[1] == kept  # five axes
