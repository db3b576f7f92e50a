"""Layouts from the package's own copy of the schema (`data/tflite_schema.json`), for models that
are read-only: they need neither numpy nor the generated module.

    "tables": {"Tensor": {"shape": [4, "NUMBERS", "i", null], "type": [6, "SCALAR", "b", 0], ..}}
                                   slot kind       of/form default

The key of a table is its name. A model read with these layouts has `Vector`s in place of arrays,
and cannot be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tflm_planner.model.flatbuffer.layout import Field, Kind, TableLayout
from tflm_planner.model.schema import known_schema, value_names


class Vector:
    """A view of numbers in a file, with the methods of an array that reading a model needs."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: memoryview[Any]) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[int | float]:
        return iter(self._numbers)

    def __getitem__(self, place: Any) -> Any:
        numbers: Any = self._numbers[place]
        return Vector(numbers) if isinstance(place, slice) else numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self._numbers == other._numbers

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Vector({self._numbers.tolist()})"

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self._numbers)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._numbers.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._numbers.nbytes

    def tolist(self) -> list[Any]:
        """The elements as a list."""
        return self._numbers.tolist()

    def tobytes(self) -> bytes:
        """A copy of the bytes."""
        return self._numbers.tobytes()


class Known:
    """The schema of `data/tflite_schema.json`."""

    root = "Model"

    def of(self, key: str) -> TableLayout:
        """The layout of a table."""
        return _layout_of(key)

    def members(self, enumeration: str) -> Mapping[int, str]:
        """Number of a union member -> name of its table."""
        return _members(enumeration)

    def numbers(self, data: bytes, kind: str, length: int, at: int) -> Vector:
        """A view of the file. Raises IndexError if it reaches beyond the end of the file."""
        end = at + length * _SIZES[kind]
        if end > len(data):
            raise IndexError(end)
        view: Any = memoryview(data)[at:end]
        return Vector(view.cast(kind))


_SIZES = {"b": 1, "B": 1, "?": 1, "h": 2, "H": 2, "i": 4, "I": 4, "f": 4, "q": 8, "Q": 8, "d": 8}
"""Bytes of the types of numbers."""


@cache
def _layout_of(name: str) -> TableLayout:
    table = known_schema()["tables"][name]
    fields = tuple(_field(field, *values) for field, values in table.items())
    defaults = {field: values[-1] for field, values in table.items()}
    return TableLayout(name, type(f"{name}T", (), {}), fields, defaults)


def _field(name: str, slot: int, kind: str, of: str | None, _: Any) -> Field:
    if kind == "SCALAR":
        return Field(name, slot, Kind.SCALAR, form=str(of))
    return Field(name, slot, Kind[kind], of=of)


@cache
def _members(enumeration: str) -> dict[int, str]:
    tables = known_schema()["tables"]
    return {k: v for k, v in value_names(enumeration).items() if v in tables}
