"""Reads flatbuffers into the object API, and refuses damaged ones before other code relies on them.

The Python flatbuffers library has no verifier: a flipped bit in a length makes it loop billions of
times or read beyond the file. This module walks every table, vector, string and union once, stays
inside the file, and stops after a number of visits that no valid file of that size can exceed. The
result equals that of the generated `InitFromPackedBuf`, in a fifth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from tflm_planner.model.flatbuffer.layout import (
    Field,
    Kind,
    Layouts,
    Places,
    TableLayout,
    places_of,
)
from tflm_planner.model.flatbuffer.other_formats import said_of
from tflm_planner.model.schema import FILE_IDENTIFIER, with_members
from tflm_planner.support.errors import ModelError

_MOST_VISITS = 2_000_000
"""Largest number of tables and strings of any model: 100 times those of the largest seen."""
_OFFSET, _BACK, _LENGTHS = Struct("<I"), Struct("<i"), Struct("<HH")


def read_flatbuffer(data: bytes, layouts: Layouts | None = None) -> Any:
    """The `ModelT` in `data`; arrays are views of `data`. layouts: the schema; None: the schema of
    the generated module.

    Raises ModelError unless `data` is a TFLite flatbuffer whose parts all lie inside it.
    """
    if len(data) < 8:
        raise ModelError(f"not a TFLite model: the file has only {len(data)} bytes")
    if data[4:8] != FILE_IDENTIFIER:
        raise ModelError(f"not a TFLite model: {said_of(data)}")
    try:
        return _TableReader(data, layouts or learnt()).root()
    except ModelError:
        raise
    except Exception as error:  # whatever goes wrong here, the file is the cause
        raise ModelError(
            f"damaged model: the flatbuffer points outside the file ({type(error).__name__}); "
            "is it truncated? fetch or export it again"
        ) from error


def learnt() -> Layouts:
    """The schema of the generated module."""
    from tflm_planner.model.flatbuffer.learnt import Learnt  # brings numpy

    return Learnt()


class _TableReader:
    def __init__(self, data: bytes, layouts: Layouts) -> None:
        self._data, self._layouts = data, layouts
        self._visits = min(len(data), _MOST_VISITS) + 1000
        self._copied = 64 * len(data) + (1 << 16)
        self._places: dict[tuple[TableLayout, int], Places] = {}
        self._readers: dict[Kind, Callable[[TableLayout, Field, int, dict[str, Any]], Any]] = {
            Kind.STRING: self._string,
            Kind.TABLE: self._table,
            Kind.UNION: self._union,
            Kind.NUMBERS: self._numbers,
            Kind.TABLES: self._tables,
            Kind.STRINGS: self._strings,
        }

    def root(self) -> Any:
        return self._read_table(self._layouts.of(self._layouts.root), self._target(0))

    def _target(self, at: int) -> int:
        """The position to which the offset at `at` points. Offsets are unsigned, so they never
        point backward."""
        return at + _OFFSET.unpack_from(self._data, at)[0]

    def _read_table(self, layout: TableLayout, at: int) -> Any:
        """The table at `at`."""
        self._spend()
        data = self._data
        vtable = at - _BACK.unpack_from(data, at)[0]
        places = self._places.get((layout, vtable))
        if places is None:
            places = self._places[layout, vtable] = self._places_of(layout, vtable)
        fields = layout.defaults.copy()
        for load, names in places.loads:
            fields.update(zip(names, load.unpack_from(data, at), strict=True))
        for field, place in places.references:
            target = at + place + fields[field.name]
            fields[field.name] = self._readers[field.kind](layout, field, target, fields)
        return with_members(layout.made, fields)

    def _places_of(self, layout: TableLayout, vtable: int) -> Places:
        if not 0 <= vtable < len(self._data):
            raise IndexError(vtable)
        size, _ = _LENGTHS.unpack_from(self._data, vtable)
        if vtable + size > len(self._data):
            raise IndexError(vtable)
        return places_of(layout, self._data[vtable + 4 : vtable + size - size % 2])

    def _length(self, layout: TableLayout, field: Field, at: int) -> int:
        length = _OFFSET.unpack_from(self._data, at)[0]
        if length > len(self._data):
            name = field.name[0].upper() + field.name[1:]
            raise ModelError(
                f"damaged model: {layout.name}.{name} claims {length} elements "
                f"in a file of {len(self._data)} bytes"
            )
        return length

    def _numbers(self, layout: TableLayout, field: Field, at: int, _: dict[str, Any]) -> Any:
        length = self._length(layout, field, at)
        # This raises unless the vector lies in the file.
        array = self._layouts.numbers(self._data, field.of, length, at + 4)
        if length and array.itemsize > 1:  # bytes stay views; other types are copied when read
            self._copy(array.nbytes)
        return array

    def _tables(self, layout: TableLayout, field: Field, at: int, _: dict[str, Any]) -> Any:
        length = self._length(layout, field, at)
        inner = self._layouts.of(field.of)
        return [self._read_table(inner, self._target(at + 4 + 4 * k)) for k in range(length)]

    def _strings(self, layout: TableLayout, field: Field, at: int, rest: dict[str, Any]) -> Any:
        length = self._length(layout, field, at)
        starts = (self._target(at + 4 + 4 * k) for k in range(length))
        return [self._string(layout, field, start, rest) for start in starts]

    def _string(self, layout: TableLayout, field: Field, at: int, _: dict[str, Any]) -> bytes:
        length = self._length(layout, field, at)
        self._spend()
        self._copy(length)
        text = self._data[at + 4 : at + 4 + length]
        if len(text) < length:
            raise IndexError(at)
        return text

    def _table(self, _: TableLayout, field: Field, at: int, __: dict[str, Any]) -> Any:
        return self._read_table(self._layouts.of(field.of), at)

    def _union(self, layout: TableLayout, field: Field, at: int, rest: dict[str, Any]) -> Any:
        number = rest[f"{field.name}Type"]
        member = self._layouts.members(field.of).get(number)
        if member is None:
            name = field.name[0].upper() + field.name[1:]
            raise ModelError(
                f"unsupported model: {layout.name}.{name} has the unknown kind {number}; "
                "the file is damaged or was written with a newer schema (update ai-edge-litert)"
            )
        return self._read_table(self._layouts.of(member), at)

    def _spend(self) -> None:
        self._visits -= 1
        if self._visits < 0:
            raise ModelError("damaged model: its tables refer to each other without end")

    def _copy(self, size: int) -> None:
        """Account for copied bytes: many tables may share one long name or shape, so a small file
        can take much memory when it is read."""
        self._copied -= size
        if self._copied < 0:
            raise ModelError("damaged model: its tables share long vectors over and over")
