"""Chooses what to tile, with one permission; `permissions` calls it.

    regions   segmentations of the operators, the most promising first (`segment_search`)
    motes     the beam search of MOTES from bottleneck to bottleneck (`beam_search`)

Both compare the smallest arena of the target, with tail, scratch and planning memory: every tile of
a convolution adds 140 + 8 * Cout bytes of tail, so the best number of tiles is neither very small
nor very large. Tilings that are slower than permitted are dropped.
"""

from __future__ import annotations

from contextlib import suppress

from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop, StoppedError
from tflm_planner.tiling.beam_search import BeamSearch
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import (
    METHODS,
    OBJECTIVES,
    Method,
    Objective,
    TilingOptions,
    check_choices,
)
from tflm_planner.tiling.segment_search import SegmentSearch
from tflm_planner.tiling.tilings import Tiling, TilingResult, pareto_fronts, slower_front

__all__ = [
    "METHODS",
    "OBJECTIVES",
    "Method",
    "Objective",
    "Tiling",
    "TilingOptions",
    "TilingResult",
    "Workers",
    "check_choices",
    "pareto_fronts",
    "search_tiles",
    "slower_front",
]  # fmt: skip


def search_tiles(
    data: bytes,
    options: TilingOptions,
    on_progress: Progress = silent,
    workers: Workers | None = None,
    stop: Stop | None = None,
) -> TilingResult:
    """Search the best tiling of the model in `data`; the best one is empty if nothing helps.

    The result depends only on the model and the options, unless `stop` ends the search, which then
    returns the best tiling so far; the number of processes changes nothing. workers: those of
    another search of the same model for the same target and objective, which have cached its
    evaluations; they are not closed. None: this search starts workers of its own. Raises
    StoppedError if the search is stopped before it has evaluated the untiled model.
    """
    used = workers or Workers(data, options)
    used.stop = stop or Stop()
    try:
        kind = SegmentSearch if options.method == "regions" else BeamSearch
        search = kind(options, used)
        with suppress(StoppedError):
            search.run(on_progress)
        return search.result()
    finally:
        if workers is None:
            used.close()
