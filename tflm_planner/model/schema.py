"""The one module that names the generated TFLite schema.

Gives the rest of the package the object API (`...T` classes), the names of operators and types,
and a builder that packs models the way microcontrollers want them: every data buffer starts at
a multiple of 16 (the Python flatbuffers library ignores `force_align`), and equal vectors and
strings are stored once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import flatbuffers  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import numpy.typing as npt
from ai_edge_litert import schema_py_generated as _generated

from tflm_planner.support.units import ALIGNMENT

generated: Any = _generated
"""The generated module, untyped as it comes."""

FILE_IDENTIFIER = b"TFL3"
Bytes = npt.NDArray[np.uint8]


def members(thing: Any) -> dict[str, Any]:
    """The attributes of a generated class or object, by name."""
    return thing.__dict__


def with_members(kind: Any, attributes: dict[str, Any]) -> Any:
    """An object of a generated class with exactly these attributes. Its constructor, which would
    set each of them first, is not called: that would take most of the time of reading a file."""
    made = kind.__new__(kind)
    made.__dict__ = attributes
    return made


def value_names(enumeration: Any) -> dict[int, str]:
    """Value -> name of a generated enumeration."""
    return {v: k for k, v in members(enumeration).items() if isinstance(v, int)}


@cache
def operator_names() -> dict[int, str]:
    """Builtin operator code -> name, e.g. 3 -> "CONV_2D"."""
    return value_names(generated.BuiltinOperator)


@cache
def own_options(kind: str) -> str | None:
    """The options table named after an operator, e.g. "GATHER" -> "GatherOptions"; None where there
    is none, because several kinds share a table, or because the kind has no options."""
    tables = (generated.BuiltinOptions, generated.BuiltinOptions2)
    names = [name for table in tables for name in value_names(table).values()]
    spelt = f"{kind.replace('_', '')}Options".lower()
    return next((name for name in names if name.lower() == spelt), None)


@cache
def operator_code(name: str) -> int:
    """Builtin operator name -> code."""
    return int(getattr(generated.BuiltinOperator, name))


@cache
def type_names() -> dict[int, str]:
    """Tensor type -> lower-case name, e.g. 9 -> "int8"."""
    return {k: v.lower() for k, v in value_names(generated.TensorType).items()}


@cache
def type_name(tensor_type: int) -> str:
    """The lower-case name of a tensor type, known or not."""
    return type_names().get(tensor_type, f"type {tensor_type}")


_BITS = {
    "float64": 64, "int64": 64, "uint64": 64, "complex64": 64, "complex128": 128,
    "float32": 32, "int32": 32, "uint32": 32, "resource": 32, "variant": 32,
    "float16": 16, "bfloat16": 16, "int16": 16, "uint16": 16,
    "int8": 8, "uint8": 8, "bool": 8, "int4": 4, "uint4": 4, "int2": 2,
}  # fmt: skip


@cache
def element_bits(tensor_type: int) -> int | None:
    """Bits of one element; None for types without a fixed size (strings, unknown types)."""
    return _BITS.get(type_names().get(tensor_type, ""))


class AlignedBuffer(generated.BufferT):  # pyright: ignore[reportUntypedBaseClass]
    """A `BufferT` whose bytes start at a multiple of 16 in the file. Only `Builder` packs it."""

    @classmethod
    def like(cls, buffer: Any) -> AlignedBuffer:
        """One with the fields of a `BufferT`."""
        return with_members(cls, dict(members(buffer)))

    def Pack(self, builder: Any) -> int:  # noqa: N802
        """Write it, with its bytes aligned: the library's name."""
        builder.least_alignment = ALIGNMENT
        try:
            return int(generated.BufferT.Pack(self, builder))
        finally:
            builder.least_alignment = 1


class Builder(flatbuffers.Builder):  # pyright: ignore[reportUntypedBaseClass]
    """Stores equal vectors, strings and tables once, and aligns the bytes of buffers to 16.

    The alignment costs up to 15 bytes a buffer; the sharing saves more than that, so that files
    do not grow. Method names are the library's. least_alignment: that of vectors written next.
    """

    def __init__(self) -> None:
        super().__init__(1 << 16)
        self.least_alignment = 1
        self._vectors: dict[tuple[str, int, bytes], int] = {}
        self._strings: dict[bytes, int] = {}
        self._tables: dict[tuple[object, ...], int] = {}
        self._fields: list[tuple[object, ...]] = []
        self._start = self._width = 0

    def CreateNumpyVector(self, x: npt.NDArray[Any]) -> int:  # noqa: N802
        """Write `x` once; a later equal vector of the same type points to it."""
        alignment = max(self.least_alignment, x.dtype.alignment)
        payload = x.astype(x.dtype.newbyteorder("<"), copy=False).tobytes()
        key = (x.dtype.str, alignment, payload)
        if key not in self._vectors:
            self.StartVector(x.itemsize, x.size, alignment)
            self.head -= len(payload)
            self.Bytes[self.head : self.head + len(payload)] = payload
            self.vectorNumElems = x.size
            self._vectors[key] = self.EndVector()
        return self._vectors[key]

    def CreateString(  # noqa: N802
        self, s: str | bytes, encoding: str = "utf-8", errors: str = "strict"
    ) -> int:
        """Write `s` once; a later equal string points to it."""
        key = s.encode(encoding, errors) if isinstance(s, str) else bytes(s)
        if key not in self._strings:
            self._strings[key] = super().CreateString(key)
        return self._strings[key]

    def StartObject(self, numfields: int) -> None:  # noqa: N802
        """Begin a table."""
        self._fields, self._start, self._width = [], self.Offset(), numfields
        super().StartObject(numfields)

    def PrependSlot(self, flags: Any, o: int, x: Any, d: Any) -> None:  # noqa: N802
        """Write a scalar field."""
        if x != d:
            self._fields.append((o, flags.packer_type.format, flags.packer_type.pack(x)))
        super().PrependSlot(flags, o, x, d)

    def PrependUOffsetTRelativeSlot(self, o: int, x: int, d: int) -> None:  # noqa: N802
        """Write a field that refers to something written before."""
        if x != d:
            self._fields.append((o, "offset", x))
        super().PrependUOffsetTRelativeSlot(o, x, d)

    def EndObject(self) -> int:  # noqa: N802
        """Finish a table; if an equal one stands already, take this one back and point there."""
        key = (self._width, *self._fields)
        if key in self._tables:
            self.head = len(self.Bytes) - self._start
            self.nested = False
        else:
            self._tables[key] = super().EndObject()
        return self._tables[key]


def pack(model: Any, at_most: int = 0) -> bytes:
    """The flatbuffer of a `ModelT`, with the bytes of every `AlignedBuffer` at a multiple of 16.

    `at_most`: bytes that it should not exceed, if possible. Flatbuffers are built from their end,
    so that one with aligned buffers has a multiple of 16 bytes. Building it with padding at the
    end, which is then cut off, makes other lengths possible.
    """
    packed = _build(model, 0)
    if not at_most < len(packed) < at_most + ALIGNMENT:
        return packed
    return min((packed, *(_build(model, n) for n in (4, 8, 12))), key=len)


def _build(model: Any, cut: int) -> bytes:
    """The flatbuffer, built in front of `cut` bytes of padding, which are then cut off."""
    builder: Any = Builder()
    builder.Pad(cut)
    builder.Finish(model.Pack(builder), FILE_IDENTIFIER)
    packed = bytes(builder.Output())
    return packed[: len(packed) - cut]
