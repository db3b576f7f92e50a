"""Puts one region into a loop."""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.model.ir import Model, Op
from tflm_planner.transforms.row_loop.body import LoopBuilder
from tflm_planner.transforms.row_loop.geometry import LoopGeometry, loop_geometry
from tflm_planner.transforms.row_loop.loop import LoopedRegion


def loop_region(model: Model, region: LoopedRegion, ops: Sequence[Op]) -> str:
    """Put `ops` (the operators of the region, in order) into a loop; returns a note.

    Raises NotStreamableError; the model is then unchanged.
    """
    geometry = loop_geometry(model.main, ops, region)
    note = _note(region, geometry)
    LoopBuilder(model, geometry).commit()
    return note


def _note(region: LoopedRegion, geometry: LoopGeometry) -> str:
    ops, own = geometry.ops, sum(geometry.peeled)
    how = "from the bottom up" if geometry.backwards else "from the top down"
    where = "in place of its input" if geometry.in_place else "into a store of its own"
    outside = f", {own} of them outside the loop" if own else ""
    return (
        f"streamed {len(ops)} operators from {ops[0].label} to {ops[-1].label}: "
        f"{geometry.turns} turns {how}, {region.rows} rows each{outside}, {where}, "
        f"{geometry.halo_bytes:,} bytes of halo"
    )
