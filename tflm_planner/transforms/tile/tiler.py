"""Computes a part of a graph in tiles: drafts the operators of all tiles.

    X --conv--dw--add-- Y      SLICE X/0 -> conv/0 - dw/0 - add/0 -+
        +-------------+        SLICE X/1 -> conv/1 - dw/1 - add/1 -+- CONCATENATION -> Y
                               ...

There are three halo policies (MOTES, figure 7): every tile recomputes halos ("recompute", the
patches of MCUNetV2); parts that several tiles read are separate blocks ("blocks"); every tensor is
made in equal blocks, which are joined before they are read ("merge"). Along a reduce axis, tiles
are shares of a sum, which ADD adds up (`partial_sums`). It knows boxes; it must not know memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.model.draft import Draft, region_results
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.ops.axis_rules import Range
from tflm_planner.transforms.tile.box_plan import BoxCutter, BoxPlan
from tflm_planner.transforms.tile.boxes import (
    Box,
    NotTileableError,
    along,
    box_name,
    extents,
    full_box,
    grow,
)
from tflm_planner.transforms.tile.eager_order import eager_order, postpone
from tflm_planner.transforms.tile.operator_tiles import TileForm
from tflm_planner.transforms.tile.parts import PartBuilder, TensorPart


class Tiler:
    """The drafted operators of one region in tiles. box_plan: which parts of which tensors they
    make."""

    def __init__(self, model: Model, graph: Graph, ops: Sequence[Op], cutting: BoxCutter) -> None:
        """`ops`: the region, in running order."""
        self.draft = Draft(model, graph)
        self.parts = PartBuilder(self.draft)
        self.results = region_results(graph, ops)
        self.box_plan = BoxPlan(ops, self.results, cutting)
        self._ops, self._cutting = ops, cutting
        self._producer = {t: op for op in ops for t in op.outputs}
        self._written: set[Tensor] = set()  # results that were made whole
        self._made: dict[tuple[Tensor, Box], TensorPart] = {}
        self._computed: dict[tuple[object, ...], Tensor] = {}

    def build(self) -> Draft:
        """Draft all operators. Raises NotTileableError."""
        if any(not t.elements for t in self.results):
            raise NotTileableError("a result of it is empty")
        boxes = {t: self.box_plan.cut_up(t) for t in self.results}
        tiles = max((len(p) for p in boxes.values()), default=0)
        if tiles < 2:
            raise NotTileableError("its results cannot be cut into two parts of these sizes")
        if self._cutting.halo == "recompute":
            for k in range(tiles):
                pieces = {key: _pieces_of_tile(b, k, tiles) for key, b in boxes.items()}
                self.box_plan.plan_tile(k, {key: parts for key, parts in pieces.items() if parts})
        else:
            self.box_plan.lay_blocks(boxes)
        self._make_shared(tiles)
        results: dict[tuple[Tensor, Box], Tensor] = {}
        for k in reversed(range(tiles)) if self._cutting.backward else range(tiles):
            for t in self.results:
                for box in _pieces_of_tile(boxes[t], k, tiles):
                    results[t, box] = self.fetch(t, box, k)
        for t in self.results:
            if t not in self._written:
                parts = [results[t, box] for box in boxes[t]]
                self.parts.join(t, boxes[t], parts)
        return self.finish()

    def _make_shared(self, tiles: int) -> None:
        """Draft operators whose results all tiles need before those of the first tile. These
        results live until the second tile in any case, and the tensors from which they are made
        then die before any tile runs."""
        for op in self._ops:
            for t in op.outputs:
                boxes = {self.box_plan.box_of_tile(t, k) for k in range(tiles)}
                (box, *others) = boxes
                if box is not None and not others:
                    self._make(op, t, box, 0)

    def finish(self) -> Draft:
        """The draft, with views first. Operators without a reader are left out: parts of a result
        that some tile makes whole."""
        if self._cutting.eager:
            self.draft.ops = postpone(eager_order(self.draft.ops))
        self.draft.ops[:0] = self.parts.views
        read = set(self.results)
        used_ops: list[Op] = []
        for op in reversed(self.draft.ops):
            if any(t in read for t in op.outputs):
                used_ops.append(op)
                read |= set(op.operands())
        self.draft.ops = used_ops[::-1]
        return self.draft

    def fetch(self, tensor: Tensor, box: Box, k: int) -> Tensor:
        """A tensor with the elements of `tensor` in `box`, for tile `k`."""
        if tensor.is_constant:
            return self.parts.constant(tensor, box)
        op = self._producer.get(tensor)
        if op is None:
            full = full_box(tensor)
            return self.parts.cut(TensorPart(full, full, tensor), box, of_outside=True)
        if self._cutting.halo == "recompute":
            whole = self._make(op, tensor, self.box_plan.box_in_tile(tensor, k), k)
            return self.parts.cut(whole, box)
        blocks, axis = self.box_plan.blocks_of(tensor), self.box_plan.block_axis(tensor)
        if axis is None or axis >= len(box) or blocks == [full_box(tensor)]:
            return self.parts.cut(self._make(op, tensor, blocks[0], k), box)
        near = [b for b in blocks if _intersects(b[axis], box[axis])]
        parts: list[Tensor] = []
        for block in near:
            low, high = max(block[axis][0], box[axis][0]), min(block[axis][1], box[axis][1])
            (part,) = along(box, axis, [(low, high)])
            parts.append(self.parts.cut(self._make(op, tensor, block, k), part))
        return parts[0] if len(parts) == 1 else self.parts.halo(tensor, box, parts, axis)

    def _fetch_padded(
        self, tensor: Tensor, box: Box, pads: tuple[Range, ...] | None, k: int
    ) -> Tensor:
        """`fetch`, with a border of zeros if `pads` is given."""
        if pads is None:
            return self.fetch(tensor, box, k)
        ahead = self._cut_from_padded(tensor, box, pads, k)
        return ahead or self.parts.pad(self.fetch(tensor, box, k), pads)

    def _cut_from_padded(
        self, tensor: Tensor, box: Box, pads: tuple[Range, ...], k: int
    ) -> Tensor | None:
        """The padded box, cut from blocks that are padded before they are joined, each once for all
        tiles; None if that is impossible, or not permitted by the border policy.

        block 0 |0 x x x 0|   PAD        blocks 0, 1 |0 x x x 0|  join
        block 1 |0 x x x 0|   PAD                      |x x x|    cut out for narrower windows
        """
        op, axis = self._producer.get(tensor), self.box_plan.block_axis(tensor)
        most, full = self.box_plan.early_padding(tensor), full_box(tensor)
        if op is None or axis is None or most is None or pads[axis] != (0, 0):
            return None
        if any(r != full[a] for a, r in enumerate(box) if a != axis):
            return None
        parts: list[Tensor] = []
        for block in self.box_plan.blocks_of(tensor):
            if not _intersects(block[axis], box[axis]):
                continue
            part = self._make(op, tensor, block, k)
            if any(r != full[a] for a, r in enumerate(part.actual) if a != axis):
                return None
            wide, padded = grow(part.actual, most), self.parts.pad(part.tensor, most)
            rows = max(block[axis][0], box[axis][0]), min(block[axis][1], box[axis][1])
            (cut,) = along(wide, axis, [rows])
            parts.append(self.parts.cut(TensorPart(wide, wide, padded), cut))
        wide = grow(box, most)
        joined = parts[0] if len(parts) == 1 else self.parts.halo(tensor, wide, parts, axis)
        return self.parts.cut(TensorPart(wide, wide, joined), grow(box, pads))

    def _make(self, op: Op, tensor: Tensor, box: Box, k: int) -> TensorPart:
        """The part of a tensor of the region that covers `box`; drafted at its first use."""
        key = (tensor, box)
        if key not in self._made:
            if tensor in self._written:
                self._made[key] = TensorPart(box, full_box(tensor), tensor)
                return self._made[key]
            form = self.box_plan.form_of(op, tensor, box)
            # If more rows than wanted are computed, two boxes may need the same computation; and
            # a whole result may be made only once.
            computed_key = (tensor, form.out, form.reads, form.pads)
            if computed_key not in self._computed:
                pads = [form.pads, *(None for _ in op.inputs)]
                operands = [
                    None if t is None or r is None else self._fetch_padded(t, r, p, k)
                    for t, r, p in zip(op.inputs, form.reads, pads, strict=False)
                ]
                self._computed[computed_key] = self._emit(op, tensor, form, operands, box)
            self._made[key] = TensorPart(box, form.out, self._computed[computed_key])
        return self._made[key]

    def _emit(
        self, op: Op, tensor: Tensor, form: TileForm, operands: list[Tensor | None], box: Box
    ) -> Tensor:
        is_result = box == form.out == full_box(tensor) and any(t is tensor for t in self.results)
        if is_result:
            self._written.add(tensor)
        if form.moved is not None:
            moved = operands[form.moved]
            assert moved is not None, "nothing to move"
            if is_result:
                self.parts.copy(moved, tensor)
            return tensor if is_result else moved
        result = tensor
        if not is_result:
            result = self.draft.tensor(tensor, box_name(tensor, form.out), extents(form.out))
        self.emit(op, form, operands, result)
        return result

    def emit(self, op: Op, form: TileForm, operands: list[Tensor | None], result: Tensor) -> None:
        """Append a copy of `op`, changed as the form says."""
        for index, values in form.constants:
            operands[index] = self.draft.integers("constant", values)
        changed = dict(form.options)
        if op.kind in ("CONCATENATION", "PACK"):
            operands = [t for t in operands if t is not None]
        self.draft.clone(op, operands, [result], **changed)


def _intersects(one: Range, other: Range) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _pieces_of_tile(boxes: list[Box], k: int, tiles: int) -> list[Box]:
    """The parts of a result that tile `k` makes. All results progress at the same rate, although
    one may have fewer rows, and so fewer parts, than another."""
    return boxes[k * len(boxes) // tiles : (k + 1) * len(boxes) // tiles]
