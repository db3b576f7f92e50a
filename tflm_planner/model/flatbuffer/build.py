"""Packs models in the layout that microcontrollers need: every data buffer starts at a multiple of
16 bytes (the Python flatbuffers library ignores `force_align`), and equal vectors and strings are
stored once.

The generated `Pack` writes the tables. This module is imported only to write a model.
"""

from __future__ import annotations

from typing import Any

import flatbuffers  # pyright: ignore[reportMissingTypeStubs]
import numpy.typing as npt
from ai_edge_litert import schema_py_generated as _generated

from tflm_planner.model.schema import FILE_IDENTIFIER, members, with_members
from tflm_planner.support.units import ALIGNMENT

generated: Any = _generated


class AlignedBuffer(generated.BufferT):  # pyright: ignore[reportUntypedBaseClass]
    """A `BufferT` whose bytes start at a multiple of 16 in the file. Only `Builder` packs it."""

    @classmethod
    def like(cls, buffer: Any) -> AlignedBuffer:
        """An `AlignedBuffer` with the fields of a `BufferT`."""
        return with_members(cls, dict(members(buffer)))

    def Pack(self, builder: Any) -> int:  # noqa: N802
        """Write the buffer with its bytes aligned. The library defines the name of this method."""
        builder.least_alignment = ALIGNMENT
        try:
            return int(generated.BufferT.Pack(self, builder))
        finally:
            builder.least_alignment = 1


class Builder(flatbuffers.Builder):  # pyright: ignore[reportUntypedBaseClass]
    """Stores equal vectors, strings and tables once, and aligns the bytes of buffers to 16.

    Alignment costs up to 15 bytes per buffer; storing equal parts once saves more, so files do not
    grow. The library defines the method names. least_alignment: alignment, in bytes, of the vectors
    that are written next.
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
        """Finish a table. If an equal table exists, discard this one and refer to that."""
        key = (self._width, *self._fields)
        if key in self._tables:
            self.head = len(self.Bytes) - self._start
            self.nested = False
        else:
            self._tables[key] = super().EndObject()
        return self._tables[key]


def pack(model: Any, at_most: int = 0) -> bytes:
    """The flatbuffer of a `ModelT`, with the bytes of every `AlignedBuffer` at a multiple of 16.

    `at_most`: size in bytes that it should not exceed, if possible. Flatbuffers are built from
    their end, so the length of one with aligned buffers is a multiple of 16 bytes. Building it with
    padding at the end, which is then cut off, makes other lengths possible.
    """
    packed = _build(model, 0)
    if not at_most < len(packed) < at_most + ALIGNMENT:
        return packed
    return min((packed, *(_build(model, n) for n in (4, 8, 12))), key=len)


def _build(model: Any, cut: int) -> bytes:
    """The flatbuffer, built before `cut` bytes of padding that are then cut off."""
    builder: Any = Builder()
    builder.Pad(cut)
    builder.Finish(model.Pack(builder), FILE_IDENTIFIER)
    packed = bytes(builder.Output())
    return packed[: len(packed) - cut]
