"""Child processes of the one that runs the tests, found in /proc as any observer finds them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest


@pytest.fixture
def started_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children are started, not copied, so that each has a command line of its own."""
    monkeypatch.setattr("tflm_planner.support.children.can_fork", lambda: False)


posix_only = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


def children(command: str) -> list[int]:
    """Those whose command line holds `command`, and that have not ended."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it ended meanwhile
            continue
        if int(parent) == os.getpid() and state != "Z" and command in line:
            found.append(int(entry.name))
    return found


def kill_children(command: str, how: signal.Signals = signal.SIGKILL) -> int:
    """End them, and wait until they have ended; how many there were."""
    pids = children(command)
    for pid in pids:
        os.kill(pid, how)
    while set(pids) & set(children(command)):
        time.sleep(0.01)
    return len(pids)
