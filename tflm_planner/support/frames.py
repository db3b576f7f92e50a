"""Messages between parent and child: a length (8 bytes, little-endian) and a pickle."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import IO, Any


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer of a child whose runtime refused the model."""

    reason: str


_LENGTH = struct.Struct("<Q")


def write_frame(stream: IO[bytes], value: object) -> None:
    """Write one frame and flush it."""
    data = pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Any:
    """The next frame's value; EOFError at the end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)
