"""Many independent jobs, run by whoever has time: what an engine does.

    jobs --> JobEngine --> (number of a job, its result or a `JobFailure`), as they come
               |-- LocalEngine      processes of this machine            (`processes`)
               `-- ClusterEngine    a Dask scheduler, by its address     (`cluster`)

A job is plain data, and the work a function of a module, so that another process can be sent both.
No job ends the others: an exception, and a process that dies, are the result of that job alone. It
must not know what jobs are about.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

J = TypeVar("J")
R = TypeVar("R")

ATTEMPTS = 2
"""How often a job is begun whose process dies: once more, since whatever ended the process (a
system short of memory, somebody's kill) may not have been the job."""


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A job without a result. reason: in words."""

    reason: str


class JobEngine(Protocol):
    """Runs jobs. As a context manager: what it started ends with it."""

    def results(
        self, work: Callable[[J], R], jobs: Sequence[J]
    ) -> Generator[tuple[int, R | JobFailure]]:
        """The number of each job with its result, in the order in which they end. Whoever stops
        to iterate ends the jobs under way."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
