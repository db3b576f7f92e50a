"""Intervals of a schedule, which are tiled as one."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """The operators at positions [first, end) of an order."""

    first: int
    end: int

    @property
    def size(self) -> int:
        """Number of operators."""
        return self.end - self.first

    @property
    def positions(self) -> range:
        """Positions of the operators."""
        return range(self.first, self.end)

    @property
    def as_slice(self) -> slice:
        """The slice that takes the operators of the interval from a sequence in this order."""
        return slice(self.first, self.end)


class ScheduleInterval(NamedTuple):
    """An interval, and the order of the model's operators to which its positions refer."""

    order: tuple[int, ...]
    interval: Interval
