"""Layouts learnt from the generated accessors, one class at a time.

Every accessor of the generated module is called once on a fake table, which records what the
accessor asks for. So the whole schema is covered without naming a field, and a newer schema brings
its own layout. It must not know files.

    Tensor.Name()  asks for  Offset(10), String(..)        ->  Field("name", 10, STRING)
    Tensor.Type()  asks for  Offset(6), Get(Int8Flags, ..)  ->  Field("type", 6, SCALAR, "b")

The key of a table is its accessor class, and arrays are numpy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import flatbuffers.number_types  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
from ai_edge_litert import schema_py_generated as _generated

from tflm_planner.model.flatbuffer.layout import Field, Kind, TableLayout
from tflm_planner.model.schema import members

generated: Any = _generated


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
    names = members(getattr(generated, enumeration))
    numbers = {v: k for k, v in names.items() if isinstance(v, int)}
    return {k: getattr(generated, v) for k, v in numbers.items() if hasattr(generated, v)}


class Learnt:
    """The schema of the generated module."""

    root: Any = generated.Model

    def of(self, key: Any) -> TableLayout:
        """The layout of an accessor class."""
        return layout_of(key)

    def members(self, enumeration: str) -> Mapping[int, Any]:
        """Number of a union member -> its accessor class."""
        return union_members(enumeration)

    def numbers(self, data: bytes, kind: Any, length: int, at: int) -> Any:
        """An array that is a view of the file."""
        return np.frombuffer(data, kind, length, at)


_UNIONS = {
    "builtinOptions": "BuiltinOptions",
    "builtinOptions2": "BuiltinOptions2",
    "details": "QuantizationDetails",
    "arraySegments": "SparseIndexVector",
    "arrayIndices": "SparseIndexVector",
}


class _Probe:
    """A fake table that records what the accessors ask for."""

    Bytes, Pos = b"", 0

    def __init__(self) -> None:
        self.slot = 0
        self.asked: dict[str, Any] = {}

    def Offset(self, slot: int) -> int:  # noqa: N802
        """Record the slot of a field. The library defines this method name and all below."""
        self.slot = slot
        return slot

    def Get(self, flags: Any, _: int) -> int:  # noqa: N802
        """Record that a number is asked for."""
        self.asked["Get"] = flags
        return 0

    def GetVectorAsNumpy(self, flags: Any, _: int) -> int:  # noqa: N802
        """Record that a vector of numbers is asked for."""
        self.asked["GetVectorAsNumpy"] = flags
        return 0

    def String(self, _: int) -> bytes:  # noqa: N802
        """Record that a string is asked for."""
        self.asked["String"] = True
        return b""

    def Indirect(self, _: int) -> int:  # noqa: N802
        """Record that a table is asked for."""
        self.asked["Indirect"] = True
        return 0

    def Vector(self, _: int) -> int:  # noqa: N802
        """Record that a vector is asked for."""
        self.asked["Vector"] = True
        return 0

    def Union(self, *_: Any) -> None:  # noqa: N802
        """Record that a union is asked for."""
        self.asked["Union"] = True


def _field(table_class: Any, name: str) -> Field:
    accessor = name[0].upper() + name[1:]
    accessors = members(table_class)
    table, probe = table_class(), _Probe()
    table._tab = probe
    if f"{accessor}AsNumpy" in accessors:
        getattr(table, f"{accessor}AsNumpy")()
        flags = probe.asked["GetVectorAsNumpy"]
        number_types: Any = flatbuffers.number_types
        return Field(name, probe.slot, Kind.NUMBERS, of=np.dtype(number_types.to_numpy_type(flags)))
    is_vector = f"{accessor}Length" in accessors
    value = getattr(table, accessor)(*((0,) if is_vector else ()))
    if "String" in probe.asked:
        return Field(name, probe.slot, Kind.STRINGS if is_vector else Kind.STRING)
    if "Indirect" in probe.asked:
        return Field(name, probe.slot, Kind.TABLES if is_vector else Kind.TABLE, of=type(value))
    if "Union" in probe.asked:
        return Field(name, probe.slot, Kind.UNION, of=_UNIONS[name])
    return Field(name, probe.slot, Kind.SCALAR, probe.asked["Get"].packer_type.format[-1:])
