"""Models whose ends take the types inside: what changes, what stays, and that the same integers
give the same results as the original with its conversions."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.models.build import Graph, Net
from tests.transforms.tiled import same_bits
from tflm_planner.model.check import check
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.model.text import to_text
from tflm_planner.support.errors import ModelError
from tflm_planner.transforms.drop_conversions import drop_conversions
from tflm_planner.verification import VerifyOptions, verify

SHAPE = (1, 5, 7, 3)
INNER = {"int8": (0.08, 11), "int16": (0.002, 0)}
BEFORE = """\
graph 'main' (%0: float32[1,5,7,3]) -> (%3)
  %1: int8[1,5,7,3] 105B = QUANTIZE(%0)
  %2: int8[1,5,7,3] 105B = RELU(%1)
  %3: float32[1,5,7,3] 420B = DEQUANTIZE(%2)
signature 'serving_default' of 'main' (image) -> (scores)
"""
AFTER = """\
graph 'main' (%0: int8[1,5,7,3]) -> (%1)
  %1: int8[1,5,7,3] 105B = RELU(%0)
signature 'serving_default' of 'main' (image) -> (scores)
"""


def ends(inner: str, outer: str, *, more: str = "", kind: str = "RELU") -> bytes:
    """x -> QUANTIZE -> RELU -> DEQUANTIZE or QUANTIZE -> y. more: who else needs the ends."""
    net = Net()
    graph = net.graph()
    scale, zero = INNER[inner]
    inside = {"scale": scale, "zero": zero}
    outside = {"scale": scale, "zero": zero + 128} if outer == "uint8" else {}
    outside = {"scale": 2 * scale, "zero": zero + 128} if "coarse" in more else outside
    x = graph.input("x", SHAPE, outer, **outside)
    first = graph.tensor("first", SHAPE, inner, **inside)
    graph.op("QUANTIZE", [x], [first], "QuantizeOptions")
    if "twice" in more:
        second = graph.tensor("second", SHAPE, inner, **inside)
        graph.op("QUANTIZE", [x], [second], "QuantizeOptions")
        both = graph.tensor("both", SHAPE, inner, **inside)
        graph.op("MAXIMUM", [first, second], [both], "MaximumMinimumOptions")
        first = both
    last = graph.tensor("last", SHAPE, inner, **inside)
    graph.op(kind, [first], [last])
    y = graph.tensor("y", SHAPE, outer, **outside)
    back = "DEQUANTIZE" if outer == "float32" else "QUANTIZE"
    graph.op(back, [last], [y], f"{back.capitalize()}Options")
    outputs = [y]
    if "input read" in more:
        outputs.append(_relu(graph, x, outer, outside))
    if "output read" in more:
        outputs.append(_relu(graph, y, outer, outside))
    if "inner offered" in more:
        outputs.append(last)
    graph.outputs(*outputs)
    net.signature("serving_default", graph, ["image"], ["scores", "more"][: len(outputs)])
    return net.finish()


def _relu(graph: Graph, x: int, dtype: str, fields: dict[str, float]) -> int:
    y = graph.tensor(f"relu{x}", SHAPE, dtype, **fields)
    graph.op("RELU", [x], [y])
    return y


def dropped(data: bytes) -> tuple[bytes, list[str]]:
    model = read_model(data)
    notes = [str(end) for end in drop_conversions(model)]
    check(model)
    return write_model(model), notes


@needs_tflm
def test_float_ends_of_an_int8_network() -> None:
    data = ends("int8", "float32")
    assert to_text(read_model(data)) == BEFORE
    result, notes = dropped(data)
    assert to_text(read_model(result)) == AFTER
    graph = read_model(result).main
    assert [t.name for t in (*graph.inputs, *graph.outputs)] == ["x", "y"]
    assert notes == [
        "input 'x' is int8 now, and was float32: the application converts, "
        "q = round(x / 0.0799999982) +11",
        "output 'y' is int8 now, and was float32: the application converts, "
        "x = 0.0799999982 * (q -11)",
    ]
    assert not same_bits(data, result)


@needs_tflm
@pytest.mark.parametrize(("inner", "outer"), [("int8", "uint8"), ("int16", "float32")])
def test_other_types(inner: str, outer: str) -> None:
    data = ends(inner, outer)
    result, notes = dropped(data)
    assert len(notes) == 2
    if outer == "uint8":
        assert "q = x -128" in notes[0] and "x = q +128" in notes[1]
    checks = verify(data, result, VerifyOptions(inputs=4)).checks
    assert [c.status for c in checks if c.status != "not available"].count("equal") >= 1


@needs_tflm
def test_an_input_that_is_quantised_twice_alike() -> None:
    data = ends("int8", "float32", more="twice")
    result, _ = dropped(data)
    assert [op.kind for op in read_model(result).main.ops] == ["MAXIMUM", "RELU"]
    assert not same_bits(data, result)


@pytest.mark.parametrize(
    ("more", "sides"),
    [
        ("input read", ["output"]),
        ("output read", ["input"]),
        ("inner offered", ["input"]),
        ("coarse", []),
    ],
)
def test_what_others_need_stays(more: str, sides: list[str]) -> None:
    outer = "uint8" if more == "coarse" else "float32"
    assert [note.split()[0] for note in dropped(ends("int8", outer, more=more))[1]] == sides


@needs_tflm
def test_a_difference_behind_converted_ends_is_seen_and_placed() -> None:
    data = ends("int8", "float32")
    other, _ = dropped(ends("int8", "float32", kind="RELU6"))
    verdict = verify(data, other, VerifyOptions(inputs=4, runtimes=("LiteRT",)))
    (check,) = verdict.checks
    assert verdict.differs and "output 0 ('y') differs" in check.detail


def test_other_scales_are_other_models() -> None:
    with pytest.raises(ModelError, match="different inputs"):
        verify(dropped(ends("int8", "float32"))[0], ends("int8", "float32"))
