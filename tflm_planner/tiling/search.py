"""Chooses what to tile: the front door of this folder.

    regions   segmentations of the operators, from the most promising one on (`segment_search`)
    motes     a beam from bottleneck to bottleneck, as published (`beam_search`)

Both compare the smallest arena of the target, with tail, scratch and planning memory: every tile
of a convolution pays 140 + 8 * Cout bytes of tail again, so that neither few nor many tiles are
best. Tilings that are slower than allowed are dropped.
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
    """Search the best tiling of the model in `data`; its best is empty when nothing helps.

    The result depends on the model and the options alone, unless `stop` ends the search, which
    then keeps the best tiling so far; the number of processes changes nothing. workers: those of
    another search of the same model for the same target and objective, which remember its
    evaluations; they stay open. None: workers of this search's own. Raises StoppedError where the
    search is over before it could evaluate the untiled model.
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
