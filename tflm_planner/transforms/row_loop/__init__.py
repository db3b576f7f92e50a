"""Streaming: regions of the graph run a few rows at a time inside one WHILE.

    LoopedRegion(ops=(2, 3, 4), rows=2, border="reverse")   what to stream, and how
    geometry.loop_geometry(graph, operators, region)        its geometry, or why it has none
    loop_region(model, region, operators)                   puts the region into a loop

Halos are carried from turn to turn, so nothing is computed twice; the number of operators does not
depend on the image. This is exact: every element is computed by the same sum as before. Where a
window reads rows beyond the image's border, rows of padding take their place.

A region must end before a global pool. No stock operator gives the sum of an int8 pool before it is
rounded, and the sum of a float pool depends on its order; the operand of such a pool is small
anyway.
"""

from tflm_planner.transforms.row_loop.apply import loop_region
from tflm_planner.transforms.row_loop.geometry import LoopGeometry
from tflm_planner.transforms.row_loop.loop import (
    LOOP_BORDERS,
    LoopBorder,
    LoopedRegion,
    NotStreamableError,
)

__all__ = [
    "LOOP_BORDERS",
    "LoopBorder",
    "LoopGeometry",
    "LoopedRegion",
    "NotStreamableError",
    "loop_region",
]  # fmt: skip
