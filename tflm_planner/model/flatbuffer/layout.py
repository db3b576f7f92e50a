"""Where the fields of each table lie, learnt from the generated accessors, class by class.

Every accessor of the generated module is called once on a fake table, which notes what it is asked
for. So the whole schema is covered without naming a field, and a newer schema brings its own
layout. It must not know files.

    Tensor.Name()  asks for  Offset(10), String(..)        ->  Field("name", 10, STRING)
    Tensor.Type()  asks for  Offset(6), Get(Int8Flags, ..)  ->  Field("type", 6, SCALAR, "b")
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from typing import Any

import flatbuffers.number_types  # pyright: ignore[reportMissingTypeStubs]
import numpy as np

from tflm_planner.model.schema import generated, members, value_names

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
    in bytes. form: of a scalar, for `struct`. of: the accessor class of a table, the dtype of
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


@cache
def layout_of(table_class: Any) -> TableLayout:
    """The layout of a generated accessor class, for example `generated.Tensor`."""
    name = table_class.__name__
    object_class = getattr(generated, f"{name}T")
    defaults = dict(members(object_class()))
    return TableLayout(
        name, object_class, tuple(_field(table_class, n) for n in defaults), defaults
    )


@cache
def union_members(enumeration: str) -> dict[int, Any]:
    """Number -> accessor class of the members of a union."""
    names = value_names(getattr(generated, enumeration))
    return {k: getattr(generated, v) for k, v in names.items() if hasattr(generated, v)}


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
    left = present
    while left:  # once, but for files whose fields lie over each other
        form, names, end, over = "<", list[str](), 0, list[tuple[int, Field]]()
        for at, field in left:
            if at < end:
                over.append((at, field))
                continue
            form += f"{at - end}x{field.form}"
            end = at + struct.calcsize(f"<{field.form}")
            names.append(field.name)
        loads.append((struct.Struct(form), tuple(names)))
        left = over
    references = tuple((f, at) for at, f in present if f.kind is not Kind.SCALAR)
    return Places(tuple(loads), references)


_UNIONS = {
    "builtinOptions": "BuiltinOptions",
    "builtinOptions2": "BuiltinOptions2",
    "details": "QuantizationDetails",
    "arraySegments": "SparseIndexVector",
    "arrayIndices": "SparseIndexVector",
}


class _Probe:
    """A fake table, which notes what its accessors ask for."""

    Bytes, Pos = b"", 0

    def __init__(self) -> None:
        self.slot = 0
        self.asked: dict[str, Any] = {}

    def Offset(self, slot: int) -> int:  # noqa: N802
        """Where a field lies. This name and all below are the library's."""
        self.slot = slot
        return slot

    def Get(self, flags: Any, _: int) -> int:  # noqa: N802
        """A number."""
        self.asked["Get"] = flags
        return 0

    def GetVectorAsNumpy(self, flags: Any, _: int) -> int:  # noqa: N802
        """A vector of numbers."""
        self.asked["GetVectorAsNumpy"] = flags
        return 0

    def String(self, _: int) -> bytes:  # noqa: N802
        """A string."""
        self.asked["String"] = True
        return b""

    def Indirect(self, _: int) -> int:  # noqa: N802
        """A table."""
        self.asked["Indirect"] = True
        return 0

    def Vector(self, _: int) -> int:  # noqa: N802
        """A vector."""
        self.asked["Vector"] = True
        return 0

    def Union(self, *_: Any) -> None:  # noqa: N802
        """A union."""
        self.asked["Union"] = True


def _field(table_class: Any, name: str) -> Field:
    accessor = name[0].upper() + name[1:]
    known = members(table_class)
    table, probe = table_class(), _Probe()
    table._tab = probe
    if f"{accessor}AsNumpy" in known:
        getattr(table, f"{accessor}AsNumpy")()
        flags = probe.asked["GetVectorAsNumpy"]
        number_types: Any = flatbuffers.number_types
        return Field(name, probe.slot, Kind.NUMBERS, of=np.dtype(number_types.to_numpy_type(flags)))
    is_vector = f"{accessor}Length" in known
    value = getattr(table, accessor)(*((0,) if is_vector else ()))
    if "String" in probe.asked:
        return Field(name, probe.slot, Kind.STRINGS if is_vector else Kind.STRING)
    if "Indirect" in probe.asked:
        return Field(name, probe.slot, Kind.TABLES if is_vector else Kind.TABLE, of=type(value))
    if "Union" in probe.asked:
        return Field(name, probe.slot, Kind.UNION, of=_UNIONS[name])
    return Field(name, probe.slot, Kind.SCALAR, probe.asked["Get"].packer_type.format[-1:])
