"""Shows what is being done. `Progress` is a function that gets a message of a few words; `Spinner`
shows the message on stderr if something takes longer than a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

Progress = Callable[[str], None]
"""A function that gets a message of a few words about what is being done."""

_PATIENCE = 1.0


def silent(_: str) -> None:
    """Progress that shows nothing."""


class Seldom:
    """Passes a message on if at least a second has passed since the one before it that was passed
    on, or since the start. seconds: another time than that."""

    def __init__(self, say: Progress, seconds: float = _PATIENCE) -> None:
        self._say, self._seconds = say, seconds
        self._last = time.monotonic()

    def say(self, message: str) -> None:
        """Pass the message on, or drop it."""
        now = time.monotonic()
        if now - self._last >= self._seconds:
            self._last = now
            self._say(message)


class Spinner:
    """Shows the message given to `say` after the first second, with the time since the start."""

    def __init__(self) -> None:
        self._message = "working"
        self._shown: Any = None
        self._task: Any = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(_PATIENCE, self._show)
        self._timer.daemon = True

    def say(self, message: str) -> None:
        """Show this message from now on."""
        with self._lock:
            self._message = message
            if self._shown is not None:
                self._shown.update(self._task, description=message)

    def _show(self) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
            self._shown = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._shown.add_task(escape(self._message), total=None)
            self._shown.start()

    def __enter__(self) -> Spinner:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._shown is not None:
                self._shown.stop()
