"""The jobs that several processes take from, and who takes which.

    kinds   a  b  a  c  b       this process ran a before, the child b:
            ^  *  ^  .  *       it takes the first a, then the second, then c, then what b is left

A process remembers the tiles that it has made and some of their plans, so that jobs of one kind
take less time in one process. Who runs a job changes no result.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, Protocol, TypeVar

from tflm_planner.support.stopping import Stop
from tflm_planner.tiling.evaluate.evaluator import Evaluator

T = TypeVar("T", covariant=True)


class Job(Protocol[T]):
    """A unit of work: plain data that can be sent to another process."""

    def run(self, evaluator: Evaluator) -> T:
        """The result of the job; never None."""
        ...


@dataclass
class JobQueue(Generic[T]):
    """Jobs for several processes: each takes another one when it is free."""

    jobs: Sequence[Job[T]]
    stop: Stop
    """Once it is over, no job begins."""
    kinds: Sequence[Hashable]
    """The kind of each job; None for a job of no kind."""
    homes: dict[Hashable, int]
    """Kind -> the process that took a job of it last, here or in an earlier queue. It may have
    ended since: its kinds are then taken after the others."""
    results: dict[int, T] = field(default_factory=dict[int, T])
    """The results by the numbers of the jobs."""
    is_closed: bool = False
    """Whether no further job is to begin."""
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._waiting = list(range(len(self.jobs)))

    def take(self, least: int, process: int) -> int | None:
        """The number of a job for a process: the first whose kind it knows, or else the first whose
        kind nobody knows, or else the first. None if fewer than `least` are left, or if the search
        is stopped."""
        with self._lock:
            if len(self._waiting) < least or self.stop.is_over:
                return None
            number = min(self._waiting, key=lambda k: self._strangeness(k, process))
            self._waiting.remove(number)
            if (kind := self.kinds[number]) is not None:
                self.homes[kind] = process
            return number

    def _strangeness(self, number: int, process: int) -> int:
        """Of a job to a process: 0 if it knows the kind, 1 if nobody does, 2 if another does."""
        home = self.homes.get(self.kinds[number])
        return 0 if home == process else 1 if home is None else 2

    def jobs_without_result(self) -> list[int]:
        """The numbers of the jobs that have no result."""
        return [k for k in range(len(self.jobs)) if k not in self.results]
