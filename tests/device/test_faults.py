"""A board whose line loses, damages or repeats frames, that is none, or that refuses: a clear
DeviceError (exit code 6), or a repeat that nobody notices; never a hang, never a wrong figure."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable

import pytest

from tests.device.faulty_boards import MODEL, Setup, opened, whole_job
from tests.device.proxy import Fake, Hook
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.framing import Frame, encode
from tflm_planner.device.protocol.line import LineError, SerialLine
from tflm_planner.device.protocol.link import BoardRefusedError, NoAnswerError, Timing
from tflm_planner.device.virtual.responder import RefusedRequest
from tflm_planner.support.errors import DeviceError


def test_nothing_wrong(setup: Setup) -> None:
    board = opened(setup())
    whole_job(board)
    assert board.link.repeated == 0


@pytest.mark.parametrize("largest", [128, 129, 257, 1024, 4096])
def test_boards_with_buffers_of_any_size(setup: Setup, largest: int) -> None:
    whole_job(opened(setup(largest=largest)))


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
@pytest.mark.mostly_slow(fast=3)
def test_spoiled_frames_are_asked_again(setup: Setup, engine: Fake, way: str, name: str) -> None:
    board = opened(setup(**{way: once_each(SPOILED[name])}))
    whole_job(board)
    assert engine.loads == 4  # no command was done twice, whatever was repeated


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("refusal", "what"),
    [
        (RefusedRequest(m.Error.OPERATOR_MISSING, 0, "SOFTMAX"), "SOFTMAX is not registered"),
        (
            RefusedRequest(m.Error.ALLOCATE_FAILED, 2000),
            "AllocateTensors failed in an arena of 2,000",
        ),
        (RefusedRequest(m.Error.MODEL_UNSUPPORTED, 4), "does not take the model"),
        (RefusedRequest(m.Error.INTERNAL, 3, "\x1b[2Jheap"), "heap"),
    ],
)
def test_allocating_fails(setup: Setup, engine: Fake, refusal: RefusedRequest, what: str) -> None:
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
