"""Boards of other versions, and boards that lie: a clear DeviceError, never a wrong figure."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable

import pytest

from tests.device.faulty_boards import Setup, instead, opened, whole_job
from tests.device.proxy import Hook
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.framing import Frame, encode
from tflm_planner.device.protocol.link import BoardRefusedError, NoAnswerError
from tflm_planner.support.errors import DeviceError


def says_version(major: int, minor: int, more: bytes = b"") -> Hook:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != m.Command.HELLO | m.REPLY:
            return None
        payload = bytearray(frame.payload + more)
        payload[4:6] = major, minor
        return [encode(Frame(frame.type, 0, frame.sequence, bytes(payload)))]

    return hook


@pytest.mark.parametrize(("major", "what"), [(0, "flash"), (2, "update tflm-plan")])
def test_another_major_version(setup: Setup, major: int, what: str) -> None:
    with pytest.raises(DeviceError, match=what):
        opened(setup(to_host=says_version(major, 3)))


def test_a_later_minor_version_with_longer_answers(setup: Setup) -> None:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        found = says_version(m.MAJOR, 9, b"more")(frame, count)
        if frame.type in (m.Command.ALLOCATE | m.REPLY, m.Command.MEMORY | m.REPLY):
            return [
                encode(Frame(frame.type, frame.status, frame.sequence, frame.payload + b"more"))
            ]
        return found

    whole_job(opened(setup(to_host=hook)))


def test_a_command_that_older_firmware_lacks(setup: Setup) -> None:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != m.Command.MEMORY:
            return None
        return [encode(Frame(0x6E, 0, frame.sequence, frame.payload))]

    def back(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != 0x6E | m.REPLY:
            return None
        return [
            encode(Frame(m.Command.MEMORY | m.REPLY, frame.status, frame.sequence, frame.payload))
        ]

    board = opened(setup(to_board=hook, to_host=back))
    with pytest.raises(BoardRefusedError, match="flash a newer one"):
        board.memory()


LIES: dict[str, tuple[m.Command, bytes | Callable[[bytes], bytes]]] = {
    "capabilities without end": (m.Command.CAPABILITIES, struct.pack("<HH", 65535, 0)),
    "capabilities from elsewhere": (m.Command.CAPABILITIES, struct.pack("<HH", 9, 5)),
    "a capability cut off": (m.Command.CAPABILITIES, struct.pack("<HH", 9, 0) + b"\x01\xff1"),
    "none of the required ones": (m.Command.CAPABILITIES, struct.pack("<HH", 0, 0)),
    "no ticks": (m.Command.CAPABILITIES, lambda p: p.replace(m.U32.pack(100_000_000), bytes(4))),
    "chunks of nothing": (m.Command.MODEL_BEGIN, struct.pack("<HH", 0, 0)),
    "half a chunk": (m.Command.MODEL_CHUNK, struct.pack("<I", 7)),
    "another model": (m.Command.MODEL_END, struct.pack("<II", 7, 7)),
    "another arena": (m.Command.ARENA, lambda p: struct.pack("<I", 1999)),
    "short answers": (m.Command.ALLOCATE, lambda p: p[:20]),
    "a smallest arena larger than all": (
        m.Command.ALLOCATE, lambda p: p[:16] + struct.pack("<I", 1 << 30) + p[20:]),
    "more runs than asked": (m.Command.INVOKE, lambda p: b"\xff\x00" + p[2:]),
    "no run": (m.Command.INVOKE, lambda p: b"\0\0" + p[2:]),
    "outputs that are not there": (m.Command.INVOKE, lambda p: p[:2] + b"\xff\xff" + p[4:]),
    "a log of four thousand million": (
        m.Command.LOG, lambda p: struct.pack("<I", 0xFFFFFFFE) + p[4:]),
    "a log without end": (m.Command.LOG, lambda p: struct.pack("<I", 100_000) + p[4:8]),
    "a log from elsewhere": (m.Command.LOG, lambda p: p[:4] + struct.pack("<I", 3) + p[8:]),
    "a larger output": (m.Command.OUTPUT, lambda p: struct.pack("<I", 1 << 31) + p[4:]),
    "a smaller output": (m.Command.OUTPUT, lambda p: struct.pack("<I", 3) + p[4:]),
    "more data than the output has": (m.Command.OUTPUT, lambda p: p + b"more"),
    "no data": (m.Command.OUTPUT, lambda p: p[:12]),
    "another output": (m.Command.OUTPUT, lambda p: p[:-1] + bytes((p[-1] ^ 1,))),
    "another input": (m.Command.INPUT, struct.pack("<I", 5)),
    "no memory": (m.Command.MEMORY, b""),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_device_that_lies(setup: Setup, name: str) -> None:
    with pytest.raises(DeviceError, match="contradicts") as caught:
        whole_job(opened(setup(to_host=instead(*LIES[name]))))
    assert caught.value.exit_code == 6


def test_a_length_that_lies(setup: Setup) -> None:
    """A frame whose length field is wrong is damaged, whoever made it."""

    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != m.Command.MEMORY | m.REPLY:
            return None
        from tests.device.make_vectors import body, wire

        return [wire(body(frame.type, 0, frame.sequence, frame.payload, 4000))]

    with pytest.raises(NoAnswerError, match="damaged frames"):
        whole_job(opened(setup(to_host=hook)))


def test_messages_are_for_people(setup: Setup) -> None:
    """One sentence with a capital-free start and no Python in it."""
    for fault, hook in LIES.items():
        with pytest.raises(DeviceError) as caught:
            whole_job(opened(setup(to_host=instead(*hook))))
        assert not re.search(r"Error\(|Traceback|struct|<", str(caught.value)), fault
