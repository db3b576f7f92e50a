"""How much a search may plan: operators, counted, so that the clock decides nothing.

    |<------------ all ------------>|
    |  step 1  |  step 2  |  step 3 |      every step its part of what is left; what a step leaves
    |++++      |          |         |      over is for those after it
         |   step 2  |    step 3    |

It must not know what is planned, nor what that brings.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class WorkBudget:
    """left: operators that may still be planned."""

    left: int
    _floor: int = 0
    _end: int = 0

    def open(self, share: float, first: float = 1.0) -> None:
        """Begin a step that may spend this share of what is left; of that `first` before `go_on`
        is called."""
        step = int(self.left * share)
        self._end = self.left - step
        self._floor = self.left - int(step * first)

    def go_on(self) -> None:
        """Let the step have the rest of its share."""
        self._floor = self._end

    def spend(self, work: int) -> None:
        """Take operators that were planned."""
        self.left -= work

    @property
    def rest(self) -> int:
        """Operators that the step may still plan."""
        return max(self.left - self._floor, 0)

    @property
    def is_spent(self) -> bool:
        """Whether the step that was begun is to end."""
        return self.left <= self._floor

    @property
    def is_overdrawn(self) -> bool:
        """Whether the step has spent what is left for those after it."""
        return self.left <= self._end


@dataclass
class EarlyStop:
    """Ends what brings nothing any more. most: attempts in a row without gain. part: a gain is one
    part in so many."""

    most: int
    part: int
    best: int
    left: int = 0

    def __post_init__(self) -> None:
        self.left = self.most

    def note(self, bytes_: int, attempts: int = 1) -> bool:
        """Take the best that is known after an attempt, or some; whether it is a gain."""
        gained = bytes_ < self.best - self.best // self.part
        self.best = bytes_ if gained else self.best
        self.left = self.most if gained else self.left - attempts
        return gained

    @property
    def is_over(self) -> bool:
        """Whether enough attempts brought nothing."""
        return self.left <= 0
