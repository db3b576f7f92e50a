"""Boards that reset, hang, work for ever, or are unplugged: a clear DeviceError or a repeat that
nobody notices, never a hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

import pytest

from tests.device.faulty_boards import QUICK, Setup, opened, whole_job
from tests.device.proxy import Fake
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.framing import Frame, encode
from tflm_planner.device.protocol.line import LineError
from tflm_planner.device.protocol.link import BoardResetError, NoAnswerError
from tflm_planner.device.protocol.station import Station
from tflm_planner.support.errors import DeviceError


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


@pytest.mark.slow
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
