"""Where the fields of each table lie, and what a vtable says about one.

    field of a schema                    vtable of a table in a file
    Field("name", 10, STRING)      x     slot 10 -> byte 8          = Places: load "<8xI", follow

Two modules give layouts: `learnt` those of the generated module, whatever its version, for models
that are changed and written; `known` those of our own file, for models that are only looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Protocol

_TABLE_OFFSET = "I"
"""How a reference is stored: as the number of bytes from the field to its target."""
_FIRST_SLOT = 4
"""Bytes of a vtable before its first slot."""
_KNOWN = 1 << 12
"""Vtables of all files read whose meaning is remembered; a schema has some hundreds."""


class Kind(Enum):
    """What a field holds: a number, or a reference to one of the rest."""

    SCALAR = 0
    STRING = 1
    TABLE = 2
    UNION = 3
    NUMBERS = 4
    TABLES = 5
    STRINGS = 6


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table. name: its attribute in the object API. slot: its place in the vtable,
    in bytes. form: of a scalar, for `struct`. of: the key of a table (see `Layouts`), the type of
    numbers, the enumeration of a union."""

    name: str
    slot: int
    kind: Kind
    form: str = _TABLE_OFFSET
    of: Any = None


@dataclass(frozen=True, eq=False)
class TableLayout:
    """A table class. made: its class in the object API. defaults: the attributes of an object
    without any field, in their order."""

    name: str
    made: Any
    fields: tuple[Field, ...]
    defaults: dict[str, Any]


@dataclass(frozen=True, eq=False, slots=True)
class Places:
    """One vtable of a class, understood. loads: one `struct` format for all fields that do not
    overlap, with their names (references as offsets). references: fields that refer to something,
    with their places in the table."""

    loads: tuple[tuple[struct.Struct, tuple[str, ...]], ...]
    references: tuple[tuple[Field, int], ...]


class Layouts(Protocol):
    """A schema: layouts of tables by their keys, which are its own, and the arrays that it makes of
    numbers."""

    @property
    def root(self) -> Any:
        """The key of a model."""
        ...

    def of(self, key: Any) -> TableLayout:
        """The layout of a table."""
        ...

    def members(self, enumeration: str) -> Mapping[int, Any]:
        """Number -> key of the members of a union."""
        ...

    def numbers(self, data: bytes, kind: Any, length: int, at: int) -> Any:
        """The numbers at a place of the file, as a view. Raises unless they lie inside it."""
        ...


@lru_cache(maxsize=_KNOWN)
def places_of(layout: TableLayout, vtable: bytes) -> Places:
    """Where a table's fields are, as its vtable says. vtable: without its two lengths."""
    slots = struct.unpack(f"<{len(vtable) // 2}H", vtable)
    present = [
        (slots[at], field)
        for field in layout.fields
        if (at := (field.slot - _FIRST_SLOT) // 2) < len(slots) and slots[at]
    ]
    present.sort(key=lambda p: p[0])
    loads: list[tuple[struct.Struct, tuple[str, ...]]] = []
    remaining = present
    while remaining:  # once, but for files whose fields lie over each other
        form, names, end, overlapping = "<", list[str](), 0, list[tuple[int, Field]]()
        for at, field in remaining:
            if at < end:
                overlapping.append((at, field))
                continue
            form += f"{at - end}x{field.form}"
            end = at + struct.calcsize(f"<{field.form}")
            names.append(field.name)
        loads.append((struct.Struct(form), tuple(names)))
        remaining = overlapping
    references = tuple((f, at) for at, f in present if f.kind is not Kind.SCALAR)
    return Places(tuple(loads), references)
