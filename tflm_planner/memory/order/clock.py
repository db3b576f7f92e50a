"""Asks whether a search was stopped, at some questions only. Budgets of states end most searches:
they repeat."""

from __future__ import annotations

from tflm_planner.support.stopping import Stop


class Clock:
    """Says when a search is to end; asks `stop` at every 64th question only."""

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
