"""Frames on a serial line: COBS, length, CRC-32. Section 1 of schema/protocol.md.

    wire     00 | COBS( frame ) | 00
    frame    type u8 | status u8 | sequence u16 | length u16 | payload | crc u32

It must not know what types and payloads mean, nor where bytes come from.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from dataclasses import dataclass, field

from cobs import cobs

_HEADER = struct.Struct("<BBHH")
_CRC = struct.Struct("<I")
OVERHEAD = _HEADER.size + _CRC.size
MOST_PAYLOAD = 4096
"""The most bytes of payload in any frame."""
FIRST_PAYLOAD = 128
"""Bytes of payload that every receiver accepts before HELLO has agreed on more."""


class BadFrameError(Exception):
    """The bytes between two zeros are not a valid frame; the text says why."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame. type: type of the request, plus 0x80 in replies. status: 0 in requests. sequence: a
    number from 0 to 65535."""

    type: int
    status: int
    sequence: int
    payload: bytes = b""


def encode(frame: Frame) -> bytes:
    """The frame on the wire, with the zeros around it. Raises ValueError if it is too long."""
    if len(frame.payload) > MOST_PAYLOAD:
        raise ValueError(f"a payload of {len(frame.payload)} bytes; {MOST_PAYLOAD} is the most")
    head = _HEADER.pack(frame.type, frame.status, frame.sequence, len(frame.payload))
    body = head + frame.payload
    return b"\0" + cobs.encode(body + _CRC.pack(zlib.crc32(body))) + b"\0"


def decode(encoded: bytes) -> Frame:
    """The frame whose bytes between the zeros are `encoded`. Raises BadFrameError."""
    try:
        data = cobs.decode(encoded)
    except cobs.DecodeError as error:
        raise BadFrameError(f"it is not in COBS: {error}") from error
    if len(data) < OVERHEAD:
        raise BadFrameError(f"{len(data)} bytes are no frame")
    kind, status, sequence, length = _HEADER.unpack_from(data)
    if length != len(data) - OVERHEAD:
        raise BadFrameError(f"says {length} bytes of payload and has {len(data) - OVERHEAD}")
    body, (crc,) = data[: -_CRC.size], _CRC.unpack(data[-_CRC.size :])
    if zlib.crc32(body) != crc:
        raise BadFrameError("its CRC is wrong")
    return Frame(kind, status, sequence, body[_HEADER.size :])


@dataclass
class Receiver:
    """Finds frames in a stream that arrives in pieces of any size.

    bad: how many times the bytes between zeros were not a valid frame. noise: how many bytes these
    were. last: why the last of them was not valid.
    """

    bad: int = 0
    noise: int = 0
    last: str = ""
    _pending: bytearray = field(default_factory=bytearray)
    _skipping: bool = False
    _found: deque[Frame] = field(default_factory=deque[Frame])

    def take(self) -> Frame | None:
        """The next complete frame, or None."""
        return self._found.popleft() if self._found else None

    def push(self, data: bytes) -> None:
        """Add received bytes."""
        self._pending += data
        if b"\0" in data:
            *complete, unfinished = bytes(self._pending).split(b"\0")
            self._pending = bytearray(unfinished)
            for encoded in complete:
                self._end(encoded)
        if len(self._pending) > _LONGEST:  # without a zero by now, it cannot be a frame
            self.noise += len(self._pending)
            self._pending.clear()
            self._skipping = True

    def _end(self, encoded: bytes) -> None:
        skipped, self._skipping = self._skipping, False
        if not encoded and not skipped:
            return
        try:
            if skipped:
                raise BadFrameError("it is longer than any frame")
            self._found.append(decode(encoded))
        except BadFrameError as error:
            self._drop(len(encoded), str(error))

    def _drop(self, count: int, why: str) -> None:
        self.bad, self.noise, self.last = self.bad + 1, self.noise + count, why

    @property
    def silent(self) -> bool:
        """Whether every received byte was part of a valid frame."""
        return self.noise == 0 and not self._pending


_LONGEST = len(cobs.encode(bytes([1]) * (MOST_PAYLOAD + OVERHEAD)))
