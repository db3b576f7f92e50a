"""A Dask scheduler of this process with two workers, processes that a test may kill."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import ROOT


@dataclass(frozen=True)
class DaskWorkers:
    """address: of the scheduler."""

    address: str
    workers: tuple[subprocess.Popen[bytes], ...]

    def wait_until_both_work(self) -> None:
        """Until the scheduler knows them, so that each gets jobs."""
        with distributed_client(self.address) as client:
            client.wait_for_workers(len(self.workers), timeout=60)


def distributed_client(address: str) -> Any:
    """Somebody who may ask the scheduler."""
    return pytest.importorskip("distributed").Client(address)


@contextmanager
def two_dask_workers() -> Iterator[DaskWorkers]:
    """They end with the context. Skips the test where Dask is not installed."""
    distributed = pytest.importorskip("distributed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with distributed.LocalCluster(
        n_workers=0, dashboard_address=None, processes=True, silence_logs=50
    ) as cluster:
        address = cluster.scheduler_address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address]
        workers = tuple(
            subprocess.Popen([*command, "--nthreads", "1", "--no-dashboard", "--no-nanny"],
                             env=environment, stderr=subprocess.DEVNULL)
            for _ in range(2)
        )  # fmt: skip
        try:
            yield DaskWorkers(address, workers)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
