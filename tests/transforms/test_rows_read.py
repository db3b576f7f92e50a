"""Which rows of operands the operators of a loop read, and which operators have no such form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.models.small import One
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.transforms.row_loop import NotStreamableError
from tflm_planner.transforms.row_loop.operand_rows import OperandRows, operand_rows

SHAPE = (1, 8, 6, 4)
WINDOW = {"strideH": 1, "strideW": 1, "filterHeight": 3, "filterWidth": 3}


def pool(kind: str, dtype: str = "int8", *, padding: int = 0) -> Op:
    one = One(SHAPE, dtype)
    shape = SHAPE if padding == 0 else (1, 6, 4, 4)
    y = one.tensor(shape)
    one.graph.op(kind, [one.x], [y], "Pool2DOptions", padding=padding, **WINDOW)
    return read_model(one.finish((y, shape))).main.ops[1]


def pad(*pads: tuple[int, int], shape: tuple[int, ...] = SHAPE, fill: int | None = None) -> Op:
    """PAD; PADV2 with a fill."""
    one = One(shape)
    padded = tuple(n + low + high for n, (low, high) in zip(shape, pads, strict=True))
    operands = [one.x, one.graph.constant("pads", [list(p) for p in pads])]
    if fill is not None:
        operands.append(one.graph.constant("fill", [fill], "int8", scale=0.1))
    y = one.tensor(padded)
    kind, options = ("PAD", "PadOptions") if fill is None else ("PADV2", "PadV2Options")
    one.graph.op(kind, operands, [y], options)
    return read_model(one.finish((y, padded))).main.ops[1]


def pad_as_an_input_says() -> Op:
    """PAD by numbers that only the input knows."""
    one = One(SHAPE)
    pads = one.graph.input("pads", (4, 2), "int32")
    y = one.tensor(SHAPE)
    one.graph.op("PAD", [one.x, pads], [y], "PadOptions")
    return read_model(one.finish((y, SHAPE))).main.ops[1]


def plus(*shape: int) -> Op:
    """ADD of a constant of a shape."""
    one = One(SHAPE)
    constant = one.graph.constant("k", np.ones(shape), "int8", scale=0.1)
    y = one.tensor(SHAPE)
    one.graph.op("ADD", [one.x, constant], [y], "AddOptions", version=2)
    return read_model(one.finish((y, SHAPE))).main.ops[1]


def cut(begin: tuple[int, ...], size: tuple[int, ...], *, strides: bool = False) -> Op:
    """SLICE; STRIDED_SLICE with strides of one."""
    one = One(SHAPE)
    y = one.tensor(size)
    if strides:
        end = [b + n for b, n in zip(begin, size, strict=True)]
        places = [one.graph.constant(n, v) for n, v in (("b", begin), ("e", end), ("s", [1] * 4))]
        one.graph.op("STRIDED_SLICE", [one.x, *places], [y], "StridedSliceOptions")
    else:
        places = [one.graph.constant(n, v) for n, v in (("begin", begin), ("size", size))]
        one.graph.op("SLICE", [one.x, *places], [y], "SliceOptions")
    return read_model(one.finish((y, size))).main.ops[1]


def split(axis: int) -> Op:
    """SPLIT in two along an axis."""
    one = One(SHAPE)
    halves = tuple(n // 2 if a == axis else n for a, n in enumerate(SHAPE))
    parts = [one.tensor(halves), one.tensor(halves)]
    operands = [one.graph.constant("axis", axis), one.x]
    one.graph.op("SPLIT", operands, parts, "SplitOptions", numSplits=2)
    return read_model(one.finish(*((y, halves) for y in parts))).main.ops[1]


def cut_where_an_input_says() -> Op:
    """SLICE from places that only the input knows."""
    one = One(SHAPE)
    begin, size = one.graph.input("begin", (4,), "int32"), (1, 8, 6, 2)
    y = one.tensor(size)
    operands = [one.x, begin, one.graph.constant("size", size)]
    one.graph.op("SLICE", operands, [y], "SliceOptions")
    return read_model(one.finish((y, size))).main.ops[1]


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: pad((0, 0), (1, 2), (3, 0), (0, 1)),
         {"above": 1, "below": 2, "columns": (3, 0), "channels": (0, 1)}),
        (lambda: pad((0, 0), (0, 0), (1, 1), (0, 0), fill=7), {"columns": (1, 1), "value": 7}),
        (lambda: pool("MAX_POOL_2D"),
         {"reach": 3, "above": 1, "below": 1, "columns": (1, 1), "value": -128}),
        (lambda: pool("MAX_POOL_2D", "float32"),
         {"reach": 3, "above": 1, "below": 1, "columns": (1, 1),
          "value": float(np.finfo(np.float32).min)}),
        (lambda: pool("MAX_POOL_2D", padding=1), {"reach": 3}),
        (lambda: pool("AVERAGE_POOL_2D", padding=1), {"reach": 3}),
        (lambda: plus(1, 1, 6, 4), {}),
        (lambda: plus(4), {}),
        (lambda: cut((0, 0, 1, 2), (1, 8, 5, 2)), {}),
        (lambda: cut((0, 0, 1, 2), (1, 8, 5, 2), strides=True), {}),
    ],
    ids=["pad", "pad with a value", "maxima", "maxima of floats", "maxima inside",
         "averages inside", "a constant for all rows", "one for each channel", "a part of each row",
         "a part of each row, with strides"],
)  # fmt: skip
def test_rows_that_are_read(make: Callable[[], Op], wanted: dict[str, object]) -> None:
    op = make()
    (found,) = operand_rows(op)
    tensor = op.inputs[0]
    assert tensor is not None
    assert found == OperandRows(0, tensor, **wanted)  # type: ignore[arg-type]


def test_results_of_a_split_have_the_rows_of_its_data() -> None:
    op = split(3)
    assert op.inputs[1] is not None
    assert operand_rows(op) == [OperandRows(1, op.inputs[1])]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: pool("AVERAGE_POOL_2D"), "leaves padding out of its averages"),
        (lambda: plus(*SHAPE), "has a constant of its own for every row"),
        (lambda: plus(1, 8, 1, 1), "has a constant of its own for every row"),
        (lambda: pad((0, 1), (0, 0), (0, 0), (0, 0)), "has the shape"),
        (lambda: pad((1, 1), (0, 0), (0, 0), shape=(8, 6, 4)), "has the shape"),
        (pad_as_an_input_says, "has the shape"),
        (lambda: cut((0, 2, 0, 0), (1, 6, 6, 4)), "takes a part of the rows"),
        (lambda: cut((0, 0, 0, 0), (1, 6, 6, 4)), "takes a part of the rows"),
        (lambda: cut((0, 1, 0, 0), (1, 7, 6, 4), strides=True), "takes a part of the rows"),
        (cut_where_an_input_says, "has the shape"),
        (lambda: split(1), "takes rows apart"),
    ],
    ids=["averages over the border", "a constant image", "a column", "a batch", "no image",
         "pads of an input", "the lower rows", "the upper rows", "rows with strides",
         "places of an input", "upper and lower rows"],
)  # fmt: skip
def test_operators_without_such_rows(make: Callable[[], Op], why: str) -> None:
    with pytest.raises(NotStreamableError, match=why):
        operand_rows(make())
