"""Decides which boxes of the tensors of a region its tiles compute: one box of every tensor for
each tile if halos are recomputed, blocks of every tensor if they are kept.

    result               |  tile 0  |  tile 1  |
    inside, plan_tile    |  tile 0    |             what each tile needs, with its halo
                               |    tile 1  |
    inside, lay_blocks   | block 0 |1|  block 2 |   each is made once; the halo is a block

It computes nothing; `Tiler` drafts the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Literal, NamedTuple

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Range
from tflm_planner.transforms.tile.boxes import (
    Box,
    NotTileableError,
    along,
    cuts,
    full_box,
    hull,
    view_unit,
)
from tflm_planner.transforms.tile.operator_tiles import (
    AHEAD,
    Border,
    TileForm,
    boxes_read,
    tile_form,
)

HaloPolicy = Literal["recompute", "blocks", "merge"]
HALOS: tuple[HaloPolicy, ...] = ("recompute", "blocks", "merge")


class Split(NamedTuple):
    """Cuts the results of a region into `parts` parts along `axis`. growth: see `boxes.cuts`; 0
    for parts of one size."""

    axis: int
    parts: int
    growth: int = 0


@dataclass(frozen=True)
class BoxCutter:
    """How a region is cut. backward: the last tile is computed first. eager: see `eager_order`. The
    other fields are those of `TiledRegion`."""

    splits: tuple[Split, ...]
    halo: HaloPolicy
    border: Border
    backward: bool = False
    eager: bool = False


@dataclass
class _Blocks:
    """The blocks of tensors whose halos are kept. of: blocks in raster order. axes: the axis along
    which they lie (no key if there is none). pads: the padding that each reader needs around
    blocks."""

    of: dict[Tensor, list[Box]] = field(default_factory=dict[Tensor, list[Box]])
    axes: dict[Tensor, int] = field(default_factory=dict[Tensor, int])
    pads: dict[Tensor, set[tuple[Range, ...]]] = field(
        default_factory=dict[Tensor, set[tuple[Range, ...]]]
    )


class BoxPlan:
    """The boxes of one region in tiles."""

    def __init__(self, ops: Sequence[Op], results: Sequence[Tensor], cutting: BoxCutter) -> None:
        """`ops`: the region, in running order. `results`: tensors that are used outside the
        region."""
        self._ops, self._results, self._cutting = ops, results, cutting
        self._of_tiles: dict[int, dict[Tensor, Box]] = {}
        self._blocks = _Blocks()
        self._forms: dict[tuple[Tensor, Box], TileForm] = {}
        self._used: dict[Tensor, Box] | None = None
        self._used = self._plan({t: [full_box(t)] for t in results})

    def cut_up(self, tensor: Tensor) -> list[Box]:
        """The boxes from which a result is joined, in raster order."""
        shape, splits = tensor.shape or (), self._cutting.splits
        ranges: list[list[tuple[int, int]]] = [[(0, n)] for n in shape]
        for axis, parts, growth in splits:
            if axis < len(shape):
                unit = view_unit(tensor, axis) if len(splits) == 1 else 1
                unit = unit if unit * parts <= shape[axis] else 1
                ranges[axis] = cuts(shape[axis], parts, unit, growth)
        return list(product(*ranges))

    def plan_tile(self, k: int, needs: dict[Tensor, list[Box]]) -> None:
        """Find the box of every tensor that tile `k` needs to make the boxes in `needs`."""
        self._of_tiles[k] = self._plan(needs)

    def box_of_tile(self, tensor: Tensor, k: int) -> Box | None:
        """The box of a tensor that tile `k` makes in one piece; None if it makes it in several or
        not at all."""
        if self._cutting.halo == "recompute":
            return self._of_tiles[k].get(tensor)
        blocks = self._blocks.of.get(tensor, [])
        return blocks[0] if len(blocks) == 1 else None

    def box_in_tile(self, tensor: Tensor, k: int) -> Box:
        """The box of a tensor that tile `k` makes, if halos are recomputed."""
        return self._of_tiles[k][tensor]

    def blocks_of(self, tensor: Tensor) -> list[Box]:
        """The blocks of a tensor, if halos are kept."""
        return self._blocks.of[tensor]

    def block_axis(self, tensor: Tensor) -> int | None:
        """The axis along which the blocks lie; None if there is only one block."""
        return self._blocks.axes.get(tensor)

    def form_of(self, op: Op, tensor: Tensor, box: Box) -> TileForm:
        """How `op` computes a box; cached, because it is needed both to plan and to draft."""
        key = (tensor, box)
        if key not in self._forms:
            self._forms[key] = tile_form(op, tensor, box, self._cutting.border)
        return self._forms[key]

    def early_padding(self, tensor: Tensor) -> tuple[Range, ...] | None:
        """Padding added to blocks before they are joined: the maximum over all readers. With border
        "ahead", None unless all readers need the same padding."""
        borders = self._blocks.pads.get(tensor, set())
        if not borders or (self._cutting.border == "ahead" and len(borders) > 1):
            return None
        sides = [zip(*(pads[a] for pads in borders), strict=True) for a in range(len(min(borders)))]
        return tuple((max(low), max(high)) for low, high in sides)

    def _plan(self, needs: dict[Tensor, list[Box]]) -> dict[Tensor, Box]:
        """The box of every tensor of the region. In the first call: what is used of it. In later
        calls: what must be computed for that."""
        boxes: dict[Tensor, Box] = {}
        for op in reversed(self._ops):
            for t in op.outputs:
                if t in needs:
                    box = hull(needs[t])
                    wide = self._widen_box(op, t, box)
                    boxes[t] = box if self._used is None else wide
                    self._demand(op, t, wide, needs)
        return boxes

    def _widen_box(self, op: Op, tensor: Tensor, box: Box) -> Box:
        """`box`, but with an axis taken whole if the operator cannot compute it in parts and this
        tile uses as much of it as the whole region does: as in a slice of the result of SOFTMAX."""
        index = next(i for i, t in enumerate(op.outputs) if t is tensor)
        links, full = axis_map(op), full_box(tensor)
        used = box if self._used is None else self._used[tensor]
        return tuple(
            full[a] if r == used[a] and not links.links_of(a, index) else r
            for a, r in enumerate(box)
        )

    def _demand(self, op: Op, tensor: Tensor, box: Box, needs: dict[Tensor, list[Box]]) -> None:
        if self._used is None:
            reads = boxes_read(op, tensor, box)
        else:
            form = self.form_of(op, tensor, box)
            reads = form.reads
            if self._cutting.border in AHEAD:
                self._note_pads(op, form)
        for operand, read in zip(op.inputs, reads, strict=True):
            if operand is not None and read is not None:
                needs.setdefault(operand, []).append(read)

    def _note_pads(self, op: Op, form: TileForm) -> None:
        """Record the padding that each reader needs around blocks of a tensor, on all axes but the
        one along which the blocks lie."""
        for i, (t, box) in enumerate(zip(op.inputs, form.reads, strict=True)):
            if t is not None and box is not None:
                axis = self._blocks.axes.get(t, len(box))
                borders = form.pads if i == 0 and form.pads is not None else ((0, 0),) * len(box)
                pads = tuple((0, 0) if a == axis else p for a, p in enumerate(borders))
                self._blocks.pads.setdefault(t, set()).add(pads)

    def lay_blocks(self, boxes: dict[Tensor, list[Box]]) -> None:
        """Decide the blocks of every tensor of the region, if halos are kept."""
        if len(self._cutting.splits) != 1:
            raise NotTileableError("halos are kept along one axis only")
        (split,) = self._cutting.splits
        needs: dict[Tensor, list[Box]] = {key: list(b) for key, b in boxes.items()}
        self._blocks.axes = dict.fromkeys(self._results, split.axis)
        for op in reversed(self._ops):
            for t in op.outputs:
                if t not in needs:
                    continue
                axis = self._blocks.axes.get(t)
                cover = self._widen_box(op, t, hull(needs[t]))
                self._blocks.of[t] = self._cut_blocks(t, axis, split, cover, needs[t])
                self._follow(op, t, axis)
                for block in self._blocks.of[t]:
                    self._demand(op, t, block, needs)

    def _cut_blocks(
        self, tensor: Tensor, axis: int | None, split: Split, cover: Box, reads: Sequence[Box]
    ) -> list[Box]:
        if axis is None or axis >= len(cover):
            return [full_box(tensor)]
        if self._cutting.halo == "merge":
            low, high = cover[axis]
            ranges = cuts(high - low, split.parts, growth=split.growth)
            return along(cover, axis, [(a + low, b + low) for a, b in ranges])
        edges = sorted({e for box in reads for e in box[axis]})
        return along(cover, axis, list(pairwise(edges)))

    def _follow(self, op: Op, tensor: Tensor, axis: int | None) -> None:
        """Record the axes of the operands that correspond to an axis of the result."""
        index = next(i for i, t in enumerate(op.outputs) if t is tensor)
        for link in axis_map(op).links_of(-1 if axis is None else axis, index):
            operand = op.inputs[link.operand]
            if operand is not None:
                self._blocks.axes.setdefault(operand, link.axis)
