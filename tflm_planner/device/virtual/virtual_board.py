"""A virtual board: a pseudo-terminal that speaks the protocol and runs real TFLM.

    host -- /dev/pts/N -- pump -- Receiver -> Responder -> HostEngine -> child process

With it, users can try `measure` and `profile` without hardware, and tests run all host code through
a real serial port. Its latencies are this machine's, which it reports with the flag VIRTUAL.
"""

from __future__ import annotations

import contextlib
import os
import platform
import select
import signal
import threading
import tty
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.framing import Receiver, encode
from tflm_planner.device.virtual.host_runtime import TICK_HZ, HostEngine
from tflm_planner.device.virtual.responder import Engine, Responder
from tflm_planner.support.errors import UsageError
from tflm_planner.support.version import __version__
from tflm_planner.tflm.targets import HOST_RUNTIME

DEFAULT_RAM = 64 << 20
LOG_ROOM = 1 << 16


def virtual_capabilities(
    ram: int = DEFAULT_RAM, models: Mapping[str, bytes] | None = None
) -> m.Capabilities:
    """The capabilities of a virtual board with `ram` bytes for model and arena. models: name ->
    file of each model that is compiled in."""
    return m.Capabilities(
        board="virtual",
        core=platform.machine() or "host",
        kernels="reference",
        tflm="current",
        firmware=f"virtual {__version__}",
        tick_hz=TICK_HZ,
        model_room=ram,
        arena_room=ram // 16 * 16,
        log_room=LOG_ROOM,
        features=m.Feature.VIRTUAL | m.Feature.ALL_OPERATORS | m.Feature.SHARED_STORE,
        target=HOST_RUNTIME,
        clock="host processor time",
        clock_hz=TICK_HZ,
        models=tuple(
            m.Stored(len(data), zlib.crc32(data), name) for name, data in (models or {}).items()
        ),
    )


class VirtualBoard:
    """A virtual board on a pseudo-terminal. `port`: the path that the host opens."""

    def __init__(
        self,
        says: m.Capabilities | None = None,
        engine: Engine | None = None,
        *,
        largest: int = 4096,
        models: Sequence[bytes] = (),
    ) -> None:
        self._wheel = HostEngine() if engine is None else None
        self._engine: Engine = engine or self._wheel or HostEngine()
        self._says, self._largest = says or virtual_capabilities(), largest
        self._models = models
        self._master, self._slave = os.openpty()  # the slave stays open: hosts come and go
        tty.setraw(self._slave)
        os.set_blocking(self._master, True)
        self.port = os.ttyname(self._slave)
        self._stop, self._stopped = os.pipe()
        self._thread: threading.Thread | None = None
        self.reset()

    def reset(self, reason: int = 1) -> None:
        """Reset the board: it then has no session and no model."""
        self._responder = Responder(
            self._engine, self._says, largest=self._largest, reset=reason, models=self._models
        )
        self._receiver = Receiver()

    def serve(self) -> None:
        """Answer requests until `close` is called."""
        while True:
            ready, _, _ = select.select([self._master, self._stop], [], [])
            if self._stop in ready:
                return
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            self._receiver.push(data)
            while (frame := self._receiver.take()) is not None:
                self._responder.bad_frames = self._receiver.bad
                for reply in self._responder.answer(frame):
                    self._write(encode(reply))

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._master, data) :]

    def start(self) -> VirtualBoard:
        """Serve in a thread."""
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving and end TFLM."""
        os.write(self._stopped, b"x")
        if self._thread is not None:
            self._thread.join()
        for descriptor in (self._master, self._slave, self._stop, self._stopped):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        if self._wheel is not None:
            self._wheel.close()

    def __enter__(self) -> VirtualBoard:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def serve_until_interrupted(
    ram: int, models: Mapping[str, bytes], link: Path | None, on_progress: Callable[[str], None]
) -> None:
    """Open a virtual board, report its port, and serve (`tflm-plan virtual-board`). `link`: path of
    a symbolic link to the port, if wanted. Raises UsageError if the link cannot be made."""
    board = VirtualBoard(virtual_capabilities(ram, models), models=tuple(models.values()))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if link is not None:
            _make_link(link, board.port)
        on_progress(str(link or board.port))
        with contextlib.suppress(KeyboardInterrupt):  # the usual way to end it
            board.serve()
    finally:
        if link is not None and link.is_symlink() and str(link.readlink()) == board.port:
            link.unlink()
        board.close()


def _make_link(link: Path, port: str) -> None:
    try:
        if link.is_symlink() and not link.exists():  # left by a virtual board that was killed
            link.unlink()
        link.symlink_to(port)
    except OSError as error:
        raise UsageError(f"cannot make the link {link}: {error.strerror}") from error
