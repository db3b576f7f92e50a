"""The host's own code against the firmware's own session, through a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import struct
import subprocess
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.arduino import build
from tflm_planner.device.protocol import board as boards
from tflm_planner.device.protocol import line as lines

pytestmark = pytest.mark.skipif(build.compiler() is None, reason="there is no g++ here")


def fake_model(need: int, flags: int = 0) -> bytes:
    """As in fakes.h."""
    return b"FAKE" + struct.pack("<IIB3x", 3, need, flags)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.build("serve", tmp_path_factory.mktemp("serve"))


@pytest.fixture
def board(program: Path) -> Iterator[Any]:
    ours, theirs = pty.openpty()
    tty.setraw(ours)
    tty.setraw(theirs)
    process = subprocess.Popen([str(program)], stdin=ours, stdout=ours)
    os.close(ours)
    try:
        yield boards.connect(lines.SerialLine(os.ttyname(theirs)))
    finally:
        process.kill()
        process.wait()
        os.close(theirs)


@pytest.mark.slow
def test_a_whole_measurement(board: Any) -> None:
    assert board.says.board == "fake" and board.says.kernels == "fake"
    assert "A custom operator" in board.says.operators
    board.upload(fake_model(1000))
    assert board.arena() == (1 << 16) - 16
    found = board.allocate(smallest=True, step=1)
    assert (found.smallest, found.used, found.inputs, found.outputs) == (1000, 1000, 2, 1)
    assert board.allocate(smallest=True, step=1, lean=True).smallest == 900
    assert board.tensor(False, 0).shape == (5,)
    board.set_inputs([bytes([1, 2, 3, 4, 5]), bytes(8)])
    ran = board.invoke(1, log=True, operators=True)
    assert (ran.runs, ran.events, ran.entries) == (1, 6, 7)
    assert len(board.log()) == 7
    assert board.output(0, 5) == bytes([0, 255, 254, 253, 252])
    assert board.memory().stack_invoke == 777


@pytest.mark.slow
def test_state_is_carried_from_invoke_to_invoke(board: Any) -> None:
    """The made-up model counts its runs; what counts here is who resets the count."""
    board.upload(fake_model(1000))
    board.arena()
    for _ in range(2):
        board.allocate()
        for run in range(1, 5):
            board.set_inputs([bytes([run] * 5), bytes(8)])
            board.invoke()
            assert board.output(0, 5) == bytes(5)
    board.set_inputs([bytes(5), bytes(8)])
    board.invoke()
    assert board.output(0, 5) == bytes([5] * 5)


@pytest.mark.slow
def test_errors_reach_the_host(board: Any) -> None:
    from tflm_planner.support.errors import DeviceError

    with pytest.raises(DeviceError):
        board.upload(bytes(1 << 17))
    board.upload(fake_model(1000, flags=1))
    board.arena()
    with pytest.raises(DeviceError, match="SVDF"):
        board.allocate()
    board.select(0, fake_model(500))
    board.arena(499)
    with pytest.raises(DeviceError):
        board.allocate()
    board.arena(500)
    assert board.allocate().arena == 500
