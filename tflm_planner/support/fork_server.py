"""The process that forks each child: `python -m tflm_planner.support.fork_server SOCKET MODULES`;
see `forking`."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field

from tflm_planner.support.forking import EXIT_CODE, MOST_BYTES, KillRequest, StartRequest


@dataclass
class _Children:
    """Children that have not ended. status: token -> descriptor of the pipe from which the parent
    reads the exit code; pids: token -> process id."""

    status: dict[int, int] = field(default_factory=dict[int, int])
    pids: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, token: int, pid: int, status: int) -> None:
        """Register a child that was started."""
        self.status[token], self.pids[token] = status, pid

    def reap(self) -> None:
        """Send the parent the exit codes of children that have ended."""
        for token, pid in list(self.pids.items()):
            ended, code = os.waitpid(pid, os.WNOHANG)
            if ended:
                status = self.status.pop(token)
                with contextlib.suppress(OSError):  # the parent no longer listens
                    os.write(status, EXIT_CODE.pack(os.waitstatus_to_exitcode(code)))
                os.close(status)
                del self.pids[token]

    def kill(self, token: int) -> None:
        """End a child unless it has ended already."""
        if token in self.pids:
            os.kill(self.pids[token], signal.SIGKILL)

    def kill_all(self) -> None:
        """End all children."""
        for token in list(self.pids):
            self.kill(token)


def _wake(*_: object) -> None:
    """Does nothing: the handler's existence is enough for the signal to wake the server."""


def _serve(channel: socket.socket) -> StartRequest | None:
    """Serve until the parent ends. Returns None in the server, and in a forked copy the request
    that the copy has to carry out."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    children = _Children()
    while True:
        ready, _, _ = select.select([channel, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            children.reap()
        if channel not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(channel, MOST_BYTES, 4)
        if not message:
            children.kill_all()
            return None
        request: StartRequest | KillRequest = pickle.loads(message)
        if isinstance(request, KillRequest):
            children.kill(request.token)
            continue
        *streams, status = descriptors
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            for descriptor in (wake, waker, status, *children.status.values()):
                os.close(descriptor)
            _become(request, streams)
            return request
        for descriptor in streams:
            os.close(descriptor)
        children.add(request.token, pid, status)


def _become(request: StartRequest, streams: Sequence[int]) -> None:
    """In a forked copy: take the streams, environment, folder and arguments of the request."""
    os.setpgid(0, 0)
    for place, descriptor in enumerate(streams):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request.environment)
    tempfile.tempdir = None  # the new environment decides it
    os.chdir(request.folder)
    sys.argv = list(request.arguments)


def main() -> None:
    """Import the modules and serve; in a forked copy, run the requested module."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        with contextlib.suppress(Exception):  # the child reports the error when it imports it
            importlib.import_module(module)
    request = _serve(channel)
    if request is None:
        os._exit(0)  # at once: a process that waits for the parent need not wait for this one
    importlib.import_module(request.arguments[0]).main()


if __name__ == "__main__":
    main()
