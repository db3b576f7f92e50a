"""Work for engines, as functions of a module: other processes import them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Task:
    """number: squared. deaths: how often the process that does it dies first. folder: where each
    beginning leaves a file, and where a file `go` is waited for if `waits`."""

    number: int
    folder: Path
    deaths: int = 0
    waits: bool = False


def square(task: Task) -> int:
    """The square; ValueError of a negative number."""
    begun = len(list(task.folder.glob(f"begun-{task.number}-*")))
    (task.folder / f"begun-{task.number}-{begun}-{os.getpid()}").touch()
    if begun < task.deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    while task.waits and not (task.folder / "go").exists():
        time.sleep(0.01)
    if task.number < 0:
        raise ValueError("a negative number")
    return task.number**2


def pid_of(name: str) -> int:
    """The process that a file of `square` names."""
    return int(name.rpartition("-")[2])


def nothing_to_send(_: object) -> object:
    """A result that cannot be pickled."""
    return lambda: None


def talkative(number: int) -> int:
    """Prints where results are sent."""
    os.write(1, b"hello\n")
    print("hello", flush=True)
    return number
