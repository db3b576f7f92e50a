"""When a search ends before its counts do: because a time limit was asked for, or by Ctrl-C.

    counts (states, rounds, operators)     always the same, on any machine
    Stop   time limit | Ctrl-C | never     asked between steps; what was found until then is kept

Without a time limit no clock is read. It must not know what is searched for.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

Reason = Literal["interrupted", "time limit"]

SAID: dict[Reason, str] = {
    "interrupted": "interrupted: this is the best found until then",
    "time limit": "stopped by --time-limit: this is the best found until then",
}
"""What reports say of a search that was ended."""


class StoppedError(Exception):
    """A search was ended. Its caller has the results that were found until then."""


class Stop:
    """Ends a search. reason: why the search, or a part of it, was cut short; None if it was not.
    is_proving: the proof is running, and stopping does not end it. is_proved: the result is final;
    remaining work only adds to the report."""

    def __init__(self, seconds: float | None = None) -> None:
        """`seconds`: from now on; None for no limit."""
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._ended = False
        self.reason: Reason | None = None
        self.is_proving = False
        self.is_proved = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be begun. Once true it stays true."""
        if not self._ended and self.left == 0:
            self._end("time limit")
        return self._ended

    @property
    def left(self) -> float | None:
        """Seconds that are left; None for no limit."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    def interrupt(self) -> None:
        """End the search as soon as may be."""
        self._end("interrupted")

    def _end(self, reason: Reason) -> None:
        self._ended = True
        self.cut(reason)

    def cut(self, reason: Reason) -> None:
        """Note that a part of the search was cut short."""
        self.reason = "interrupted" if "interrupted" in (reason, self.reason) else reason

    def check(self) -> None:
        """Raise StoppedError where the search is over."""
        if self.is_over:
            raise StoppedError

    def check_all(self) -> None:
        """Raise StoppedError where all searches that this one is a part of are over."""
        self.check()

    @contextmanager
    def proving(self) -> Generator[None]:
        """What was found is being proved inside."""
        self.is_proving = True
        try:
            with self.not_searching():
                yield
        finally:
            self.is_proving = False

    @contextmanager
    def after_proof(self) -> Generator[None]:
        """The result is proved and work inside may be skipped: Ctrl-C raises KeyboardInterrupt
        there at once."""
        self.is_proved = True
        try:
            yield
        finally:
            self.is_proved = False

    @contextmanager
    def not_searching(self) -> Generator[None]:
        """What takes time inside is no search: the limit does not count it."""
        started = time.monotonic()
        try:
            yield
        finally:
            if self._deadline is not None:
                self._deadline += time.monotonic() - started

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of it, if it cut a search short."""
        return () if self.reason is None else (SAID[self.reason],)


class PartOfStop(Stop):
    """Ends one search of several after its share of a time limit, and with the whole; the whole is
    not over when its part is."""

    def __init__(self, whole: Stop, share: float) -> None:
        left = whole.left
        super().__init__(None if left is None else left * share)
        self._whole = whole

    @property
    def is_over(self) -> bool:
        """Whether this search is to end."""
        return self._whole.is_over or super().is_over

    def cut(self, reason: Reason) -> None:
        """Note it of the whole."""
        self._whole.cut(reason)

    def check_all(self) -> None:
        """Raise StoppedError where the whole is over."""
        self._whole.check()
