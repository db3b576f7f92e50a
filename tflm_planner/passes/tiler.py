"""Computes a part of a graph in tiles: draws up the operators of all tiles.

    X --conv--dw--add-- Y      SLICE X/0 -> conv/0 - dw/0 - add/0 -+
        +-------------+        SLICE X/1 -> conv/1 - dw/1 - add/1 -+- CONCATENATION -> Y
                               ...

Three ways to treat halos (MOTES, figure 7): recomputed by every tile ("recompute", the patches of
MCUNetV2); parts that several tiles read are blocks of their own ("blocks"); every tensor in equal
blocks that are joined before they are read ("merge").
It knows boxes; it must not know memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Literal

import numpy as np

from tflm_planner.ir import Graph, Model, Op, Tensor
from tflm_planner.passes.recipes import (
    Border,
    Box,
    NotTileableError,
    Recipe,
    extents,
    full_box,
    hull,
    recipe,
)  # fmt: skip
from tflm_planner.rewriter_draft import Draft
from tflm_planner.units import ALIGNMENT

Halo = Literal["recompute", "blocks", "merge"]
HALOS: tuple[Halo, ...] = ("recompute", "blocks", "merge")
MOST_PIECES = 10
"""Operands of one CONCATENATION in TFLM (kMaxInputNum)."""
_DTYPES = {
    "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "float32": np.float32, "bool": np.bool_, "uint32": np.uint32,
}  # fmt: skip


def cuts(size: int, parts: int, unit: int = 1) -> list[tuple[int, int]]:
    """`size` in about `parts` ranges that start at multiples of `unit`; the last may be smaller,
    and there are fewer where the size does not give as many."""
    units = -(-size // unit)
    parts = min(parts, units)
    edges = [min(units * k // parts * unit, size) for k in range(parts + 1)]
    return [(a, b) for a, b in pairwise(edges) if a < b]


@dataclass(frozen=True)
class Part:
    """A box of a tensor that exists. valid: where it holds what the whole tensor would; actual:
    the tensor's own extent, with wasted rows."""

    valid: Box
    actual: Box
    tensor: Tensor


class Tiler:
    """The drafted operators of one region in tiles."""

    def __init__(
        self,
        model: Model,
        graph: Graph,
        ops: Sequence[Op],
        splits: Sequence[tuple[int, int]],
        halo: Halo,
        border: Border,
    ) -> None:
        """`ops`: the region, in running order. `splits`: (axis of the results, parts)."""
        self.draft = Draft(model, graph)
        self._ops, self._splits = ops, list(splits)
        self._halo: Halo = halo
        self._border: Border = border
        self._producer = {id(t): op for op in ops for t in op.outputs}
        inner = {id(op) for op in ops}
        kept = {id(t) for t in graph.outputs}
        self._results = [
            t
            for op in ops
            for t in op.outputs
            if id(t) in kept or any(id(c) not in inner for c in t.consumers)
        ]
        self._written: set[int] = set()  # results made whole
        self._made: dict[tuple[int, Box], Part] = {}
        self._computed: dict[tuple[object, ...], Tensor] = {}
        self._slices: dict[tuple[int, Box], Tensor] = {}
        self._padded: dict[tuple[int, object], Tensor] = {}
        self._views: list[Op] = []
        self._plans: dict[int, dict[int, Box]] = {}
        self._blocks: dict[int, list[Box]] = {}

    def build(self) -> Draft:
        """Draw up everything. Raises NotTileableError."""
        pieces = {id(t): self._pieces(t) for t in self._results}
        tiles = max((len(p) for p in pieces.values()), default=0)
        if tiles < 2:
            raise NotTileableError("its results cannot be cut into two")
        if self._halo == "recompute":
            for k in range(tiles):
                self._plans[k] = self._wanted(pieces, k)
        else:
            self._lay_blocks(pieces)
        made: dict[int, list[Tensor]] = {id(t): [] for t in self._results}
        for k in range(tiles):
            for t in self._results:
                if k < len(pieces[id(t)]):
                    made[id(t)].append(self._fetch(t, pieces[id(t)][k], k))
        for t in self._results:
            if id(t) not in self._written:
                self._join(t, made[id(t)])
        self.draft.ops[:0] = self._views
        self._drop_unread()
        return self.draft

    def _drop_unread(self) -> None:
        """Pieces of a result that some tile needed, and so made, as a whole."""
        read = {id(t) for t in self._results}
        kept: list[Op] = []
        for op in reversed(self.draft.ops):
            if any(id(t) in read for t in op.outputs):
                kept.append(op)
                read |= {id(t) for t in op.operands()}
        self.draft.ops = kept[::-1]

    # --- which boxes ---

    def _pieces(self, tensor: Tensor) -> list[Box]:
        """The boxes that a result is put together from, in raster order."""
        shape = tensor.shape or ()
        ranges: list[list[tuple[int, int]]] = [[(0, n)] for n in shape]
        for axis, parts in self._splits:
            if axis < len(shape):
                unit = _unit(tensor, axis) if len(self._splits) == 1 else 1
                unit = unit if unit * parts <= shape[axis] else 1
                ranges[axis] = cuts(shape[axis], parts, unit)
        return list(product(*ranges))

    def _wanted(self, pieces: dict[int, list[Box]], k: int) -> dict[int, Box]:
        """Tensor -> the box of it that tile `k` needs."""
        needs: dict[int, list[Box]] = {
            key: [boxes[k]] for key, boxes in pieces.items() if k < len(boxes)
        }
        wanted: dict[int, Box] = {}
        for op in reversed(self._ops):
            for t in op.outputs:
                if id(t) not in needs:
                    continue
                wanted[id(t)] = hull(needs[id(t)])
                how = recipe(op, wanted[id(t)], self._border)
                for operand, box in zip(op.inputs, how.reads, strict=True):
                    if operand is not None and box is not None:
                        needs.setdefault(id(operand), []).append(box)
        return wanted

    def _lay_blocks(self, pieces: dict[int, list[Box]]) -> None:
        """The blocks of every tensor of the region, for the ways without recomputation."""
        if len(self._splits) != 1:
            raise NotTileableError("halos are kept along one axis only")
        ((axis, parts),) = self._splits
        needs: dict[int, list[Box]] = {key: list(boxes) for key, boxes in pieces.items()}
        for op in reversed(self._ops):
            for t in op.outputs:
                reads = needs.get(id(t), [])
                if not reads:
                    continue
                cover = hull(reads)
                if axis >= len(cover):
                    blocks = [full_box(t)]
                elif self._halo == "merge":
                    low, high = cover[axis]
                    ranges = [(a + low, b + low) for a, b in cuts(high - low, parts)]
                    blocks = _along(cover, axis, ranges)
                else:
                    edges = sorted({e for box in reads for e in box[axis]})
                    blocks = _along(cover, axis, list(pairwise(edges)))
                self._blocks[id(t)] = blocks
                for block in blocks:
                    how = recipe(op, block, self._border)
                    for operand, box in zip(op.inputs, how.reads, strict=True):
                        if operand is not None and box is not None:
                            needs.setdefault(id(operand), []).append(box)

    # --- making them ---

    def _fetch(self, tensor: Tensor, box: Box, k: int) -> Tensor:
        """A tensor that holds `box` of `tensor`, for tile `k`."""
        if tensor.is_constant:
            return self._constant(tensor, box)
        op = self._producer.get(id(tensor))
        if op is None:
            whole = full_box(tensor)
            return self._cut(Part(whole, whole, tensor), box, of_outside=True)
        if self._halo == "recompute":
            return self._cut(self._make(op, tensor, self._plans[k][id(tensor)], k), box)
        ((axis, _),) = self._splits
        blocks = self._blocks[id(tensor)]
        if axis >= len(box) or blocks == [full_box(tensor)]:
            return self._cut(self._make(op, tensor, blocks[0], k), box)
        near = [b for b in blocks if b[axis][0] < box[axis][1] and box[axis][0] < b[axis][1]]
        parts: list[Tensor] = []
        for block in near:
            low, high = max(block[axis][0], box[axis][0]), min(block[axis][1], box[axis][1])
            part = (*box[:axis], (low, high), *box[axis + 1 :])
            parts.append(self._cut(self._make(op, tensor, block, k), part))
        if len(parts) == 1:
            return parts[0]
        key = (id(tensor), box)
        if key not in self._slices:
            joined = self.draft.tensor(tensor, _named(tensor, box, "halo"), extents(box))
            self._concatenate(parts, joined, axis)
            self._slices[key] = joined
        return self._slices[key]

    def _make(self, op: Op, tensor: Tensor, box: Box, k: int) -> Part:
        """The part of a result of the region, made at its first use."""
        key = (id(tensor), box)
        if key not in self._made:
            how = recipe(op, box, self._border)
            # With wasted rows two wants may come to the same computation; and a result is whole
            # once only.
            form = (id(tensor), how.out, how.reads, how.pads)
            if id(tensor) in self._written:
                self._made[key] = Part(box, full_box(tensor), tensor)
                return self._made[key]
            if form not in self._computed:
                operands = [
                    None if t is None or r is None else self._fetch(t, r, k)
                    for t, r in zip(op.inputs, how.reads, strict=True)
                ]
                self._computed[form] = self._emit(op, tensor, how, operands, box)
            self._made[key] = Part(box, how.out, self._computed[form])
        return self._made[key]

    def _emit(
        self, op: Op, tensor: Tensor, how: Recipe, operands: list[Tensor | None], box: Box
    ) -> Tensor:
        whole = box == full_box(tensor)
        if op.kind == "CONCATENATION" and not whole:
            kept = [t for t in operands if t is not None]
            if len(kept) == 1:
                return kept[0]
            operands = list[Tensor | None](kept)
        changed: dict[str, Any] = {}
        if op.kind in ("PAD", "PADV2"):
            pads = how.pads
            if pads is not None:
                if all(p == (0, 0) for p in pads) and operands[0] is not None:
                    return operands[0]
                operands[1] = self.draft.integers("paddings", pads)
        elif how.pads is not None and operands[0] is not None:
            operands[0] = self._pad(operands[0], how.pads)
        if how.padding is not None:
            changed["padding"] = how.padding
        if not whole and op.kind == "RESHAPE":
            changed |= self._reshaped(op, operands, how.out)
        if not whole and op.kind == "SLICE" and operands[0] is not None:
            # Nothing more is read than is wanted.
            operands[1] = self.draft.integers("begin", [0] * len(how.out))
            operands[2] = self.draft.integers("size", extents(how.out))
        if whole and any(t is tensor for t in self._results):
            result = tensor
            self._written.add(id(tensor))
        else:
            result = self.draft.tensor(tensor, _named(tensor, box), extents(how.out))
        self.draft.clone(op, operands, [result], **changed)
        return result

    def _reshaped(self, op: Op, operands: list[Tensor | None], out: Box) -> dict[str, Any]:
        if len(operands) > 1:
            operands[1] = self.draft.integers("shape", extents(out))
        if op.options is None or getattr(op.options, "newShape", None) is None:
            return {}
        return {"newShape": np.array(extents(out), np.int32)}

    def _pad(self, tensor: Tensor, pads: tuple[tuple[int, int], ...]) -> Tensor:
        key = (id(tensor), pads)
        if key not in self._padded:
            shape = [n + sum(p) for n, p in zip(tensor.shape or (), pads, strict=True)]
            padded = self.draft.tensor(tensor, f"{tensor.name}/padded", shape)
            paddings = self.draft.integers("paddings", pads)
            self.draft.op("PAD", [tensor, paddings], [padded])
            self._padded[key] = padded
        return self._padded[key]

    def _cut(self, part: Part, box: Box, *, of_outside: bool = False) -> Tensor:
        """SLICE `box` out of a part; nothing to do when it is the whole part."""
        if box == part.actual:
            return part.tensor
        key = (id(part.tensor), box)
        if key not in self._slices:
            begin = [r[0] - p[0] for r, p in zip(box, part.actual, strict=True)]
            cut = self.draft.tensor(part.tensor, _named(part.tensor, box), extents(box))
            constants = [self.draft.integers("begin", begin)]
            constants.append(self.draft.integers("size", extents(box)))
            self.draft.op("SLICE", [part.tensor, *constants], [cut])
            if of_outside and _is_run(part.actual, box):
                # All before the first tile, so that the whole tensor dies row by row.
                self._views.append(self.draft.ops.pop())
            self._slices[key] = cut
        return self._slices[key]

    def _constant(self, tensor: Tensor, box: Box) -> Tensor:
        """Weights of some output channels, and their scales."""
        if box == full_box(tensor):
            return tensor
        key = (id(tensor), box)
        if key in self._slices:
            return self._slices[key]
        data, dtype = tensor.buffer.data, _DTYPES.get(tensor.type_name)
        if data is None or dtype is None or tensor.raw.sparsity is not None:
            raise NotTileableError(f"constant {tensor.name!r} of {tensor.type_name} cannot be cut")
        values = data[: tensor.nbytes].copy().view(dtype).reshape(tensor.shape or ())
        values = np.ascontiguousarray(values[tuple(slice(*r) for r in box)])
        scales = _cut_scales(tensor.quantization, tensor, box)
        name = _named(tensor, box)
        made = self.draft.constant(name, values, tensor.type_name, tensor, scales)
        self._slices[key] = made
        return made

    # --- putting together ---

    def _join(self, tensor: Tensor, pieces: list[Tensor]) -> None:
        """CONCATENATION along every axis that was cut, the innermost one first."""
        boxes = self._pieces(tensor)
        starts = [(axis, len({b[axis] for b in boxes})) for axis in range(len(boxes[0]))]
        order = [(axis, count) for axis, count in starts if count > 1]
        while len(order) > 1:
            axis, count = order.pop()
            rows: list[Tensor] = []
            for i in range(0, len(pieces), count):
                row = pieces[i : i + count]
                if len(row) == 1:
                    rows.append(row[0])
                    continue
                sizes = list(row[0].shape or ())
                sizes[axis] = sum((p.shape or ())[axis] for p in row)
                joined = self.draft.tensor(tensor, f"{tensor.name}/row{i // count}", sizes)
                self._concatenate(row, joined, axis)
                rows.append(joined)
            pieces = rows
        self._concatenate(pieces, tensor, order[0][0])

    def _concatenate(self, pieces: list[Tensor], into: Tensor, axis: int) -> None:
        """As a tree where there are more pieces than TFLM takes."""
        while len(pieces) > MOST_PIECES:
            width = max(-(-len(pieces) // MOST_PIECES), 2)
            grouped: list[Tensor] = []
            for i in range(0, len(pieces), width):
                group = pieces[i : i + width]
                if len(group) == 1:
                    grouped += group
                    continue
                sizes = list(group[0].shape or ())
                sizes[axis] = sum((p.shape or ())[axis] for p in group)
                joined = self.draft.tensor(into, f"{into.name}/join{i}", sizes)
                self._concatenate(group, joined, axis)
                grouped.append(joined)
            pieces = grouped
        self.draft.op("CONCATENATION", list[Tensor | None](pieces), [into], axis=axis)


def _along(box: Box, axis: int, ranges: Sequence[tuple[int, int]]) -> list[Box]:
    return [(*box[:axis], r, *box[axis + 1 :]) for r in ranges]


def _unit(tensor: Tensor, axis: int) -> int:
    """The fewest steps along an axis that take a multiple of 16 bytes, so that parts can be
    views; 1 where parts along it are no runs of bytes."""
    shape = tensor.shape or ()
    if math.prod(shape[:axis]) != 1:
        return 1
    step = math.prod(shape[axis + 1 :]) * tensor.nbytes // max(tensor.elements, 1)
    return ALIGNMENT // math.gcd(ALIGNMENT, step) if step else 1


def _is_run(whole: Box, box: Box) -> bool:
    """Whether a box is one run of bytes of the whole."""
    sizes = extents(whole)
    cut = [a for a, r in enumerate(box) if r != whole[a]]
    return len(cut) == 1 and math.prod(sizes[: cut[0]]) == 1


def _cut_scales(quantization: Any, tensor: Tensor, box: Box) -> Any:
    """Per-channel scales of the channels that are left."""
    if quantization is None or quantization.scale is None or len(quantization.scale) < 2:
        return quantization
    low, high = box[int(quantization.quantizedDimension)]
    if high - low == len(quantization.scale):
        return quantization
    made = copy(quantization)
    made.scale = quantization.scale[low:high].copy()
    points = quantization.zeroPoint
    if points is not None and len(points) > 1:
        made.zeroPoint = points[low:high].copy()
    return made


def _named(tensor: Tensor, box: Box, what: str = "") -> str:
    whole = full_box(tensor)
    cut = [f"{'nhwc'[a] if len(box) == 4 else a}{r[0]}:{r[1]}"
           for a, r in enumerate(box) if len(whole) != len(box) or r != whole[a]]  # fmt: skip
    return "/".join(p for p in (tensor.name, ",".join(cut), what) if p)
