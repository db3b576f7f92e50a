"""Chooses the engine that runs jobs. No other module knows both engines."""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.jobs.engine import JobEngine


def engine_at(address: str | None, workers: int, imports: Sequence[str] = ()) -> JobEngine:
    """The cluster at an address or, without an address, `workers` processes on this machine.
    imports: modules that jobs need and that take long to import. Raises UsageError if no cluster
    answers."""
    if address is not None:
        from tflm_planner.jobs.cluster import ClusterEngine

        return ClusterEngine(address)
    from tflm_planner.jobs.processes import LocalEngine

    return LocalEngine(workers, imports)
