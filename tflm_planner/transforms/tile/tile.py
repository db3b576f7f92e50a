"""Computes regions of the graph in tiles.

    TiledRegion((2, 3, 4), (Split(ROWS, 4),))               operators 2 to 4 in 4 bands of rows
    TiledRegion(..., (Split(ROWS, 3), Split(COLUMNS, 3)))   3 x 3 patches
    TiledRegion(..., (Split(ROWS, 3, 30),))                 3 bands, of 70, 100 and 130 % of a third
    TiledRegion(..., (Split(CHANNELS, 2),))                 output channels in two halves
    TiledRegion(..., (Split(SUM, 4),))                      the sum over input channels in 4 shares

Spatial and channel splits are exact: every element is computed by the same sum as before. Shares of
a sum (`partial_sums`) are not exact and must be permitted. The search chooses what to tile; this
pass only says whether it is possible. Source: MOTES 4.3 and 4.4, MCUNetV2 section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tflm_planner.model.draft import Draft, is_convex
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.macs import total_macs
from tflm_planner.ops.window import CHANNELS, COLUMNS, ROWS
from tflm_planner.transforms.axis_graph import blocks
from tflm_planner.transforms.tile.box_plan import HALOS, BoxCutter, HaloPolicy, Split
from tflm_planner.transforms.tile.boxes import NotTileableError
from tflm_planner.transforms.tile.operator_tiles import BORDERS, Border
from tflm_planner.transforms.tile.partial_sums import SUM, PartialSums
from tflm_planner.transforms.tile.tiler import Tiler


@dataclass(frozen=True)
class TiledRegion:
    """What to tile, and how.

    ops: positions in the main graph before the transform. splits: how the region's results are cut,
    each axis once. halo: what to do about rows that several tiles read (see `tiler`). border: how
    windows at a tile's border get padding that only the image's border has (see `windows`).
    backward: the last tile is computed first, so that results can overlap operands in the other
    direction. eager: operators run as soon as their operands exist (see `eager_order`).
    """

    ops: tuple[int, ...]
    splits: tuple[Split, ...]
    halo: HaloPolicy = "recompute"
    border: Border = "pad"
    backward: bool = False
    eager: bool = False

    def __post_init__(self) -> None:
        assert self.halo in HALOS and self.border in BORDERS, "unknown way to tile"
        assert self.ops and all(s.parts > 0 for s in self.splits), "nothing to tile"
        assert all(abs(s.growth) < 100 for s in self.splits), "parts grow by less than their mean"
        assert self.exact or len(self.splits) == 1, "a sum is split alone"
        assert self.exact or not self.splits[0].growth, "shares of a sum have one size"

    @property
    def exact(self) -> bool:
        """Whether every element is still computed by one sum."""
        return all(split.axis != SUM for split in self.splits)

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return prod(split.parts for split in self.splits)


def band(first: int, last: int, rows: int, *, columns: int = 1, **more: str) -> TiledRegion:
    """Operators `first` to `last` (both included) in bands of rows, or in patches."""
    splits = (Split(ROWS, rows), *([Split(COLUMNS, columns)] if columns > 1 else []))
    return TiledRegion(tuple(range(first, last + 1)), splits, **more)  # type: ignore[arg-type]


def tile_region(
    model: Model, region: TiledRegion, ops: Sequence[Op], *, inexact: bool = False
) -> str:
    """Replace `ops`, the operators of the region, by tiles; returns a note. Raises
    NotTileableError; the model is then unchanged. inexact: whether sums may be split."""
    if not (region.exact or inexact):
        raise NotTileableError("to split a sum changes bits; --allow-inexact does it")
    if not region.exact and region.halo != "recompute":
        raise NotTileableError(
            f"shares of a sum have no halo that halo={region.halo} could keep; leave it out"
        )
    draft = draft_tiles(model, region, ops)
    note = _note(region, ops, draft)
    draft.commit(ops)
    return note


@dataclass(frozen=True)
class Patch:
    """The patch stage of MCUNetV2: the first `stage` operators in p x p patches, the others one by
    one. blocks: `stage` counts blocks instead of operators (`axis_graph.blocks`)."""

    p: int
    stage: int
    blocks: bool = False
    border: Border = "pad"

    def region(self, graph: Graph) -> TiledRegion:
        """This stage as a region of a graph."""
        count = self.stage
        if self.blocks:
            count = sum(len(b) for b in blocks(graph)[: self.stage])
        count = min(count, len(graph.ops))
        return band(0, count - 1, self.p, columns=self.p, border=self.border)


def draft_tiles(model: Model, region: TiledRegion, ops: Sequence[Op]) -> Draft:
    """The tiles of a region, not yet committed to the model. ops: the region's operators. Raises
    NotTileableError."""
    for op in ops:
        if has_side_effects(op):
            raise NotTileableError(f"{op.label} has side effects or unknown meaning")
    if not is_convex(model.main.ops, ops):
        raise NotTileableError("a path leaves the region and comes back")
    cutting = BoxCutter(region.splits, region.halo, region.border, region.backward, region.eager)
    maker = Tiler if region.exact else PartialSums
    return maker(model, model.main, ops, cutting).build()


def _span(ops: Sequence[Op]) -> str:
    """The operators of a region in words."""
    if len(ops) == 1:
        return ops[0].label
    return f"{len(ops)} operators from {ops[0].label} to {ops[-1].label}"


def _note(region: TiledRegion, ops: Sequence[Op], draft: Draft) -> str:
    before, after = total_macs(ops), total_macs(draft.ops)
    names = {ROWS: "rows", COLUMNS: "columns", CHANNELS: "channels", SUM: "a sum (NOT exact)"}
    how = " x ".join(
        f"{s.parts} {'uneven ' if s.growth else ''}parts of {names.get(s.axis, f'axis {s.axis}')}"
        for s in region.splits
    )
    more = f", {100 * (after - before) / before:+.1f} % MACs" if before else ""
    return f"tiled {_span(ops)}: {how}, {len(draft.ops)} operators{more}"
