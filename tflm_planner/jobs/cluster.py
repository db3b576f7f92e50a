"""Runs jobs on a cluster: a Dask scheduler at an address, with workers on any machines.

    dask scheduler                          once, anywhere
    dask worker tcp://HOST:8786             on every machine that has tflm-planner
    tflm-plan ... --address tcp://HOST:8786

It uses Dask rather than Ray. Dask is pure Python (2.5 MB that install everywhere, whereas Ray is
79 MB of compiled code for some systems), its scheduler is one process, and it gives the jobs of
dead workers to other workers without any code of ours. This module needs the extra `cluster`.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Generator, Sequence
from typing import Any, Self

from tflm_planner.jobs.engine import J, JobFailure, R
from tflm_planner.support.errors import UsageError

_SECONDS_TO_ANSWER = 10


class ClusterEngine:
    """A `JobEngine` that uses the workers of a Dask scheduler. Raises UsageError if Dask is not
    installed, or if no scheduler answers at the address."""

    def __init__(self, address: str) -> None:
        try:
            self._dask: Any = importlib.import_module("distributed")
        except ModuleNotFoundError as error:
            raise UsageError(
                "a cluster needs Dask: pip install 'tflm-planner[cluster]' here and on its workers"
            ) from error
        try:
            self._client: Any = self._dask.Client(address, timeout=_SECONDS_TO_ANSWER)
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise UsageError(
                f"no Dask scheduler answers at {address!r}; `dask scheduler` starts one and prints "
                f"its address, such as tcp://localhost:8786 ({reason})"
            ) from error

    def results(
        self, work: Callable[[J], R], jobs: Sequence[J]
    ) -> Generator[tuple[int, R | JobFailure]]:
        """See `JobEngine`. If the worker of a job dies, the scheduler starts the job again. It
        gives the job up after as many deaths as its setting `allowed-failures` says."""
        futures = [self._client.submit(work, job, pure=False) for job in jobs]
        numbers = {future.key: number for number, future in enumerate(futures)}
        try:
            for future in self._dask.as_completed(futures):
                error: BaseException | None = future.exception()
                number = numbers[future.key]
                if error is None:
                    yield number, future.result()
                else:
                    yield number, JobFailure(f"{type(error).__name__}: {error}")
                future.release()  # the scheduler need not keep a result that has arrived
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                self._client.cancel(futures, force=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect from the cluster, which keeps running."""
        self._client.close()
