"""The interface of an engine, which runs many independent jobs in parallel.

    jobs --> JobEngine --> (number of a job, its result or a `JobFailure`), as they come
               |-- LocalEngine      processes of this machine            (`processes`)
               `-- ClusterEngine    a Dask scheduler, by its address     (`cluster`)

A job is plain data, and the work is a module-level function, so that both can be sent to another
process. No job ends the others: if a job raises an exception or its process dies, only that job
gets a `JobFailure`. It must not know what jobs are about.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

J = TypeVar("J")
R = TypeVar("R")

ATTEMPTS = 2
"""How often a job is started if its process dies. It gets a second attempt because the job may not
have caused the death (the system may have been short of memory, or somebody may have killed the
process)."""


@dataclass(frozen=True, slots=True)
class JobFailure:
    """What a job gives in place of a result. reason: why, in words."""

    reason: str


class JobEngine(Protocol):
    """Runs jobs. As a context manager, it ends at exit what it has started."""

    def results(
        self, work: Callable[[J], R], jobs: Sequence[J]
    ) -> Generator[tuple[int, R | JobFailure]]:
        """The number of each job with its result, in the order in which the jobs end. Closing the
        generator ends the running jobs."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
