"""Handles signals. A press of Ctrl-C gets a message at once, whatever is running; signals that end
a program end it cleanly.

    searching   1st press  the search ends; the best plan so far is built and proved
                2nd press  asks, as below
    proving     1st press  asks: "press Ctrl-C again to stop without a file"
                next       KeyboardInterrupt
    proved      1st press  further steps of the ladder are skipped, the proved file is written
    SIGTERM, SIGHUP ...  SystemExit: children are ended, temporary files removed

Python runs signal handlers only between bytecodes, so not while compiled code runs. A thread that
the signal wakes through a socket need not wait for that. It must not know searches.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from tflm_planner.support.stopping import Stop

STOPPING = "stopping: keeping the best so far"
STILL = "still stopping; press Ctrl-C again to stop without a file"
PROVING = "proving what was found; press Ctrl-C again to stop without a file"

PROVED = "leaving out further steps: the proved file is written"

_ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGXCPU", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGBREAK")
"""Signals that end a program at once unless it catches them, if the system has them. Signals that
report faults (SIGSEGV) are left out: the process's memory is then already damaged."""


@contextmanager
def ending_in_order() -> Generator[None]:
    """A signal that would end the program raises SystemExit inside, with the exit code that a shell
    reports for that signal. Signals that are ignored (nohup) or already caught stay as they are."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers: list[int] = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    caught = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _: FrameType | None) -> None:
        for ending in caught:  # what is being closed must not be interrupted
            signal.signal(ending, signal.SIG_IGN)
        _say(f"ended by {signal.Signals(number).name}; nothing was written")
        raise SystemExit(128 + number)

    try:
        for number in caught:
            signal.signal(number, end)
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


class Presses:
    """Counts presses of Ctrl-C; the watching thread, the signal handler or both notice a press."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._lock = threading.RLock()
        self._seen = [0, 0]
        self._done = 0
        self._has_asked = self._has_raised = False
        self._gives_up = self._leaves_out = False

    def handle(self, _: int, __: FrameType | None) -> None:
        """The signal handler, in the main thread. It raises KeyboardInterrupt once to skip further
        steps and once to end the program; after that, closing files must not be interrupted."""
        self.notice(0)
        if self._leaves_out and self._stop.is_final:
            self._leaves_out = False
            raise KeyboardInterrupt
        if self._gives_up and not self._has_raised:
            self._has_raised = True
            raise KeyboardInterrupt

    def watch(self, wakeups: socket.socket) -> None:
        """The body of the watching thread: read signals from `wakeups` until that is closed."""
        while byte := wakeups.recv(1):
            before = self._gives_up, self._leaves_out
            if byte[0] == signal.SIGINT:
                self.notice(1)
            after = self._gives_up, self._leaves_out
            if any(after) and after != before:  # the handler may have come too early to know
                _thread.interrupt_main()

    def notice(self, witness: int) -> None:
        """Count a press noticed by the handler (0) or the thread (1). Whichever notices a press
        first acts on it."""
        with self._lock:
            self._seen[witness] += 1
            if self._seen[witness] > self._done:
                self._done += 1
                self._act()

    def _act(self) -> None:
        if self._stop.is_final:
            self._leaves_out = True
            _say(PROVED)
        elif not (self._stop.is_finishing or self._stop.is_over):
            self._stop.interrupt()
            _say(STOPPING)
        elif not self._has_asked:
            self._has_asked = True
            _say(PROVING if self._stop.is_finishing else STILL)
        else:
            self._gives_up = True


def _say(message: str) -> None:
    """Write to stderr without Python's buffers, which may be half written when a signal comes."""
    with contextlib.suppress(OSError):
        os.write(2, f"\ntflm-plan: {message}\n".encode())


@contextmanager
def stop_on_ctrl_c(stop: Stop) -> Generator[None]:
    """A context in which Ctrl-C ends the search by `stop` instead of the program. It changes
    nothing if the caller handles Ctrl-C, or if it is entered outside the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    presses = Presses(stop)
    signal.signal(signal.SIGINT, presses.handle)
    try:
        with _waking(presses):
            yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _waking(presses: Presses) -> Generator[None]:
    """Runs a thread that notices presses even while the main thread is busy in compiled code. If
    something else (the event loop of a notebook) is already woken by signals, that is left as it
    is, and the handler alone notices presses."""
    inner, outer = socket.socketpair()
    inner.setblocking(False)
    previous = signal.set_wakeup_fd(inner.fileno(), warn_on_full_buffer=False)
    if previous != -1:
        signal.set_wakeup_fd(previous)
    thread = threading.Thread(target=presses.watch, args=(outer,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        inner.close()  # ends the thread
        thread.join()
        outer.close()
