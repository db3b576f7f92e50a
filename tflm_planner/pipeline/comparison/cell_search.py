"""Which cells of a comparison are looked for, and what that may cost."""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.report.document import RungKind
from tflm_planner.support import defaults
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop


@dataclass(frozen=True)
class CellSearch:
    """columns: kinds of cells, "stock" first. workers: processes of a search. stop: may end it."""

    columns: tuple[RungKind, ...]
    stop: Stop
    on_progress: Progress
    workers: int = defaults.WORKERS
