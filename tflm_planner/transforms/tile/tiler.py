"""Computes a part of a graph in tiles: drafts the operators of all tiles.

    X --conv--dw--add-- Y      SLICE X/0 -> conv/0 - dw/0 - add/0 -+
        +-------------+        SLICE X/1 -> conv/1 - dw/1 - add/1 -+- CONCATENATION -> Y
                               ...

Three ways to treat halos (MOTES, figure 7): recomputed by every tile ("recompute", the patches of
MCUNetV2); parts that several tiles read are blocks of their own ("blocks"); every tensor in equal
blocks that are joined before they are read ("merge"). Along a reduce axis, tiles are shares of a
sum, which ADD puts together (`partial_sums`). It knows boxes; it must not know memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Literal

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Range
from tflm_planner.transforms.tile.boxes import (
    Box,
    NotTileableError,
    along,
    box_name,
    cuts,
    extents,
    full_box,
    grown,
    hull,
    view_unit,
)
from tflm_planner.transforms.tile.eager_order import eager_order, put_off
from tflm_planner.transforms.tile.operator_tiles import (
    AHEAD,
    Border,
    OperatorTile,
    boxes_read,
    operator_tile,
)
from tflm_planner.transforms.tile.parts import PartBuilder, TensorPart

Halo = Literal["recompute", "blocks", "merge"]
HALOS: tuple[Halo, ...] = ("recompute", "blocks", "merge")


@dataclass(frozen=True)
class Cutting:
    """How a region is cut. splits: (axis of the results, parts). backward: the last tile is
    computed first. eager: see `eager_order`. The rest as in `TiledRegion`."""

    splits: tuple[tuple[int, int], ...]
    halo: Halo
    border: Border
    backward: bool = False
    eager: bool = False


class Tiler:
    """The drafted operators of one region in tiles."""

    def __init__(self, model: Model, graph: Graph, ops: Sequence[Op], how: Cutting) -> None:
        """`ops`: the region, in running order."""
        self.draft = Draft(model, graph)
        self.pieces = PartBuilder(self.draft)
        self.results = region_results(graph, ops)
        self._ops, self._how = ops, how
        self._producer = {t: op for op in ops for t in op.outputs}
        self._written: set[Tensor] = set()  # results made whole
        self._made: dict[tuple[Tensor, Box], TensorPart] = {}
        self._computed: dict[tuple[object, ...], Tensor] = {}
        self._plans: dict[int, dict[Tensor, Box]] = {}
        self._blocks: dict[Tensor, list[Box]] = {}
        self._axes: dict[Tensor, int] = {}
        self._pads: dict[Tensor, set[tuple[Range, ...]]] = {}  # around blocks, by who reads them
        self._recipes: dict[tuple[Tensor, Box], OperatorTile] = {}
        self._used: dict[Tensor, Box] | None = None
        self._used = self._plan({t: [full_box(t)] for t in self.results})

    def build(self) -> Draft:
        """Draw up everything. Raises NotTileableError."""
        if any(not t.elements for t in self.results):
            raise NotTileableError("a result of it is empty")
        boxes = {t: self._cut_up(t) for t in self.results}
        tiles = max((len(p) for p in boxes.values()), default=0)
        if tiles < 2:
            raise NotTileableError("its results cannot be cut into two")
        if self._how.halo == "recompute":
            for k in range(tiles):
                pieces = {key: _pieces_of_tile(b, k, tiles) for key, b in boxes.items()}
                self.plan(k, {key: parts for key, parts in pieces.items() if parts})
        else:
            self._lay_blocks(boxes)
        self._make_shared(tiles)
        results: dict[tuple[Tensor, Box], Tensor] = {}
        for k in reversed(range(tiles)) if self._how.backward else range(tiles):
            for t in self.results:
                for box in _pieces_of_tile(boxes[t], k, tiles):
                    results[t, box] = self.fetch(t, box, k)
        for t in self.results:
            if t not in self._written:
                parts = [results[t, box] for box in boxes[t]]
                self.pieces.joined(t, boxes[t], parts)
        return self.finished()

    def _make_shared(self, tiles: int) -> None:
        """Run operators whose results all tiles need before the first tile. These results live
        through the second tile anyway, and the tensors that lead to them then die before any tile
        runs."""
        for op in self._ops:
            for t in op.outputs:
                boxes = {self._box_of(t, k) for k in range(tiles)}
                (box, *others) = boxes
                if box is not None and not others:
                    self._make(op, t, box, 0)

    def _box_of(self, tensor: Tensor, k: int) -> Box | None:
        """The box of a tensor that tile `k` makes in one piece; None if it does not make it so."""
        if self._how.halo == "recompute":
            return self._plans[k].get(tensor)
        blocks = self._blocks.get(tensor, [])
        return blocks[0] if len(blocks) == 1 else None

    def finished(self) -> Draft:
        """The draft, with views first. Pieces of a result that some tile needs as a whole are left
        out, because that tile makes the whole."""
        if self._how.eager:
            self.draft.ops = put_off(eager_order(self.draft.ops))
        self.draft.ops[:0] = self.pieces.views
        read = set(self.results)
        used_ops: list[Op] = []
        for op in reversed(self.draft.ops):
            if any(t in read for t in op.outputs):
                used_ops.append(op)
                read |= set(op.operands())
        self.draft.ops = used_ops[::-1]
        return self.draft

    # --- which boxes ---

    def _cut_up(self, tensor: Tensor) -> list[Box]:
        """The boxes that a result is put together from, in raster order."""
        shape, splits = tensor.shape or (), self._how.splits
        ranges: list[list[tuple[int, int]]] = [[(0, n)] for n in shape]
        for axis, parts in splits:
            if axis < len(shape):
                unit = view_unit(tensor, axis) if len(splits) == 1 else 1
                unit = unit if unit * parts <= shape[axis] else 1
                ranges[axis] = cuts(shape[axis], parts, unit)
        return list(product(*ranges))

    def plan(self, k: int, needs: dict[Tensor, list[Box]]) -> None:
        """Find the box of every tensor that tile `k` needs to make the boxes in `needs`."""
        self._plans[k] = self._plan(needs)

    def _plan(self, needs: dict[Tensor, list[Box]]) -> dict[Tensor, Box]:
        """The box of every tensor of the region. First only the boxes that are used are found, then
        those that must be computed for them."""
        wanted: dict[Tensor, Box] = {}
        for op in reversed(self._ops):
            for t in op.outputs:
                if t in needs:
                    box = hull(needs[t])
                    wide = self._widen_box(op, t, box)
                    wanted[t] = box if self._used is None else wide
                    self._demand(op, t, wide, needs)
        return wanted

    def _widen_box(self, op: Op, tensor: Tensor, box: Box) -> Box:
        """`box`, with an axis taken whole where the operator cannot compute it in parts, and the
        whole region uses no more of it than this tile does: a slice of the result of SOFTMAX, for
        example."""
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
            how = self._recipe(op, tensor, box)
            reads = how.reads
            if self._how.border in AHEAD:
                self._note_pads(op, how)
        for operand, read in zip(op.inputs, reads, strict=True):
            if operand is not None and read is not None:
                needs.setdefault(operand, []).append(read)

    def _note_pads(self, op: Op, how: OperatorTile) -> None:
        """Note the padding that each reader wants around blocks of a tensor, on axes other than the
        one along which the blocks lie."""
        for i, (t, box) in enumerate(zip(op.inputs, how.reads, strict=True)):
            if t is not None and box is not None:
                axis = self._axes.get(t, len(box))
                wanted = how.pads if i == 0 and how.pads is not None else ((0, 0),) * len(box)
                pads = tuple((0, 0) if a == axis else p for a, p in enumerate(wanted))
                self._pads.setdefault(t, set()).add(pads)

    def _recipe(self, op: Op, tensor: Tensor, box: Box) -> OperatorTile:
        """How `op` computes a box; found once and remembered, because both planning and making
        ask."""
        key = (tensor, box)
        if key not in self._recipes:
            self._recipes[key] = operator_tile(op, tensor, box, self._how.border)
        return self._recipes[key]

    def _lay_blocks(self, boxes: dict[Tensor, list[Box]]) -> None:
        """The blocks of every tensor of the region, for the ways without recomputation."""
        if len(self._how.splits) != 1:
            raise NotTileableError("halos are kept along one axis only")
        ((first, parts),) = self._how.splits
        needs: dict[Tensor, list[Box]] = {key: list(b) for key, b in boxes.items()}
        self._axes = dict.fromkeys(self.results, first)
        for op in reversed(self._ops):
            for t in op.outputs:
                if t not in needs:
                    continue
                axis = self._axes.get(t)
                cover = self._widen_box(op, t, hull(needs[t]))
                self._blocks[t] = self._blocks_of(t, axis, parts, cover, needs[t])
                self._follow(op, t, axis)
                for block in self._blocks[t]:
                    self._demand(op, t, block, needs)

    def _blocks_of(
        self, tensor: Tensor, axis: int | None, parts: int, cover: Box, reads: Sequence[Box]
    ) -> list[Box]:
        if axis is None or axis >= len(cover):
            return [full_box(tensor)]
        if self._how.halo == "merge":
            low, high = cover[axis]
            return along(cover, axis, [(a + low, b + low) for a, b in cuts(high - low, parts)])
        edges = sorted({e for box in reads for e in box[axis]})
        return along(cover, axis, list(pairwise(edges)))

    def _follow(self, op: Op, tensor: Tensor, axis: int | None) -> None:
        """The axes of operands that an axis of a result becomes."""
        index = next(i for i, t in enumerate(op.outputs) if t is tensor)
        for link in axis_map(op).links_of(-1 if axis is None else axis, index):
            operand = op.inputs[link.operand]
            if operand is not None:
                self._axes.setdefault(operand, link.axis)

    # --- making them ---

    def fetch(self, tensor: Tensor, box: Box, k: int) -> Tensor:
        """A tensor that holds `box` of `tensor`, for tile `k`."""
        if tensor.is_constant:
            return self.pieces.constant(tensor, box)
        op = self._producer.get(tensor)
        if op is None:
            full = full_box(tensor)
            return self.pieces.cut(TensorPart(full, full, tensor), box, of_outside=True)
        if self._how.halo == "recompute":
            return self.pieces.cut(self._make(op, tensor, self._plans[k][tensor], k), box)
        blocks, axis = self._blocks[tensor], self._axes.get(tensor)
        if axis is None or axis >= len(box) or blocks == [full_box(tensor)]:
            return self.pieces.cut(self._make(op, tensor, blocks[0], k), box)
        near = [b for b in blocks if _intersects(b[axis], box[axis])]
        parts: list[Tensor] = []
        for block in near:
            low, high = max(block[axis][0], box[axis][0]), min(block[axis][1], box[axis][1])
            (part,) = along(box, axis, [(low, high)])
            parts.append(self.pieces.cut(self._make(op, tensor, block, k), part))
        return parts[0] if len(parts) == 1 else self.pieces.halo(tensor, box, parts, axis)

    def _fetch_padded(
        self, tensor: Tensor, box: Box, pads: tuple[Range, ...] | None, k: int
    ) -> Tensor:
        """`fetch`, with a border of zeros."""
        if pads is None:
            return self.fetch(tensor, box, k)
        ahead = self._cut_from_padded(tensor, box, pads, k)
        return ahead or self.pieces.padded(self.fetch(tensor, box, k), pads)

    def _cut_from_padded(
        self, tensor: Tensor, box: Box, pads: tuple[Range, ...], k: int
    ) -> Tensor | None:
        """The same from blocks that are padded before they are joined, each once for all tiles;
        None where that cannot be, or needs more memory than is allowed.

        block 0 |0 x x x 0|   PAD        blocks 0, 1 |0 x x x 0|  join
        block 1 |0 x x x 0|   PAD                      |x x x|    cut out for narrower windows
        """
        op, axis = self._producer.get(tensor), self._axes.get(tensor)
        most, full = self._early_padding(tensor), full_box(tensor)
        if op is None or axis is None or most is None or pads[axis] != (0, 0):
            return None
        if any(r != full[a] for a, r in enumerate(box) if a != axis):
            return None
        parts: list[Tensor] = []
        for block in self._blocks[tensor]:
            if not _intersects(block[axis], box[axis]):
                continue
            part = self._make(op, tensor, block, k)
            if any(r != full[a] for a, r in enumerate(part.actual) if a != axis):
                return None
            wide, padded = grown(part.actual, most), self.pieces.padded(part.tensor, most)
            rows = max(block[axis][0], box[axis][0]), min(block[axis][1], box[axis][1])
            (cut,) = along(wide, axis, [rows])
            parts.append(self.pieces.cut(TensorPart(wide, wide, padded), cut))
        wide = grown(box, most)
        joined = parts[0] if len(parts) == 1 else self.pieces.halo(tensor, wide, parts, axis)
        return self.pieces.cut(TensorPart(wide, wide, joined), grown(box, pads))

    def _early_padding(self, tensor: Tensor) -> tuple[Range, ...] | None:
        """The padding that blocks of a tensor get before they are joined: the most that any reader
        wants or, where nothing may be kept twice, the padding that all readers want alike."""
        wanted = self._pads.get(tensor, set())
        if not wanted or (self._how.border == "ahead" and len(wanted) > 1):
            return None
        sides = [zip(*(pads[a] for pads in wanted), strict=True) for a in range(len(min(wanted)))]
        return tuple((max(low), max(high)) for low, high in sides)

    def _make(self, op: Op, tensor: Tensor, box: Box, k: int) -> TensorPart:
        """The part of a result of the region, made at its first use."""
        key = (tensor, box)
        if key not in self._made:
            if tensor in self._written:
                self._made[key] = TensorPart(box, full_box(tensor), tensor)
                return self._made[key]
            how = self._recipe(op, tensor, box)
            # With wasted rows two wants may come to the same computation; and a result is whole
            # once only.
            form = (tensor, how.out, how.reads, how.pads)
            if form not in self._computed:
                pads = [how.pads, *(None for _ in op.inputs)]
                operands = [
                    None if t is None or r is None else self._fetch_padded(t, r, p, k)
                    for t, r, p in zip(op.inputs, how.reads, pads, strict=False)
                ]
                self._computed[form] = self._emit(op, tensor, how, operands, box)
            self._made[key] = TensorPart(box, how.out, self._computed[form])
        return self._made[key]

    def _emit(
        self, op: Op, tensor: Tensor, how: OperatorTile, operands: list[Tensor | None], box: Box
    ) -> Tensor:
        is_result = box == how.out == full_box(tensor) and any(t is tensor for t in self.results)
        if is_result:
            self._written.add(tensor)
        if how.moved is not None:
            moved = operands[how.moved]
            assert moved is not None, "nothing to move"
            if is_result:
                self.pieces.copied(moved, tensor)
            return tensor if is_result else moved
        result = tensor
        if not is_result:
            result = self.draft.tensor(tensor, box_name(tensor, how.out), extents(how.out))
        self.emit(op, how, operands, result)
        return result

    def emit(
        self, op: Op, how: OperatorTile, operands: list[Tensor | None], result: Tensor
    ) -> None:
        """Append `op` as the recipe says."""
        for index, values in how.constants:
            operands[index] = self.draft.integers("constant", values)
        changed = dict(how.options)
        if op.kind in ("CONCATENATION", "PACK"):
            operands = [t for t in operands if t is not None]
        self.draft.clone(op, operands, [result], **changed)


def _intersects(one: Range, other: Range) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _pieces_of_tile(boxes: list[Box], k: int, tiles: int) -> list[Box]:
    """The pieces of a result that tile `k` makes. All results grow at the same pace, though one may
    have fewer rows, and so fewer pieces, than another."""
    return boxes[k * len(boxes) // tiles : (k + 1) * len(boxes) // tiles]


def region_results(graph: Graph, ops: Sequence[Op]) -> list[Tensor]:
    """The results of some operators that other operators, or the graph's outputs, need."""
    inner = set(ops)
    graph_outputs = set(graph.outputs)
    return [
        t
        for op in ops
        for t in op.outputs
        if t in graph_outputs or any(c not in inner for c in t.consumers)
    ]
