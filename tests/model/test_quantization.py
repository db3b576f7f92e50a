"""Quantisation as a value: what it says, how it is cut, and that files keep every field of it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from tests.models.build import Net
from tflm_planner.model.flatbuffer.read import read_flatbuffer
from tflm_planner.model.ir import Tensor
from tflm_planner.model.number_formats import is_shifted, same_values
from tflm_planner.model.quantization import (
    NOT_QUANTIZED,
    Quantization,
)
from tflm_planner.model.schema import generated
from tflm_planner.model.serde import read_model, write_model

PER_CHANNEL = Quantization((0.5, 0.25, 0.125), (1, 2, 3), axis=3)


def test_none_one_or_one_a_channel() -> None:
    single = Quantization.of([0.5], zero_point=7)
    assert (NOT_QUANTIZED.scale, NOT_QUANTIZED.zero_point, NOT_QUANTIZED.single) == (None, 0, None)
    assert (single.scale, single.zero_point, single.single) == (0.5, 7, (0.5, 7))
    assert (PER_CHANNEL.scale, PER_CHANNEL.zero_point, PER_CHANNEL.single) == (0.5, 1, None)
    kinds = NOT_QUANTIZED, single, PER_CHANNEL
    assert [q.is_per_channel for q in kinds] == [False, False, True]
    assert [q.is_absent for q in kinds] == [True, False, False]


def test_scales_that_are_made_are_float32() -> None:
    assert Quantization.of([0.1]).scales == (float(np.float32(0.1)),)
    assert Quantization.of(np.array([0.1, 0.2]), 3, 1) == Quantization(
        (float(np.float32(0.1)), float(np.float32(0.2))), (3, 3), 1
    )


def test_channels_are_cut_with_their_zero_points() -> None:
    assert PER_CHANNEL.channels(1, 3) == Quantization((0.25, 0.125), (2, 3), axis=3)
    assert PER_CHANNEL.channels(0, 3) is PER_CHANNEL
    one_point = replace(PER_CHANNEL, zero_points=(5,))
    assert one_point.channels(2, 3) == Quantization((0.125,), (5,), axis=3), "it stands for all"
    single = Quantization.of([0.5])
    assert single.channels(2, 4) is single, "every channel has the same"


def test_zero_points_that_repeat_may_be_one() -> None:
    filters = Quantization.of([0.5, 0.25])
    assert filters.repeats_zero_point and not filters.lacks_zero_points
    short = filters.with_one_zero_point()
    assert short == Quantization((0.5, 0.25), (0,))
    assert short.lacks_zero_points and not short.repeats_zero_point
    assert not PER_CHANNEL.repeats_zero_point
    assert not Quantization.of([0.5]).lacks_zero_points


def test_it_is_a_value() -> None:
    assert Quantization.of([0.5]) == Quantization.of([0.5]) != Quantization.of([0.5], 1)
    assert len({Quantization.of([0.5]), Quantization.of([0.5])}) == 1
    with pytest.raises(FrozenInstanceError):
        PER_CHANNEL.axis = 0  # pyright: ignore[reportAttributeAccessIssue]


def one_tensor(type_name: str = "int8", **fields: Any) -> bytes:
    """A RELU, with these fields in the quantisation of its input; None: without the table."""
    net = Net()
    graph = net.graph()
    x, y = (
        graph.input("x", (1, 4), type_name, scale=0.5, zero=3),
        graph.tensor("y", (1, 4), scale=1.0),
    )
    table = graph.table.tensors[x].quantization
    for name, value in fields.items():
        setattr(table, name, value)
    if fields.get("scale", ...) is None and len(fields) == 1:
        graph.table.tensors[x].quantization = None
    graph.op("RELU", [x], [y])
    graph.outputs(y)
    return net.finish()


def first(data: bytes) -> Tensor:
    return read_model(data).main.inputs[0]


def table_of(data: bytes) -> Any:
    return read_flatbuffer(data).subgraphs[0].tensors[0].quantization


EMPTY = np.zeros(0, np.float32)
TABLES: dict[str, dict[str, Any]] = {
    "as made": {},
    "with a range": {"min": np.array([-1], np.float32), "max": np.array([2], np.float32)},
    "empty vectors": {"scale": EMPTY, "zeroPoint": np.zeros(0, np.int64)},
    "no vectors": {"scale": None, "zeroPoint": None},
    "no zero points": {"zeroPoint": None},
    "an axis": {"quantizedDimension": 2},
    "numbers at their ends": {
        "scale": np.array([1e-45, 3.4e38, np.inf, np.nan], np.float32),
        "zeroPoint": np.array([-(2**63), 2**63 - 1, 0, 1], np.int64),
    },
}


@pytest.mark.parametrize("name", TABLES)
def test_a_file_keeps_every_field(name: str) -> None:
    data = write_model(read_model(one_tensor("float32", **TABLES[name])))
    again = write_model(read_model(data))
    assert data == again
    table, expected = table_of(data), table_of(one_tensor("float32", **TABLES[name]))
    for field in ("scale", "zeroPoint", "min", "max"):
        before, after = getattr(expected, field), getattr(table, field)
        assert (before is None) == (after is None), field
        assert before is None or np.array_equal(before, after, equal_nan=True), field
    assert table.quantizedDimension == expected.quantizedDimension


def test_what_a_file_lacks_stays_absent() -> None:
    data = one_tensor("float32", scale=None)
    assert table_of(data) is None and first(data).quantization is NOT_QUANTIZED
    assert table_of(write_model(read_model(data))) is None


def test_quantisation_of_other_kinds_stays() -> None:
    custom = generated.CustomQuantizationT()
    custom.custom = np.arange(5, dtype=np.uint8)
    kind = generated.QuantizationDetails.CustomQuantization
    data = one_tensor("float32", scale=None, zeroPoint=None, details=custom, detailsType=kind)
    quantization = first(data).quantization
    assert not quantization.is_absent and quantization.scales == ()
    assert not quantization.without_range().is_absent, "details say something"
    details = table_of(write_model(read_model(data))).details
    assert details.custom.tolist() == [0, 1, 2, 3, 4]


def test_a_range_says_nothing_to_a_runtime() -> None:
    ranged = first(one_tensor("float32", **TABLES["with a range"])).quantization
    assert ranged.raw.min is not None and ranged.without_range().raw.min is None
    assert ranged.raw.min is not None, "others may share it"
    assert ranged.without_range() == ranged, "numbers are the same"
    bare = {"scale": None, "zeroPoint": None, **TABLES["with a range"]}
    assert first(one_tensor("float32", **bare)).quantization.without_range() is NOT_QUANTIZED


def tensor_of(type_name: str, quantization: Quantization) -> Tensor:
    tensor = first(one_tensor(type_name))
    tensor.quantization = quantization
    return tensor


def test_bytes_that_differ_in_the_highest_bit() -> None:
    signed, unsigned = (tensor_of(*t) for t in (
        ("int8", Quantization.of([0.5], -3)), ("uint8", Quantization.of([0.5], 125)),
    ))  # fmt: skip
    assert is_shifted(signed, unsigned) and is_shifted(unsigned, signed)
    assert not is_shifted(signed, signed)
    assert not is_shifted(signed, tensor_of("uint8", Quantization.of([0.5], 124)))
    assert not is_shifted(signed, tensor_of("uint8", Quantization.of([0.25], 125)))
    assert not is_shifted(signed, tensor_of("uint8", NOT_QUANTIZED))


def test_equal_bytes_of_equal_values() -> None:
    one = tensor_of("int8", Quantization.of([0.5], 1))
    assert same_values(one, tensor_of("int8", Quantization.of([0.5], 1)))
    assert not same_values(one, tensor_of("int8", Quantization.of([0.5], 2)))
    assert not same_values(one, tensor_of("uint8", Quantization.of([0.5], 1)))
    assert not same_values(one, tensor_of("int8", NOT_QUANTIZED))


def test_the_axis_counts_where_there_are_several_scales() -> None:
    assert PER_CHANNEL.means_the_same(Quantization((0.5, 0.25, 0.125), (1, 2, 3), axis=3))
    assert not PER_CHANNEL.means_the_same(replace(PER_CHANNEL, axis=0))
    single = Quantization.of([0.5], 1)
    assert single.means_the_same(replace(single, axis=3))
    assert NOT_QUANTIZED.means_the_same(replace(NOT_QUANTIZED, axis=3))


def test_what_stands_for_zero() -> None:
    assert tensor_of("int8", Quantization.of([0.5], -9)).zero == -9
    assert tensor_of("float32", Quantization.of([0.5], -9)).zero == 0
    assert tensor_of("int8", NOT_QUANTIZED).zero == 0
