"""Chooses what to tile: the front door of `choice`.

    regions   the best segmentation of the operators, tried from the inside out (`segment_search`)
    motes     a beam from bottleneck to bottleneck, as published (`beam_search`)

What is compared is the smallest arena of the target, tail and scratch and planning temp
included: every tile of a convolution pays 140 + 8 * Cout bytes of tail again, so the best number
of tiles is an interior optimum. Tilings slower than the overhead allows are dropped.
"""

from __future__ import annotations

from contextlib import suppress

from tflm_planner.support.stopping import Stop, StoppedError
from tflm_planner.tiling.beam_search import BeamSearch
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import (
    METHODS,
    OBJECTIVES,
    Method,
    Objective,
    Progress,
    Tiling,
    TilingOptions,
    TilingResult,
    check_choices,
    pareto_fronts,
    silent,
    slower_front,
)
from tflm_planner.tiling.segment_search import SegmentSearch

__all__ = [
    "METHODS",
    "OBJECTIVES",
    "Method",
    "Objective",
    "Progress",
    "Tiling",
    "TilingOptions",
    "TilingResult",
    "Workers",
    "check_choices",
    "pareto_fronts",
    "search_tiles",
    "silent",
    "slower_front",
]  # fmt: skip


def search_tiles(
    data: bytes,
    options: TilingOptions,
    on_progress: Progress | None = None,
    workers: Workers | None = None,
    stop: Stop | None = None,
) -> TilingResult:
    """The best tiling found of the model in `data`; the empty one when nothing helps.

    Deterministic, whatever the number of processes, unless `stop` ends the search, which then
    keeps the best so far. `workers`: those of another search of the same model, for the same
    target and objective, that know what it knew; they stay open. Raises StoppedError where the
    search is over before it could look at the model as it is.
    """
    say = on_progress or silent
    used = workers or Workers(data, options)
    used.stop = stop or Stop()
    try:
        kind = SegmentSearch if options.method == "regions" else BeamSearch
        search = kind(options, used)
        with suppress(StoppedError):
            search.run(say)
        return search.found()
    finally:
        if workers is None:
            used.close()
