"""The outer limit of a search in seconds. Budgets of states come first: they repeat."""

from __future__ import annotations

import time


class Clock:
    """Says when the time is spent; reads the real clock at every 256th question only."""

    def __init__(self, seconds: float) -> None:
        self.begin = time.perf_counter()
        self.end = self.begin + seconds
        self._questions = 0
        self._spent = seconds <= 0

    def spent(self) -> bool:
        """Whether the limit has passed; once true it stays true."""
        self._questions += 1
        if not self._questions & 255:
            self._spent = self._spent or time.perf_counter() >= self.end
        return self._spent

    @property
    def seconds(self) -> float:
        """Seconds since the clock was made."""
        return time.perf_counter() - self.begin
