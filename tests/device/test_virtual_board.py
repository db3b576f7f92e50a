"""The virtual board as users start it, TFLM dying behind it, and the commands' exit codes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.command import Run
from tests.conftest import CNN, ROOT, needs_tflm
from tests.device.proxy import Fake, Proxy
from tests.fuzz.shell import call
from tests.processes import kill_children, posix_only, started_children  # noqa: F401 (a fixture)
from tflm_planner.device.protocol import line, station
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.framing import Frame
from tflm_planner.device.virtual.host_runtime import HostEngine
from tflm_planner.device.virtual.responder import RefusedRequest
from tflm_planner.device.virtual.virtual_board import VirtualBoard, virtual_capabilities
from tflm_planner.tflm.targets import load_target

COMMAND = [sys.executable, "-c", "from tflm_planner.cli.app import main; main()"]


@needs_tflm
@pytest.mark.slow
def test_two_processes_and_a_serial_port_between_them(tmp_path: Path) -> None:
    link = tmp_path / "board"
    link.symlink_to(tmp_path / "gone")  # left by one that was killed
    board = subprocess.Popen(
        [*COMMAND, "virtual-board", "--link", link, "--ram", "1M"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert board.stdout is not None
        assert board.stdout.readline().decode().strip() == str(link)
        for _ in range(2):  # hosts come and go
            done = call(["measure", str(CNN), "-p", str(link), "--runs", "1"])
            assert done.returncode == 0, done.stderr
            assert "equal to TFLM here" in done.stdout
    finally:
        board.send_signal(signal.SIGTERM)
        _, said = board.communicate(timeout=20)
    assert (board.returncode, said) == (0, b"")
    assert not link.is_symlink()


@needs_tflm
@posix_only
@pytest.mark.usefixtures("started_children")
def test_tflm_ends_its_process_and_the_board_goes_on() -> None:
    engine, data = HostEngine(), CNN.read_bytes()
    engine.load(data, 1 << 20)
    assert kill_children("-m tflm_planner.device.virtual.host_runtime_worker") == 1
    with pytest.raises(RefusedRequest) as caught:
        engine.run(engine.fill(1), 0)
    assert caught.value.code == m.Error.INVOKE_FAILED
    assert engine.load(data, 1 << 20).head == 99_072
    with pytest.raises(RefusedRequest) as caught:
        engine.load(data, 20_000)
    assert caught.value.code == m.Error.ALLOCATE_FAILED
    with pytest.raises(RefusedRequest) as caught:
        engine.load(data[:200], 1 << 20)
    assert caught.value.code == m.Error.MODEL_UNSUPPORTED
    engine.close()


@pytest.mark.parametrize("fault", ["hang", "garbage", "silence", "unplugged", "no room", "lies"])
@pytest.mark.mostly_slow(fast=1)
def test_exit_code_6_and_one_line(
    fault: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(station, "reopen", lambda port, baud, _: line.reopen(port, baud, 0.3))
    engine = Fake()
    gate = threading.Event()
    if fault == "hang":
        engine.fits = lambda data, arena: gate.wait(8)

    def to_host(frame: Frame, count: int) -> list[bytes] | None:
        if fault == "garbage":
            return [b"\xff" * 50 + b"login: "]
        if fault == "silence":
            return []
        if fault == "unplugged" and frame.type == m.Command.MODEL_CHUNK | m.REPLY:
            proxy.unplug()
        if fault == "lies" and frame.type == m.Command.ARENA | m.REPLY:
            return []
        return None

    expected = {
        "garbage": "wrong --baud, or another device",
        "silence": "nothing answers",
        "unplugged": "unplugged|no such port",
        "hang": "no progress",
        "no room": "room for 1,000",
        "lies": "no answer to ARENA",
    }[fault]
    says = virtual_capabilities(1000 if fault == "no room" else 1 << 20)
    with VirtualBoard(says, engine) as board, Proxy(board, to_host=to_host) as proxy:
        done = Run(["measure", CNN, "-p", proxy.port, "--timeout", "0.5"], capsys)
        gate.set()
        assert re.search(expected, done.refused(6))


def test_operators_that_the_board_says_are_printable() -> None:
    found = m.capabilities(
        [
            *m.items_of(virtual_capabilities()),
            (m.Tag.BOARD, b"\x1b[2Jboard\n"),
            (m.Tag.OPERATOR, b"A\x07"),
        ]
    )
    assert found.board == "?[2Jboard?"
    assert found.operators == ("A?",)


def test_a_target_file_states_a_boards_power(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[target]\nbase = "cortex-m4/cmsis-nn"\n[board]\nid = "mine"\nname = "Mine"\n'
        "sram = 1\nflash = 1\nclock = 1\nactive_microwatts = 42000\n"
    )
    board = load_target(path).board
    assert board is not None
    assert board.active_microwatts == 42_000


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; import tflm_planner.cli.app; "
        "print([n for n in ('numpy', 'serial', 'sqlite3', 'ai_edge_litert') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_ports_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert Run(["ports"], capsys).code == 0
