"""Asks now and then whether a search was stopped. Most searches end by their budget of states,
which makes them repeatable."""

from __future__ import annotations

from tflm_planner.support.stopping import Stop


class Clock:
    """Says whether a search must end; it asks `stop` at every 64th call only."""

    def __init__(self, stop: Stop | None = None) -> None:
        self._stop = stop or Stop()
        self._questions = 0
        self._spent = self._stop.is_over

    def spent(self) -> bool:
        """Whether the search is over; once true it stays true."""
        self._questions += 1
        if not self._questions & 63:
            self._spent = self._spent or self._stop.is_over
        return self._spent
