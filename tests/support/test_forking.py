"""Children that are copies of one process are as good as children that were started."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tflm_planner.support import children
from tflm_planner.support.children import ChildProcess, start_module
from tflm_planner.support.forking import ForkedProcess, can_fork

ECHO = "tests.support.echo_child"
IMPORTS = (ECHO, "fractions")
needs_fork = pytest.mark.skipif(not can_fork(), reason="processes are not copied here")


@pytest.fixture(params=["copied", "started"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How children are made."""
    if request.param == "started":
        monkeypatch.setattr(children, "can_fork", lambda: False)
    elif not can_fork():
        pytest.skip("processes are not copied here")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return request.param


def start(*arguments: str, errors: Any = subprocess.DEVNULL) -> tuple[ChildProcess, dict[str, Any]]:
    """A child, and what it says of itself."""
    child = start_module([ECHO, *arguments], errors, IMPORTS)
    return child, json.loads(hear(child))


def hear(child: ChildProcess) -> str:
    assert child.stdout is not None
    return child.stdout.readline().decode().strip()


def tell(child: ChildProcess, word: str) -> None:
    assert child.stdin is not None
    child.stdin.write(f"{word}\n".encode())
    child.stdin.flush()


def test_it_has_its_own_arguments_folder_and_environment(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start("warm")[0].kill()  # its server has another folder and environment
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFLM_PLAN_TEST", "set")
    child, about = start("a", "b c")
    assert about["arguments"] == ["a", "b c"]
    assert Path(about["folder"]) == tmp_path and about["variable"] == "set"
    assert about["group"] == about["pid"] != os.getpgid(0)
    assert about["loaded"] == (way == "copied")
    assert isinstance(child, ForkedProcess) == (way == "copied")
    tell(child, "ping")
    assert hear(child) == "PING" and child.poll() is None
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(30) == 0 == child.poll()


@pytest.mark.parametrize(
    "word, code", [("die", -signal.SIGSEGV), ("fail", 1), ("leave", 7)], ids=str
)
def test_its_end_is_told(way: str, word: str, code: int) -> None:
    with tempfile.TemporaryFile() as errors:
        child, _ = start(errors=errors)
        tell(child, word)
        assert child.wait(30) == code and hear(child) == ""
        errors.seek(0)
        assert (b"ValueError: as it was told to" in errors.read()) == (word == "fail")


def test_it_can_be_killed_and_one_does_not_end_another(way: str) -> None:
    one, other = start()[0], start()[0]
    with pytest.raises(subprocess.TimeoutExpired):
        one.wait(0.05)
    one.kill()
    assert one.wait(30) == -signal.SIGKILL
    one.kill()  # it has ended
    tell(other, "on")
    assert hear(other) == "ON"
    assert other.stdin is not None
    other.stdin.close()  # which no later child holds open
    assert other.wait(30) == 0


def test_the_end_of_its_input_is_seen_though_others_were_started_later(way: str) -> None:
    first, _ = start()
    later = [start()[0] for _ in range(3)]
    assert first.stdin is not None
    first.stdin.close()
    assert first.wait(30) == 0
    for child in later:
        child.kill()
        assert child.wait(30) == -signal.SIGKILL


@needs_fork
def test_another_server_takes_the_place_of_one_that_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    child, about = start()
    server = int(Path(f"/proc/{about['pid']}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(server, signal.SIGKILL)
    assert child.wait(30) == -signal.SIGKILL  # nobody knows of it any more
    again, about = start()
    assert about["loaded"]
    again.kill()


@needs_fork
def test_nothing_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from tests.support.test_forking import start; "
        "print(start()[1]['pid'], flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.02)


@needs_fork
def test_a_request_that_is_too_long_starts_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TFLM_PLAN_TEST", "x" * (1 << 16) + "y" * (1 << 15))
    child, about = start("z" * (1 << 16))
    assert not isinstance(child, ForkedProcess) and about["variable"].endswith("y")
    child.kill()


@needs_fork
def test_where_there_can_be_no_server_a_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no sockets here")

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(socket, "socketpair", refuse)
    child = start_module([ECHO], subprocess.DEVNULL, (ECHO, "decimal"))
    assert not isinstance(child, ForkedProcess) and not json.loads(hear(child))["loaded"]
    child.kill()


@needs_fork
@pytest.mark.slow
def test_a_server_that_never_comes_up_holds_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    idle = tmp_path / "idle"
    idle.write_text("#!/bin/sh\nexec sleep 600\n")
    idle.chmod(0o755)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", str(idle))
        child = start_module([ECHO], subprocess.DEVNULL, (ECHO, "colorsys"))
        assert isinstance(child, ForkedProcess)
        child.kill()
        assert child.wait() == -signal.SIGKILL
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    another = start_module([ECHO], subprocess.DEVNULL, (ECHO, "colorsys"))  # by a new server
    assert json.loads(hear(another))
    another.kill()
