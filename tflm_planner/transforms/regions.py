"""Tiles and loops on disjoint regions of one model; all positions refer to the model as read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.model.ir import Model, Op
from tflm_planner.transforms.base import RegionResult, apply_regions
from tflm_planner.transforms.row_loop import LoopedRegion, loop_region
from tflm_planner.transforms.tile.tile import TiledRegion, tile_region


@dataclass(frozen=True)
class Regions:
    """Computes regions in tiles or loops; a region that is refused stays unchanged, with a note.
    inexact: whether sums may be split, which changes bits."""

    regions: tuple[TiledRegion | LoopedRegion, ...]
    inexact: bool = False

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        return [result.note for result in self.rewrite(model)]

    def rewrite(self, model: Model) -> list[RegionResult[TiledRegion | LoopedRegion]]:
        """The same, but returns one result for each region instead of notes."""

        def rewrite(region: TiledRegion | LoopedRegion, ops: Sequence[Op]) -> str:
            if isinstance(region, LoopedRegion):
                return loop_region(model, region, ops)
            return tile_region(model, region, ops, inexact=self.inexact)

        return apply_regions(model, self.regions, rewrite)
