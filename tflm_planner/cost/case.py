"""What the cost of an operator depends on: its kind, types, shapes, options and small constants.

    Op -- case_of --> Case (hashable, serialisable) -- kernels --> features -- constants --> Cost

A `Case` is the key of the cache and a row of the measurements. This module must not know targets
or kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tflm_planner.model.ir import Op, Tensor

OPTIONS = (
    "padding", "strideH", "strideW", "dilationHFactor", "dilationWFactor", "filterHeight",
    "filterWidth", "axis", "adjX", "adjY", "keepNumDims",
)  # fmt: skip
"""Fields of operators' options on which a cost depends, by their names in the schema, which files
of measurements use too (schema/profile.md)."""
MOST_NUMBERS = 16
"""Constant integer operands up to this many elements are part of a case: axes, paddings, sizes."""
_WITH_NUMBERS = frozenset(
    ("PAD", "PADV2", "MIRROR_PAD", "TRANSPOSE", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN",
     "REDUCE_ALL", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "CUMSUM", "REVERSE_V2")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as the kernel sees it. scales: number of quantisation scales. numbers: the values of
    a small integer constant that determines how the operator works, else None."""

    type: str
    shape: tuple[int, ...]
    constant: bool = False
    scales: int = 0
    numbers: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """Bytes of an element; 1 for types of less than a byte."""
        return _WIDTHS.get(self.type, 1)

    @property
    def nbytes(self) -> int:
        """Bytes of its data."""
        return self.elements * self.width

    def last_axes(self, count: int) -> tuple[int, ...]:
        """Exactly `count` axes, as kernels extend a shape: missing axes in front are 1, and axes in
        front of the last `count` are left out."""
        return (*(1,) * count, *self.shape)[-count:]


_WIDTHS = {"float32": 4, "int32": 4, "uint32": 4, "int16": 2, "uint16": 2, "float16": 2,
           "int64": 8, "uint64": 8, "float64": 8}  # fmt: skip
_DATA_AT = {"TRANSPOSE_CONV": 2, "SPLIT": 1, "SELECT_V2": 1, "SELECT": 1, "EMBEDDING_LOOKUP": 1}
"""Index of the operand with the data, if it is not the first."""


@dataclass(frozen=True)
class Case:
    """An operator by itself, without the model around it."""

    kind: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    options: tuple[tuple[str, int], ...] = ()

    def option(self, name: str, default: int = 0) -> int:
        """A field of the operator's options."""
        return next((value for key, value in self.options if key == name), default)

    @property
    def data(self) -> Operand:
        """The operand with the data; the first result if there is none."""
        index = _DATA_AT.get(self.kind, 0)
        operand = self.inputs[index] if index < len(self.inputs) else None
        return operand or self.result

    @property
    def result(self) -> Operand:
        """The first result."""
        return self.outputs[0] if self.outputs else _NOTHING

    def operand(self, index: int) -> Operand | None:
        """An input, or None where it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def numbers(self, index: int) -> tuple[int, ...]:
        """The values of a constant input; empty if it is not constant."""
        operand = self.operand(index)
        return (operand.numbers or ()) if operand is not None else ()


_NOTHING = Operand("int8", (0,))


def case_of(op: Op) -> Case:
    """The case of an operator of a model. It never raises: missing parts are left out."""
    has_numbers = op.kind in _WITH_NUMBERS
    fields = op.options.fields()
    options = [(name, fields[name]) for name in OPTIONS if name in fields]
    return Case(
        op.kind,
        tuple(None if t is None else _operand(t, has_numbers) for t in op.inputs),
        tuple(_operand(t, False) for t in op.outputs),
        tuple((name, int(value)) for name, value in options if isinstance(value, bool | int)),
    )


def _operand(tensor: Tensor, has_numbers: bool) -> Operand:
    constant = tensor.is_constant
    return Operand(
        tensor.type_name,
        tuple(tensor.shape or ()),
        constant,
        len(tensor.quantization.scales),
        _numbers(tensor) if has_numbers and constant else None,
    )


def _numbers(tensor: Tensor) -> tuple[int, ...] | None:
    data, dtype = tensor.buffer.data, {"int32": "<i4", "int64": "<i8"}.get(tensor.type_name)
    if data is None or dtype is None or not 0 < tensor.elements <= MOST_NUMBERS:
        return None
    values = np.frombuffer(bytes(data[: tensor.nbytes]), dtype)
    return tuple(int(v) for v in values)


def to_row(case: Case) -> list[Any]:
    """A case as plain lists, for JSON."""

    def plain(t: Operand | None) -> list[Any] | None:
        if t is None:
            return None
        row: list[Any] = [t.type, list(t.shape), int(t.constant), t.scales]
        return row if t.numbers is None else [*row, list(t.numbers)]

    return [
        case.kind, [plain(t) for t in case.inputs], [plain(t) for t in case.outputs],
        {name: value for name, value in case.options if value},
    ]  # fmt: skip


def from_row(row: list[Any]) -> Case:
    """The case that `to_row` wrote."""

    def operand(t: list[Any] | None) -> Operand | None:
        if t is None:
            return None
        numbers = tuple(cast("list[int]", t[4])) if len(t) > 4 else None
        return Operand(t[0], tuple(t[1]), bool(t[2]), t[3], numbers)

    kind, inputs, outputs, options = row
    results = tuple(t for t in map(operand, outputs) if t is not None)
    return Case(kind, tuple(map(operand, inputs)), results, tuple(options.items()))


def canonical(case: Case) -> Case:
    """The case with its options sorted and without those that are 0, so that cases of the same
    operator are equal."""
    options = tuple(sorted((name, value) for name, value in case.options if value))
    return Case(case.kind, case.inputs, case.outputs, options)
