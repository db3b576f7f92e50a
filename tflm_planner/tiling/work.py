"""Counts what a search does: `WorkBudget` its work, `EarlyStop` its attempts without gain.

    |<---------- work left --------->|
    |  step 1  |  step 2  |  step 3  |     each step may spend its share of the work that is left;
    |++++      |          |          |     work that a step does not spend is left for later steps
         |   step 2  |    step 3     |

This module must not know what is planned, nor how much may be spent (`tiling.budget`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class WorkBudget:
    """Counts the work of one search, and of its present step.

    remaining: number of operators that the search may still plan. total: `remaining` at the start.
    """

    remaining: int
    total: int = 0
    _first_part_end: int = 0
    """`remaining` at which the step has spent its first part."""
    _step_end: int = 0
    """`remaining` at which the step has spent its whole share."""

    def __post_init__(self) -> None:
        self.total = self.remaining

    @property
    def share_spent(self) -> float:
        """The share of the work of the whole search that is spent, 0 to 1."""
        return min(1 - self.remaining / max(self.total, 1), 1.0)

    def begin_step(self, share: float, first_part: float = 1.0) -> None:
        """Begin a step that may spend `share` of the remaining work. `is_first_part_spent` becomes
        true when `first_part` of that is spent, `is_step_spent` when all of it is."""
        self.begin_extra_step(int(self.remaining * share), first_part)

    def begin_extra_step(self, work: int, first_part: float = 1.0) -> None:
        """Begin a step that may spend so much work, even if nothing is left."""
        self._step_end = self.remaining - work
        self._first_part_end = self.remaining - int(work * first_part)

    def spend(self, work: int) -> None:
        """Count operators that were planned."""
        self.remaining -= work

    @property
    def first_part_remaining(self) -> int:
        """Operators that the step's first part may still plan."""
        return max(self.remaining - self._first_part_end, 0)

    @property
    def is_first_part_spent(self) -> bool:
        """Whether the step has spent its first part."""
        return self.remaining <= self._first_part_end

    @property
    def is_step_spent(self) -> bool:
        """Whether the step has spent its whole share: the rest belongs to later steps."""
        return self.remaining <= self._step_end


@dataclass
class EarlyStop:
    """Ends a step after a number of attempts without gain."""

    max_attempts: int
    """Number of attempts in a row without gain that end the step."""
    best: int
    """The fewest bytes so far."""
    least_gain: int | None = None
    """Only savings of more than 1/`least_gain` of `best` count as a gain. None: every saving
    does."""
    attempts_left: int = 0

    def __post_init__(self) -> None:
        self.attempts_left = self.max_attempts

    def record(self, best_bytes: int, attempts: int = 1) -> None:
        """Record the fewest bytes known after some attempts."""
        least = 0 if self.least_gain is None else self.best // self.least_gain
        gained = best_bytes < self.best - least
        self.best = best_bytes if gained else self.best
        self.attempts_left = self.max_attempts if gained else self.attempts_left - attempts

    @property
    def is_due(self) -> bool:
        """Whether enough attempts gained nothing."""
        return self.attempts_left <= 0
