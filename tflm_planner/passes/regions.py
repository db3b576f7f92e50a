"""Tiles and loops on disjoint regions of one model, all numbered as the model was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.ir import Model, Op
from tflm_planner.passes.base import apply_regions
from tflm_planner.passes.stream import Loop, stream_region
from tflm_planner.passes.tile import Scheme, tile_region


@dataclass(frozen=True)
class Regions:
    """Applies schemes and loops; regions that cannot be rewritten stay, with a note. inexact:
    whether sums may be split."""

    regions: tuple[Scheme | Loop, ...]
    inexact: bool = False

    def apply(self, model: Model) -> list[str]:
        """See the class."""

        def rewrite(region: Scheme | Loop, ops: Sequence[Op]) -> str:
            if isinstance(region, Loop):
                return stream_region(model, region, ops)
            return tile_region(model, region, ops, inexact=self.inexact)

        return apply_regions(model, self.regions, rewrite)
