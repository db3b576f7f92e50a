"""Which cells of a comparison are computed, and how."""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.report.document import RungKind
from tflm_planner.support import defaults
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop


@dataclass(frozen=True)
class CellSearch:
    """How to compute the cells of a comparison. columns: the kinds of cells, "stock" first. stop:
    can end searches. workers: the most processes of a search."""

    columns: tuple[RungKind, ...]
    stop: Stop
    on_progress: Progress
    workers: int = defaults.WORKERS
