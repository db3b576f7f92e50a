"""Packs and unpacks the contents of frames: commands, errors, capabilities (sections 2 to 5 of
schema/protocol.md).

It knows only layouts, and must not know lines, time or retries.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

Layout = struct.Struct
MAGIC = 0x4D4C4654
MAJOR, MINOR = 1, 0
UNKNOWN = 0xFFFFFFFF
REPLY = 0x80
DONE, WORKING, FIRST_ERROR = 0, 1, 0x10


class Command(IntEnum):
    """Types of requests."""

    HELLO = 0x01
    CAPABILITIES = 0x02
    MODEL_BEGIN = 0x10
    MODEL_CHUNK = 0x11
    MODEL_END = 0x12
    MODEL_SELECT = 0x13
    ARENA = 0x20
    ALLOCATE = 0x21
    TENSOR = 0x22
    INPUT = 0x23
    INVOKE = 0x24
    LOG = 0x25
    OUTPUT = 0x26
    MEMORY = 0x27


class Error(IntEnum):
    """Statuses of error replies."""

    UNKNOWN_COMMAND = 0x10
    BAD_LENGTH = 0x11
    BAD_VALUE = 0x12
    NO_SESSION = 0x13
    BAD_STATE = 0x14
    MODEL_TOO_BIG = 0x20
    MODEL_DAMAGED = 0x21
    MODEL_UNSUPPORTED = 0x22
    OPERATOR_MISSING = 0x23
    ARENA_TOO_BIG = 0x24
    ALLOCATE_FAILED = 0x25
    INVOKE_FAILED = 0x26
    TYPE_UNSUPPORTED = 0x27
    INTERNAL = 0x2F


class AllocateFlag(IntFlag):
    """Flags of an ALLOCATE request. In its reply, bit 0 says that the lean library is in use."""

    SMALLEST = 1
    LEAN = 2


class InvokeFlag(IntFlag):
    """Flags of an INVOKE request."""

    FILL = 1
    LOG = 2
    OPERATORS = 4


class Feature(IntFlag):
    """Flags of the capability FLAGS."""

    LEAN = 1
    OPERATORS = 2
    STACK = 4
    VIRTUAL = 8
    ALL_OPERATORS = 16
    SHARED_STORE = 32


class Tag(IntEnum):
    """Tags of capability items."""

    BOARD = 0x01
    CORE = 0x02
    KERNELS = 0x03
    TFLM = 0x04
    FIRMWARE = 0x05
    TARGET = 0x06
    CLOCK = 0x07
    CLOCK_HZ = 0x10
    TICK_HZ = 0x11
    MODEL_ROOM = 0x12
    ARENA_ROOM = 0x13
    FREE_RAM = 0x14
    STATIC_RAM = 0x15
    LOG_ROOM = 0x16
    FLAGS = 0x17
    MODEL = 0x20
    OPERATOR = 0x21


HELLO = struct.Struct("<IBBHI")
"""magic, major, minor, max_payload, nonce"""
HELLO_REPLY = struct.Struct("<IBBHIB3x")
"""magic, major, minor, max_payload, nonce, reset"""
ITEMS = struct.Struct("<HH")
"""total, first"""
SIZE_CRC = struct.Struct("<II")
CHUNK_SIZE = struct.Struct("<HH")
INDEX = struct.Struct("<HH")
U16 = struct.Struct("<H")
U32 = struct.Struct("<I")
ALLOCATE = struct.Struct("<HHI")
"""flags, step, lowest"""
ALLOCATE_REPLY = struct.Struct("<IIIIIIIHHHH")
"""arena, used, head, tail, smallest, ticks, stack, inputs, outputs, flags, trials"""
TENSOR = struct.Struct("<BBH")
"""which, reserved, index"""
TENSOR_REPLY = struct.Struct("<BBHI")
"""type, rank, reserved, size; then rank times i32"""
PART = struct.Struct("<HHI")
"""index, reserved, offset"""
INVOKE = struct.Struct("<HHI")
"""flags, count, seed"""
INVOKE_REPLY = struct.Struct("<HHIII")
"""runs, outputs, events, entries, stack; then outputs times u32"""
LOG_REPLY = struct.Struct("<II")
"""entries, first; then u32 each"""
OUTPUT_REPLY = struct.Struct("<III")
"""size, crc, offset; then bytes"""
MEMORY_REPLY = struct.Struct("<IIIIIIII")
PROGRESS = struct.Struct("<II")
"""done, total"""

RESETS = {0: "unknown", 1: "power or pin", 2: "watchdog", 3: "fault"}
_TEXTS = frozenset(
    (Tag.BOARD, Tag.CORE, Tag.KERNELS, Tag.TFLM, Tag.FIRMWARE, Tag.TARGET, Tag.CLOCK)
)
_REQUIRED = (
    Tag.BOARD, Tag.CORE, Tag.KERNELS, Tag.TFLM, Tag.FIRMWARE, Tag.TICK_HZ, Tag.MODEL_ROOM,
    Tag.ARENA_ROOM, Tag.LOG_ROOM, Tag.FLAGS,
)  # fmt: skip


class MessageError(Exception):
    """A payload does not have the layout of its kind."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A model that is compiled into the firmware. size: bytes."""

    size: int
    crc: int
    name: str


@dataclass(frozen=True)
class Capabilities:
    """What a board reports about itself. model_room, arena_room, log_room: the largest model and
    arena in bytes, and the largest log in entries. free_ram, static_ram: bytes. None if it does not
    report a value."""

    board: str
    core: str
    kernels: str
    tflm: str
    firmware: str
    tick_hz: int
    model_room: int
    arena_room: int
    log_room: int
    features: Feature
    target: str = ""
    clock: str = ""
    clock_hz: int | None = None
    free_ram: int | None = None
    static_ram: int | None = None
    models: tuple[Stored, ...] = ()
    operators: tuple[str, ...] = ()

    @property
    def virtual(self) -> bool:
        """Whether the board is virtual, so that its latencies are those of the host."""
        return Feature.VIRTUAL in self.features

    def knows(self, operator: str) -> bool:
        """Whether an operator is registered."""
        return Feature.ALL_OPERATORS in self.features or operator in self.operators


@dataclass
class _ItemFormat:
    texts: dict[int, str] = field(default_factory=dict[int, str])
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    models: list[Stored] = field(default_factory=list[Stored])
    operators: list[str] = field(default_factory=list[str])

    def add(self, tag: int, value: bytes) -> None:
        if tag in _TEXTS:
            self.texts[tag] = _text(value)
        elif tag == Tag.OPERATOR:
            self.operators.append(_text(value))
        elif tag == Tag.MODEL:
            size, crc = unpack(SIZE_CRC, value)
            self.models.append(Stored(size, crc, _text(value[SIZE_CRC.size :])))
        elif tag in set(Tag):
            (self.numbers[tag],) = unpack(U32, value)


def capabilities(items: Sequence[tuple[int, bytes]]) -> Capabilities:
    """The capabilities that items describe. Raises MessageError if a required item is missing."""
    fields = _ItemFormat()
    for tag, value in items:
        fields.add(tag, value)
    for tag in _REQUIRED:
        if tag not in fields.texts and tag not in fields.numbers:
            raise MessageError(f"the capability report has no {tag.name}")
    t, n = fields.texts, fields.numbers
    if n[Tag.TICK_HZ] == 0:
        raise MessageError("the capability report says 0 ticks a second")
    return Capabilities(
        board=t[Tag.BOARD],
        core=t[Tag.CORE],
        kernels=t[Tag.KERNELS],
        tflm=t[Tag.TFLM],
        firmware=t[Tag.FIRMWARE],
        tick_hz=n[Tag.TICK_HZ],
        model_room=n[Tag.MODEL_ROOM],
        arena_room=n[Tag.ARENA_ROOM],
        log_room=n[Tag.LOG_ROOM],
        features=Feature(n[Tag.FLAGS] & 63),
        target=t.get(Tag.TARGET, ""),
        clock=t.get(Tag.CLOCK, ""),
        clock_hz=n.get(Tag.CLOCK_HZ),
        free_ram=n.get(Tag.FREE_RAM),
        static_ram=n.get(Tag.STATIC_RAM),
        models=tuple(fields.models),
        operators=tuple(fields.operators),
    )


def items_of(board: Capabilities) -> list[tuple[int, bytes]]:
    """The items that describe the capabilities of a board."""
    texts = {
        Tag.BOARD: board.board, Tag.CORE: board.core, Tag.KERNELS: board.kernels,
        Tag.TFLM: board.tflm, Tag.FIRMWARE: board.firmware, Tag.TARGET: board.target,
        Tag.CLOCK: board.clock,
    }  # fmt: skip
    numbers = {
        Tag.CLOCK_HZ: board.clock_hz, Tag.TICK_HZ: board.tick_hz, Tag.MODEL_ROOM: board.model_room,
        Tag.ARENA_ROOM: board.arena_room, Tag.FREE_RAM: board.free_ram,
        Tag.STATIC_RAM: board.static_ram, Tag.LOG_ROOM: board.log_room,
        Tag.FLAGS: int(board.features),
    }  # fmt: skip
    items: list[tuple[int, bytes]] = [(t, v.encode()) for t, v in texts.items() if v]
    items += [(t, U32.pack(v)) for t, v in numbers.items() if v is not None]
    items += [(Tag.MODEL, SIZE_CRC.pack(m.size, m.crc) + m.name.encode()) for m in board.models]
    return items + [(Tag.OPERATOR, name.encode()) for name in board.operators]


def pack_items(items: Sequence[tuple[int, bytes]], first: int, room: int) -> bytes:
    """The payload of a CAPABILITIES reply of at most `room` bytes, from item `first` on."""
    payload = ITEMS.pack(len(items), first)
    for tag, value in items[first:]:
        if len(payload) + 2 + len(value) > room:
            break
        payload += bytes((tag, len(value))) + value
    return payload


def unpack_items(payload: bytes) -> tuple[int, int, list[tuple[int, bytes]]]:
    """total, first and the items of a CAPABILITIES reply. Raises MessageError."""
    total, first = unpack(ITEMS, payload)
    items: list[tuple[int, bytes]] = []
    at = ITEMS.size
    while at < len(payload):
        value = payload[at + 2 : at + 2 + payload[at + 1]] if at + 1 < len(payload) else b""
        if at + 1 >= len(payload) or len(value) != payload[at + 1]:
            raise MessageError("a capability item is cut off")
        items.append((payload[at], value))
        at += 2 + len(value)
    return total, first, items


def unpack(layout: struct.Struct, payload: bytes) -> tuple[int, ...]:
    """The fields at the start of a payload. Bytes after them belong to later versions and are
    ignored. Raises MessageError if it is too short."""
    if len(payload) < layout.size:
        raise MessageError(f"a payload of {len(payload)} bytes, where {layout.size} are due")
    return layout.unpack_from(payload)


def words(payload: bytes, count: int | None = None) -> tuple[int, ...]:
    """The u32 numbers of a payload: `count` of them, or all. Raises MessageError if they are cut
    off."""
    available = len(payload) // 4 if count is None else count
    if len(payload) < 4 * available or (count is None and len(payload) % 4):
        raise MessageError("a list of numbers is cut off")
    return struct.unpack_from(f"<{available}I", payload)


def error_payload(detail: int, text: str = "") -> bytes:
    """The payload of an error reply."""
    return U32.pack(detail) + text.encode()[:100]


def read_error(payload: bytes) -> tuple[int, str]:
    """Detail and text of an error reply; (0, "") if it is too short."""
    if len(payload) < U32.size:
        return 0, ""
    return U32.unpack_from(payload)[0], _text(payload[U32.size :])


def _text(data: bytes) -> str:
    """Text that a board sent, without characters that could move a terminal's cursor."""
    text = data.decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in text)
