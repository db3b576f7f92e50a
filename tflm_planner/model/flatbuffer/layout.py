"""Layouts of tables: which fields they have, and where a vtable says that these lie.

    field of a schema                    vtable of a table in a file
    Field("name", 10, STRING)      x     slot 10 -> byte 8          = Places: load "<8xI", follow

Two modules provide layouts: `learnt` those of the generated module in any version, for models that
are changed and written; `known` those of the package's own schema file, for read-only models.
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
"""Largest number of decoded vtables to cache over all files; a schema has a few hundred."""


class Kind(Enum):
    """What a field holds: a number (SCALAR), or a reference to one of the others."""

    SCALAR = 0
    STRING = 1
    TABLE = 2
    UNION = 3
    NUMBERS = 4
    TABLES = 5
    STRINGS = 6


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table. name: its attribute in the object API. slot: its position in the vtable,
    in bytes. form: `struct` format of a scalar. of: the key of the table that it refers to (see
    `Layouts`), the type of its numbers, or the enumeration of a union."""

    name: str
    slot: int
    kind: Kind
    form: str = _TABLE_OFFSET
    of: Any = None


@dataclass(frozen=True, eq=False)
class TableLayout:
    """A kind of table. made: its class in the object API. defaults: the attributes of an object
    that has no field set, in order."""

    name: str
    made: Any
    fields: tuple[Field, ...]
    defaults: dict[str, Any]


@dataclass(frozen=True, eq=False, slots=True)
class Places:
    """One decoded vtable of a kind of table. loads: `struct` formats with the names of the fields
    that each reads (references are read as offsets); one format unless fields overlap. references:
    fields that refer to something, with their positions in the table in bytes."""

    loads: tuple[tuple[struct.Struct, tuple[str, ...]], ...]
    references: tuple[tuple[Field, int], ...]


class Layouts(Protocol):
    """A schema: the layouts of tables by key (each schema defines its own keys), and how vectors of
    numbers are represented."""

    @property
    def root(self) -> Any:
        """The key of the table of a whole model."""
        ...

    def of(self, key: Any) -> TableLayout:
        """The layout of a table."""
        ...

    def members(self, enumeration: str) -> Mapping[int, Any]:
        """Number of a union member -> key of its table."""
        ...

    def numbers(self, data: bytes, kind: Any, length: int, at: int) -> Any:
        """A view of the numbers at byte `at` of the file. Raises if it leaves the file."""
        ...


@lru_cache(maxsize=_KNOWN)
def places_of(layout: TableLayout, vtable: bytes) -> Places:
    """Where the fields of a table lie, decoded from its vtable. vtable: without its two lengths."""
    slots = struct.unpack(f"<{len(vtable) // 2}H", vtable)
    present = [
        (slots[at], field)
        for field in layout.fields
        if (at := (field.slot - _FIRST_SLOT) // 2) < len(slots) and slots[at]
    ]
    present.sort(key=lambda p: p[0])
    loads: list[tuple[struct.Struct, tuple[str, ...]]] = []
    remaining = present
    while remaining:  # one pass, except for files whose fields overlap
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
