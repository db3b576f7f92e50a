"""Refuses damaged flatbuffers before anything trusts them.

The Python flatbuffers library has no verifier: a flipped bit in a length makes it loop billions
of times or read beyond the file. This walks every table, vector, string and union once through
the generated accessors (so it covers the whole schema without naming a field), inside a budget
of visits that an honest file of that size cannot exceed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tflm_planner.errors import ModelError
from tflm_planner.schema import FILE_IDENTIFIER, generated, members, value_names

_MOST_VISITS = 2_000_000
"""Tables and strings of any model: 100 times those of the largest seen."""
_SUFFIXES = ("Length", "AsNumpy", "IsNone", "BufferHasIdentifier")


def check_flatbuffer(data: bytes) -> None:
    """Raise ModelError unless `data` is a TFLite flatbuffer whose every part lies inside it."""
    if len(data) < 8:
        raise ModelError(f"not a TFLite model: the file has only {len(data)} bytes")
    if data[4:8] != FILE_IDENTIFIER:
        found = data[4:8].decode("ascii", "replace").encode("unicode_escape").decode()
        raise ModelError(
            f"not a TFLite model: bytes 4 to 7 are {found!r}, expected 'TFL3'; "
            "give the .tflite file itself, not an archive, C array or SavedModel"
        )
    try:
        _Walk(data).table(generated.Model.GetRootAs(data, 0))
    except ModelError:
        raise
    except Exception as error:  # whatever the library trips over, the file is to blame
        raise ModelError(
            f"damaged model: the flatbuffer points outside the file ({type(error).__name__}); "
            "is it truncated? fetch or export it again"
        ) from error


class _Walk:
    def __init__(self, data: bytes) -> None:
        self._size = len(data)
        self._visits = min(len(data), _MOST_VISITS) + 1000
        self._copied = 64 * len(data) + (1 << 16)

    def table(self, table: Any) -> None:
        self._spend(1)
        vectors, singles = _fields(table.__class__)
        for name, is_numeric in vectors:
            self._vector(table, name, is_numeric)
        for name in singles:
            self._single(table, name)

    def _vector(self, table: Any, name: str, is_numeric: bool) -> None:
        length = getattr(table, f"{name}Length")()
        if length > self._size:
            raise ModelError(
                f"damaged model: {type(table).__name__}.{name} claims {length} elements "
                f"in a file of {self._size} bytes"
            )
        if is_numeric:
            # numpy checks that the vector lies in the file
            array = getattr(table, f"{name}AsNumpy")()
            if length and array.itemsize > 1:  # bytes stay views; the rest is copied when read
                self._copy(array.nbytes)
            return
        for j in range(length):
            self._value(table, name, getattr(table, name)(j))

    def _single(self, table: Any, name: str) -> None:
        value = getattr(table, name)()
        if type(value) is not int:
            self._value(table, name, value)

    def _value(self, table: Any, name: str, value: Any) -> None:
        if isinstance(value, bytes):
            self._spend(1)
            self._copy(len(value))
        elif hasattr(value, "_tab"):
            self.table(value)
        elif hasattr(value, "Bytes"):
            member = _union_member(type(table), name, getattr(table, f"{name}Type")())
            member.Init(value.Bytes, value.Pos)
            self.table(member)

    def _spend(self, visits: int) -> None:
        self._visits -= visits
        if self._visits < 0:
            raise ModelError("damaged model: its tables refer to each other without end")

    def _copy(self, size: int) -> None:
        """Many tables may share one long name or shape: a small file, but not once it is read."""
        self._copied -= size
        if self._copied < 0:
            raise ModelError("damaged model: its tables share long vectors over and over")


@cache
def _fields(table_class: Any) -> tuple[list[tuple[str, bool]], list[str]]:
    """([vector, whether numeric], [other fields]) of a generated accessor class."""
    names = {n for n in members(table_class) if n[0].isupper() and not n.startswith("GetRootAs")}
    vectors = sorted(n for n in names if f"{n}Length" in names)
    derived = {n for n in names if n.endswith(_SUFFIXES)} | {"Init"}
    singles = sorted(names - derived - set(vectors))
    return [(n, f"{n}AsNumpy" in names) for n in vectors], singles


@cache
def _union_classes(union: str) -> dict[int, str]:
    return value_names(getattr(generated, union))


_UNIONS = {
    "BuiltinOptions": "BuiltinOptions",
    "BuiltinOptions2": "BuiltinOptions2",
    "Details": "QuantizationDetails",
    "ArraySegments": "SparseIndexVector",
    "ArrayIndices": "SparseIndexVector",
}


def _union_member(table_class: Any, field: str, member: int) -> Any:
    name = _union_classes(_UNIONS[field]).get(member)
    if name is None or not hasattr(generated, name):
        raise ModelError(
            f"unsupported model: {table_class.__name__}.{field} has the unknown kind {member}; "
            "the file is damaged or was written with a newer schema (update ai-edge-litert)"
        )
    return getattr(generated, name)()
