"""Child processes that Ctrl-C does not reach: a terminal interrupts every process in the
foreground, but only the parent should decide what happens to its children."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, Protocol

from tflm_planner.support.forking import can_fork, fork_module


class ChildProcess(Protocol):
    """The part of `subprocess.Popen` with which a parent controls a child process."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """The pipe to the child's stdin."""
        ...

    @property
    def stdout(self) -> IO[bytes] | None:
        """The pipe from the child's stdout."""
        ...

    def poll(self) -> int | None:
        """The child's exit code, negative for a signal; None while the child runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the child to end and return its exit code. Raises subprocess.TimeoutExpired
        after `timeout` seconds."""
        ...

    def kill(self) -> None:
        """End the child at once."""
        ...


def start_module(
    arguments: Sequence[str], errors: int | IO[bytes], imports: Sequence[str] = ()
) -> ChildProcess:
    """Start `python -m ARGUMENTS`, with pipes to its stdin and from its stdout. errors: where its
    stderr goes. imports: modules that take long to import; if the system can fork, children with
    equal `imports` are copies of one process that has imported them."""
    if imports and can_fork():
        child = fork_module(arguments, errors, tuple(imports))
        if child is not None:
            return child
    return _start(arguments, errors)


def _start(arguments: Sequence[str], errors: int | IO[bytes]) -> subprocess.Popen[bytes]:
    command, pipe = [sys.executable, "-m", *arguments], subprocess.PIPE
    if os.name == "posix":
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, process_group=0)
    apart: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, creationflags=apart)
