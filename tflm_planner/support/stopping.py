"""Ends a search before it has reached its limits in counts: after a time limit, or by Ctrl-C.

    counts (states, rounds, operators)     always the same, on any machine
    Stop   time limit | Ctrl-C | never     checked between steps; the results so far are kept

Without a time limit no clock is read. It must not know what is searched for.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

Reason = Literal["interrupted", "time limit"]

REASON_TEXTS: dict[Reason, str] = {
    "interrupted": "interrupted: this is the best found until then",
    "time limit": "stopped by --time-limit: this is the best found until then",
}
"""What reports say about a search that was ended early."""


class StoppedError(Exception):
    """A search was ended early. Its caller has the results that were found so far."""


class Stop:
    """Says whether a search is to end. reason: why the search, or a part of it, was cut short; None
    if it was not. is_finishing: the result is being finished, and stopping does not end that.
    is_final: the result is final, and the remaining work may be skipped."""

    def __init__(self, seconds: float | None = None) -> None:
        """`seconds`: time limit, counted from now; None for no limit."""
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._ended = False
        self.reason: Reason | None = None
        self.is_finishing = False
        self.is_final = False

    @property
    def is_over(self) -> bool:
        """Whether the search must not begin another step. Once true it stays true."""
        if not self._ended and self.left == 0:
            self._end("time limit")
        return self._ended

    @property
    def left(self) -> float | None:
        """Seconds until the time limit; None for no limit."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    def interrupt(self) -> None:
        """End the search at its next check."""
        self._end("interrupted")

    def _end(self, reason: Reason) -> None:
        self._ended = True
        self.cut(reason)

    def cut(self, reason: Reason) -> None:
        """Record that a part of the search was cut short, and why."""
        self.reason = "interrupted" if "interrupted" in (reason, self.reason) else reason

    def check(self) -> None:
        """Raise StoppedError if the search is over."""
        if self.is_over:
            raise StoppedError

    def check_all(self) -> None:
        """Raise StoppedError if all searches to which this one belongs are over."""
        self.check()

    @contextmanager
    def finishing(self) -> Generator[None]:
        """Inside, the result is being finished."""
        self.is_finishing = True
        try:
            with self.not_searching():
                yield
        finally:
            self.is_finishing = False

    @contextmanager
    def skippable(self) -> Generator[None]:
        """Inside, the result is final and the work may be skipped: Ctrl-C raises KeyboardInterrupt
        at once."""
        self.is_final = True
        try:
            yield
        finally:
            self.is_final = False

    @contextmanager
    def not_searching(self) -> Generator[None]:
        """The time spent inside does not count towards the time limit, because it is no search."""
        started = time.monotonic()
        try:
            yield
        finally:
            if self._deadline is not None:
                self._deadline += time.monotonic() - started

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for a report if a search was cut short; empty if not."""
        return () if self.reason is None else (REASON_TEXTS[self.reason],)


class PartOfStop(Stop):
    """Ends one of several searches after its share of the time left, or together with the whole.
    The whole search is not over when this part is."""

    def __init__(self, whole: Stop, share: float) -> None:
        left = whole.left
        super().__init__(None if left is None else left * share)
        self._whole = whole

    @property
    def is_over(self) -> bool:
        """Whether this search must not begin another step."""
        return self._whole.is_over or super().is_over

    def cut(self, reason: Reason) -> None:
        """Record it for the whole search."""
        self._whole.cut(reason)

    def check_all(self) -> None:
        """Raise StoppedError if the whole search is over."""
        self._whole.check()
