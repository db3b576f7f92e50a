"""Which engine runs jobs: the one place that knows both."""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.jobs.engine import JobEngine


def engine_at(address: str | None, workers: int, imports: Sequence[str] = ()) -> JobEngine:
    """The cluster at an address or, where none is given, `workers` processes here. imports: modules
    that jobs need, and that take long to import. Raises UsageError where no cluster answers."""
    if address is not None:
        from tflm_planner.jobs.cluster import ClusterEngine

        return ClusterEngine(address)
    from tflm_planner.jobs.processes import LocalEngine

    return LocalEngine(workers, imports)
