"""Every way a board or its line fails, injected: a clear DeviceError (exit code 6), or a repeat
that nobody notices; never a hang, never a wrong figure."""

from __future__ import annotations

import os
import random
import re
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.device.proxy import Fake, Hook, Proxy
from tflm_planner.device import messages as m
from tflm_planner.device.board import BoardClient, connect
from tflm_planner.device.framing import Frame, encode
from tflm_planner.device.line import LineError, SerialLine
from tflm_planner.device.link import BoardRefusedError, BoardResetError, NoAnswerError, Timing
from tflm_planner.device.responder import Refusal
from tflm_planner.device.station import Station
from tflm_planner.device.virtual_board import VirtualBoard, virtual_capabilities
from tflm_planner.support.errors import DeviceError

QUICK = Timing(answer=0.15, repeats=3, patience=0.4, greeting=0.5)
MODEL = b"\x1c\0\0\0TFL3" + bytes(range(256)) * 40
Setup = Callable[..., Proxy]


@pytest.fixture
def engine() -> Fake:
    return Fake()


@pytest.fixture
def setup(engine: Fake) -> Iterator[Setup]:
    with ExitStack() as stack:

        def make(
            to_board: Hook | None = None,
            to_host: Hook | None = None,
            first: bytes = b"",
            largest: int = 1024,
            ram: int = 1 << 16,
        ) -> Proxy:
            says = virtual_capabilities(ram)
            board = stack.enter_context(VirtualBoard(says, engine, largest=largest))
            return stack.enter_context(Proxy(board, to_board, to_host, first))

        yield make


def opened(proxy: Proxy, timing: Timing = QUICK) -> BoardClient:
    return connect(SerialLine(proxy.port), timing)


def whole_job(board: BoardClient) -> tuple[Any, ...]:
    """All commands; what they find is checked, so that no fault passes unseen."""
    board.upload(MODEL)
    board.arena(0)
    found = board.allocate(smallest=True)
    assert found.smallest == 1008
    board.arena(2000)
    assert (board.allocate().used, board.allocate().arena) == (1000, 2000)
    ran = board.invoke(4, seed=9, log=True)
    assert board.log() == [100, 101, 102, 103]
    assert board.output(0, 12) == bytes(range(20, 8, -1))
    board.set_inputs([bytes(12)])
    board.invoke()
    assert board.output(0, 12) == bytes(12)
    board.memory()
    return ran.crcs


def test_nothing_wrong(setup: Setup) -> None:
    board = opened(setup())
    whole_job(board)
    assert board.link.repeated == 0


@pytest.mark.parametrize("largest", [128, 129, 257, 1024, 4096])
def test_boards_with_buffers_of_any_size(setup: Setup, largest: int) -> None:
    whole_job(opened(setup(largest=largest)))


# --- lost, damaged and repeated frames: nobody notices ----------------------------------------


def once_each(spoil: Callable[[bytes], list[bytes]]) -> Hook:
    """Spoil the first frame of each type."""

    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        return spoil(encode(frame)) if count == 0 else None

    return hook


def flip(data: bytes) -> list[bytes]:
    wrong = bytearray(data)
    wrong[len(data) // 2] ^= 0x04
    return [bytes(wrong)]


SPOILED = {
    "lost": lambda data: [],
    "a wrong bit": flip,
    "cut off": lambda data: [data[: len(data) // 2]],
    "garbage inside": lambda data: [data[:6] + b"\xee\x00\x11" + data[6:]],
    "garbage before": lambda data: [b"\r\nboot: hello \xff\xfe" + data],
    "garbage behind": lambda data: [data + os.urandom(40)],
    "twice": lambda data: [data, data],
    "three times, in pieces": lambda data: [data[:3], data[3:] + data[:5], data[5:], data],
}


@pytest.mark.parametrize("way", ["to_board", "to_host"])
@pytest.mark.parametrize("name", SPOILED)
@pytest.mark.mostly_slow(fast=6)
def test_spoiled_frames_are_asked_again(setup: Setup, engine: Fake, way: str, name: str) -> None:
    board = opened(setup(**{way: once_each(SPOILED[name])}))
    whole_job(board)
    assert engine.loads == 4  # no command was done twice, whatever was repeated


def test_a_bad_line_at_random(setup: Setup, engine: Fake) -> None:
    rng = random.Random(5)

    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if rng.random() < 0.15:
            return SPOILED[rng.choice(list(SPOILED))](encode(frame))
        return None

    board = opened(setup(to_board=hook, to_host=hook), Timing(0.1, 8, 1.0, 2.0))
    whole_job(board)
    assert board.link.repeated > 0
    assert engine.loads == 4


def test_late_answers_are_dropped(setup: Setup) -> None:
    """A reply that comes after its request was repeated must not be taken for the next one's."""
    kept: list[bytes] = []

    def hook(frame: Frame, count: int) -> Iterable[bytes]:
        kept.append(encode(frame))
        return [*kept[-3:-1], kept[-1]]

    whole_job(opened(setup(to_host=hook)))


# --- no board, another device -----------------------------------------------------------------


def test_nothing_answers(setup: Setup) -> None:
    with pytest.raises(NoAnswerError, match="nothing answers"):
        opened(setup(to_board=lambda frame, count: []))


def test_another_device_or_baud(setup: Setup) -> None:
    noise = random.Random(1).randbytes(3000)
    with pytest.raises(NoAnswerError, match=r"bytes but no frames .*baud"):
        opened(setup(to_host=lambda frame, count: [noise], first=noise))


def test_a_device_that_echoes(setup: Setup) -> None:
    with pytest.raises(DeviceError, match=r"nothing answers|no frames"):
        opened(setup(to_host=lambda frame, count: [encode(Frame(1, 0, frame.sequence, b"x" * 12))]))


def test_frames_of_another_make(setup: Setup) -> None:
    def hook(frame: Frame, count: int) -> Iterable[bytes]:
        return [encode(Frame(frame.type, 0, frame.sequence, b"\1\2\3\4" + frame.payload[4:]))]

    with pytest.raises(DeviceError, match="no board of ours"):
        opened(setup(to_host=hook))


def test_no_such_port() -> None:
    with pytest.raises(LineError, match="no such port") as caught:
        SerialLine("/dev/no-such-port")
    assert caught.value.exit_code == 6


# --- versions ---------------------------------------------------------------------------------


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


# --- a device that lies -----------------------------------------------------------------------


def instead(command: m.Command, payload: bytes | Callable[[bytes], bytes]) -> Hook:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != command | m.REPLY or frame.status != m.DONE:
            return None
        said = payload if isinstance(payload, bytes) else payload(frame.payload)
        return [encode(Frame(frame.type, 0, frame.sequence, said))]

    return hook


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


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "what"),
    [
        (Refusal(m.Error.OPERATOR_MISSING, 0, "SOFTMAX"), "SOFTMAX is not registered"),
        (Refusal(m.Error.ALLOCATE_FAILED, 2000), "AllocateTensors failed in an arena of 2,000"),
        (Refusal(m.Error.MODEL_UNSUPPORTED, 4), "does not take the model"),
        (Refusal(m.Error.INTERNAL, 3, "\x1b[2Jheap"), "heap"),
    ],
)
def test_allocating_fails(setup: Setup, engine: Fake, refusal: Refusal, what: str) -> None:
    engine.refuse = refusal
    board = opened(setup())
    with pytest.raises(BoardRefusedError, match=what) as caught:
        whole_job(board)
    assert caught.value.code == refusal.code
    engine.refuse = None
    whole_job(board)  # the board goes on


def test_a_model_too_big(setup: Setup) -> None:
    board = opened(setup(ram=4096))
    with pytest.raises(BoardRefusedError, match=r"room for 4,096 bytes.*tflm-plan export"):
        board.upload(MODEL)


def test_an_error_that_is_not_known_yet(setup: Setup) -> None:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != m.Command.MEMORY | m.REPLY:
            return None
        return [encode(Frame(frame.type, 0x6A, frame.sequence, m.error_payload(5, "new")))]

    with pytest.raises(BoardRefusedError, match=r"error 0x6a, 5 \(new\)"):
        whole_job(opened(setup(to_host=hook)))


# --- resets, plugs, hangs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [m.Command.MODEL_CHUNK, m.Command.ALLOCATE, m.Command.INVOKE, m.Command.LOG]
)
def test_a_reset_is_told(setup: Setup, command: m.Command) -> None:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type == command and count == 0:
            proxy.board.reset()
        return None

    proxy = setup(to_board=hook)
    with pytest.raises(BoardResetError, match="reset"):
        whole_job(opened(proxy))


@pytest.mark.parametrize("command", [m.Command.MODEL_CHUNK, m.Command.INVOKE, m.Command.OUTPUT])
def test_after_a_reset_the_job_is_done_again(setup: Setup, command: m.Command) -> None:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type == command and count == 0:
            proxy.board.reset()
        return None

    proxy = setup(to_board=hook)
    with Station(proxy.port, 115200, QUICK) as station:
        station.run(whole_job)
        assert station.retries == 1


def test_a_board_that_resets_each_time_is_given_up(setup: Setup) -> None:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type == m.Command.INVOKE:
            proxy.board.reset()
        return None

    proxy = setup(to_board=hook)
    with Station(proxy.port, 115200, QUICK) as station, pytest.raises(BoardResetError):
        station.run(whole_job)


@pytest.mark.parametrize("command", [m.Command.HELLO, m.Command.MODEL_CHUNK, m.Command.INVOKE])
def test_unplugged(setup: Setup, command: m.Command) -> None:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type == command:
            proxy.unplug()
        return None

    proxy = setup(to_board=hook)
    station = Station(proxy.port, 115200, QUICK, comes_back=0.3)
    with station, pytest.raises(LineError, match=r"unplugged|no such port"):
        station.run(whole_job)


def test_invoke_that_never_returns(setup: Setup, engine: Fake) -> None:
    gate = threading.Event()
    engine.on_run = lambda: (gate.wait(5), None)[1]
    proxy = setup()
    started = time.monotonic()
    try:
        with pytest.raises(
            NoAnswerError, match=r"INVOKE .* no progress .* Invoke may never return"
        ):
            whole_job(opened(proxy))
        assert time.monotonic() - started < 3
    finally:
        gate.set()


def test_invoke_ended_by_the_watchdog(setup: Setup, engine: Fake) -> None:
    """The board answers HELLO again, and says why it started."""

    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type == m.Command.INVOKE | m.REPLY and frame.status == m.DONE:
            proxy.board.reset(2)
            return []
        return None

    proxy = setup(to_host=hook)
    with pytest.raises(BoardResetError, match="it says: watchdog"):
        whole_job(opened(proxy))


def test_a_slow_board_is_waited_for(setup: Setup, engine: Fake) -> None:
    runs: list[int] = []

    def slowly() -> None:
        runs.append(1)
        time.sleep(0.35)  # longer than an answer may take, not than patience

    engine.on_run = slowly
    board = opened(setup())
    whole_job(board)
    assert len(runs) == 5  # repeats while it worked did not make it work again


@pytest.mark.parametrize("counting", [False, True])
def test_a_board_that_works_for_ever(setup: Setup, counting: bool) -> None:
    """It says so again and again, with and without progress: the host gives up all the same."""
    stop = threading.Event()

    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != m.Command.INVOKE | m.REPLY:
            return None
        if stop.is_set():
            return []
        stop.set()
        done = 0

        def chatter() -> None:
            nonlocal done
            while proxy.alive and done < 400:
                done += 1
                payload = m.PROGRESS.pack(done if counting else 1, m.UNKNOWN)
                proxy.say(encode(Frame(frame.type, m.WORKING, frame.sequence, payload)))
                time.sleep(0.02)

        threading.Thread(target=chatter, daemon=True).start()
        return []

    proxy = setup(to_host=hook)
    started = time.monotonic()
    with pytest.raises(DeviceError, match=r"never end" if counting else r"no progress"):
        whole_job(opened(proxy))
    assert time.monotonic() - started < 4


@pytest.mark.parametrize("total", [4_000_000_000, m.UNKNOWN - 1])
def test_a_board_that_announces_more_steps_than_were_asked_for(setup: Setup, total: int) -> None:
    """It counts, slowly and for decades; the host knows how many runs it wants."""
    sent: list[int] = []

    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != m.Command.INVOKE | m.REPLY:
            return None
        sent.append(1)
        payload = m.PROGRESS.pack(len(sent), total)
        return [encode(Frame(frame.type, m.WORKING, frame.sequence, payload))]

    with pytest.raises(DeviceError, match="would never end") as caught:
        whole_job(opened(setup(to_host=hook)))
    assert f"{total:,} steps" in str(caught.value) and caught.value.exit_code == 6


def test_messages_are_for_people(setup: Setup) -> None:
    """One sentence with a capital-free start and no Python in it."""
    for fault, hook in LIES.items():
        with pytest.raises(DeviceError) as caught:
            whole_job(opened(setup(to_host=instead(*hook))))
        assert not re.search(r"Error\(|Traceback|struct|<", str(caught.value)), fault
