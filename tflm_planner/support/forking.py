"""Children that are forked from one process, which has already imported their modules.

    parent                         `fork_server`                           child
      |-- pickled request, 4 pipes ->|-- fork ----------------------------->| in, out, errors
      |<-- exit code ----------------|<-- SIGCHLD --------------------------|
      |-- end of file -------------->| kills its children, ends

Importing numpy and a runtime takes half a second of processor time; forking a process that has
imported them takes ten milliseconds, and a proof needs four such processes. This works only on
Linux: on other systems forking is unsafe or does not exist. Unlike with `multiprocessing`, the
parent's main module does not run again, so a script needs no `__main__` guard.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

MOST_BYTES = 1 << 17
"""Largest size of a request, which must be sent in one message; a socket takes 200,000 bytes."""
EXIT_CODE = struct.Struct("<i")
_SECONDS_TO_END = 0.2
"""Seconds to wait for a server to end; one without work ends in a few milliseconds."""
_SECONDS_TO_OBEY = 5.0
"""Seconds to wait until a server ends a child. A server that is still importing does so as soon as
it has finished: within a second or two."""
_MODULE = "tflm_planner.support.fork_server"


def can_fork() -> bool:
    """Whether this system can fork children safely."""
    return sys.platform == "linux" and hasattr(socket, "send_fds")


@dataclass(frozen=True)
class StartRequest:
    """A request to start a child. token: identifies the child in later requests."""

    token: int
    arguments: tuple[str, ...]
    environment: dict[str, str]
    folder: str


@dataclass(frozen=True)
class KillRequest:
    """A request to end a child."""

    token: int


class ForkedProcess:
    """A child of a server, as its parent sees it; it has the interface of `subprocess.Popen`."""

    def __init__(
        self, server: _Server, token: int, stdin: IO[bytes], stdout: IO[bytes], status: int
    ) -> None:
        self.stdin, self.stdout = stdin, stdout
        self._server, self._token, self._status = server, token, status
        self._lock = threading.Lock()
        self._code: int | None = None

    def poll(self) -> int | None:
        """The child's exit code, negative for a signal; None while the child runs."""
        with self._lock:
            if self._code is None and select.select([self._status], [], [], 0)[0]:
                data = os.read(self._status, EXIT_CODE.size)
                # If the server was killed, its children were killed too.
                self._code = EXIT_CODE.unpack(data)[0] if data else -signal.SIGKILL
                os.close(self._status)
            return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the child to end and return its exit code. Raises subprocess.TimeoutExpired."""
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            remaining = None if end is None else max(end - time.monotonic(), 0.0)
            with contextlib.suppress(OSError, ValueError):  # closed by another thread's poll
                select.select([self._status], [], [], remaining)
            if end is not None and time.monotonic() >= end and self.poll() is None:
                raise subprocess.TimeoutExpired(_MODULE, timeout or 0.0)
        return code

    def kill(self) -> None:
        """End the child. If the server does not do so within seconds, because it never finished its
        start, the server and all its children are ended."""
        if self.poll() is None:
            self._server.send(KillRequest(self._token), ())
            try:
                self.wait(_SECONDS_TO_OBEY)
            except subprocess.TimeoutExpired:
                self._server.kill()


class _Server:
    """A server that has imported these modules, as the process that started it sees it."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], process_group=0,
                # Threads other than the one that forks do not exist in a forked copy.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )  # fmt: skip
        self._channel, self._lock, self._tokens = ours, threading.Lock(), 0

    @property
    def is_alive(self) -> bool:
        """Whether the server still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Tell the server to end; it ends its children first."""
        self._channel.close()

    def join(self) -> None:
        """Wait until the server has ended."""
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:  # it still imports, and has no children
            self.kill()

    def kill(self) -> None:
        """Kill the server at once, and so its children."""
        self._process.kill()
        self._process.wait()

    def send(self, request: StartRequest | KillRequest, descriptors: Sequence[int]) -> bool:
        """Send a request with descriptors. Returns whether the server accepted it."""
        message = pickle.dumps(request)
        if len(message) > MOST_BYTES:
            return False
        try:
            with self._lock:
                socket.send_fds(self._channel, [message], descriptors)
        except OSError:  # it was killed
            self.kill()
            return False
        return True

    def start(self, arguments: Sequence[str], errors: int) -> ForkedProcess | None:
        """Start a child; None if the server cannot."""
        pipes = [os.pipe() for _ in range(3)]
        (theirs_in, stdin), (stdout, theirs_out), (status, theirs_status) = pipes
        with self._lock:
            self._tokens += 1
            token = self._tokens
        request = StartRequest(token, tuple(arguments), dict(os.environ), str(Path.cwd()))
        was_sent = self.send(request, (theirs_in, theirs_out, errors, theirs_status))
        for descriptor in (theirs_in, theirs_out, theirs_status):
            os.close(descriptor)
        if was_sent:
            streams = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
            return ForkedProcess(self, token, *streams, status)
        for descriptor in (stdin, stdout, status):
            os.close(descriptor)
        return None


@dataclass
class _Servers:
    """The servers of this process, by the modules that they have imported. owner: id of the process
    that started them; a forked copy of that process must not use them."""

    owner: int = 0
    by_modules: dict[tuple[str, ...], _Server] = field(
        default_factory=dict[tuple[str, ...], _Server]
    )
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, modules: tuple[str, ...]) -> _Server:
        """The server that has imported these modules; starts one if there is none."""
        with self.lock:
            if self.owner != os.getpid():
                self.owner, self.by_modules = os.getpid(), {}
            server = self.by_modules.get(modules)
            if server is None or not server.is_alive:
                server = self.by_modules[modules] = _Server(modules)
            return server

    def end(self) -> None:
        """End all servers that this process started."""
        servers = [*self.by_modules.values()] if self.owner == os.getpid() else []
        for server in servers:
            server.close()
        for server in servers:
            server.join()


_servers = _Servers()
atexit.register(_servers.end)


def fork_module(
    arguments: Sequence[str], errors: int | IO[bytes], modules: tuple[str, ...]
) -> ForkedProcess | None:
    """Start `python -m ARGUMENTS` as a copy of a process that has imported `modules`. None if that
    is impossible. errors: where the child's stderr goes, or subprocess.DEVNULL."""
    if errors == subprocess.DEVNULL:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 (a device, not a path)
            return fork_module(arguments, nowhere, modules)
    descriptor = errors if isinstance(errors, int) else errors.fileno()
    with contextlib.suppress(OSError):  # a system may forbid what a server needs
        for _ in range(2):  # the server may have been killed
            child = _servers.of(modules).start(arguments, descriptor)
            if child is not None:
                return child
    return None
