"""Ranges of rows that tiles need, from the results of an interval back to its operands.

    operators      first ....... at ....... end-1
    extend(at)             <-----|                  each takes in the operator before: its share of
                                                    every tile, and what that reads of its operands

It adds up tail, temporary memory and instructions; it must not know what lives when (`living`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops import has_side_effects
from tflm_planner.support.units import ALIGNMENT
from tflm_planner.tiling.estimate.prologue import Prologue
from tflm_planner.tiling.estimate.ranges import (
    Bools,
    Grid,
    RowRanges,
    Vector,
    aligned_step,
    operand_ranges,
)
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.transforms.tile.tiler import cuts

HaloPolicy = Literal["no", "blocks", "rows"]
"""Halos are recomputed; kept in as many equal blocks as there are tiles, and joined by copying
("merge" in `transforms.tile.tiler`); kept row by row, with nothing copied (what no stock
operators do, and so a floor)."""
_JOIN_TAIL, _JOIN_BYTE = 84, 0.6
"""Bytes of tail of a CONCATENATION; instructions of a byte that it copies, about."""
_DISPATCH = 400
"""Instructions of an operator that computes nothing, about."""


@dataclass(frozen=True, slots=True)
class EstimateLimits:
    """Where a walk ends: bytes of tail and instructions that may be added. views: whether parts
    of tensors are views where they are runs of bytes."""

    tail: int
    instructions: int
    views: bool = True


@dataclass
class BackwardWalk:
    """Operators before `end` in tiles along `axis`, as far as `extend` was called. numbers: of
    tiles, all looked at together: what hangs together with what is the same for all."""

    line: LinearSchedule
    end: int
    axis: int
    numbers: Vector
    limits: EstimateLimits
    kept: HaloPolicy = "no"
    spans: dict[int, tuple[Grid, Grid]] = field(default_factory=dict[int, tuple[Grid, Grid]])
    """Where halos are kept, tensor -> the first row that a tile or a later one reads, and the row
    behind the last one made in it."""
    ranges: dict[int, RowRanges] = field(default_factory=dict[int, RowRanges])
    pieces: dict[int, RowRanges] = field(default_factory=dict[int, RowRanges])
    uneven: dict[int, Bools] = field(default_factory=dict[int, Bools])
    """Tensor -> for which numbers its readers need different parts."""
    last: dict[int, int] = field(default_factory=dict[int, int])
    """Tensor -> its last reader within."""
    sizes: dict[int, Grid] = field(default_factory=dict[int, Grid])
    """Tensor -> bytes of each tile's share of it."""
    early: Prologue = field(default_factory=Prologue)
    """What runs once, before the tiles."""
    beside: int = 0
    """Bytes of the tensors that live through the interval."""
    extra: npt.NDArray[np.float64] = field(init=False)
    tail: Vector = field(init=False)
    temp: Vector = field(init=False)
    """Instructions and bytes added so far."""
    possible: Bools = field(init=False)
    """Numbers for which there are as many tiles, and that do not cost too much so far: longer
    intervals cost more."""
    missing: Bools = field(init=False)
    """Tiles of the grid that a number does not have."""
    need: int = 0
    """Bytes that the operators need as they are."""
    apart: set[int] = field(default_factory=set[int])
    """Tensors that are taken apart: of those no part is a view."""

    def __post_init__(self) -> None:
        self.beside = self.line.crossing[self.end]
        self.extra = np.zeros(len(self.numbers))
        self.tail, self.temp = np.zeros_like(self.numbers), np.zeros_like(self.numbers)
        self._none = np.zeros(len(self.numbers), np.bool_)
        self.possible = ~self._none
        self.missing = np.arange(self.numbers.max()) >= self.numbers[:, None]

    def may_help(self, first: int) -> bool:
        """Whether there is room below what the operators need as they are: all that enters is
        there at first, all that leaves at last."""
        line = self.line
        entering = sum(
            line.bytes[key]
            for key in self.ranges
            if line.made[key] < first and line.last[key] < self.end
        )
        leaving = sum(line.bytes[key] for key in self.pieces)
        return self.beside + max(entering, leaving) < self.need

    def is_cut(self, key: int, first: int) -> Bools | bool:
        """Whether a tensor is there as a whole, or in parts larger than some operator reads."""
        if self.ranges[key].axis is None:
            return False
        whole = self.line.made[key] < first or key in self.early.last
        return whole or self.uneven.get(key, False)

    def extend(self, at: int) -> bool:
        """Take in the operator before; False where it cannot be part of a tile, or none of the
        numbers is possible any more."""
        taken = self._take_in(at)
        self.possible &= (self.extra <= self.limits.instructions) & (self.tail <= self.limits.tail)
        return taken and bool(self.possible.any())

    def _take_in(self, at: int) -> bool:
        op = self.line.ops[at]
        self.need = max(self.need, self.line.needs[at])
        if has_side_effects(op):
            return False
        if len(op.outputs) != 1:
            return self._take_apart(at, op)
        result = op.outputs[0]
        if id(result) not in self.line.bytes:
            return False
        if self.line.last[id(result)] >= self.end:
            self.beside -= self.line.bytes[id(result)]
            piece = self._cut(result)
            if piece is None:
                return False
            self.pieces[id(result)] = piece
            wanted = self.ranges.setdefault(
                id(result), RowRanges(piece.axis, piece.low, piece.high)
            )
            if not wanted.join(piece):
                return False
        wanted = self.ranges.get(id(result))
        if id(result) in self.early.last or (wanted is not None and wanted.axis is None):
            self.early.add(at, op, self.line)
            self.pieces.pop(id(result), None)
            return True
        if wanted is None:  # nobody reads it
            return False
        return self._make(at, op, 0, wanted)

    def _make(self, at: int, op: Op, index: int, wanted: RowRanges) -> bool:
        """Let tiles make what is wanted of a result of the operator."""
        result = op.outputs[index]
        made = wanted if self.kept == "no" else self._grown(result, wanted)
        self.sizes[id(result)] = self.size(id(result), made)
        if not self._needs(at, op, made, index):
            return False
        self._add_up(at, result, made, len(op.outputs))
        return True

    def _take_apart(self, at: int, op: Op) -> bool:
        """Take in an operator with several results, parts of its operand: each reader cuts out its
        own. False where one of them leaves the interval, or is needed whole."""
        keys = [id(t) for t in op.outputs]
        wanted = [self.ranges.get(key) for key in keys]
        if not any(wanted) or any(self.line.last.get(key, self.end) >= self.end for key in keys):
            return False
        if any(key in self.early.last for key in keys) or any(w and w.axis is None for w in wanted):
            return False
        self.apart |= {id(t) for t in op.operands()}
        return all(self._make(at, op, k, w) for k, w in enumerate(wanted) if w is not None)

    def _grown(self, result: Tensor, wanted: RowRanges) -> RowRanges:
        """The rows that each tile makes, if none is made twice."""
        assert wanted.axis is not None, "made before the tiles"
        rows = (result.shape or ())[wanted.axis]
        # Blocks are made when they are wanted and end where they must, so that counting whole
        # ones for every operator would add up to far too much.
        high = np.maximum.accumulate(np.maximum(wanted.high, 0), axis=1)
        start = np.where(self.missing, high, first_wanted(wanted))
        before = np.concatenate((start[:, :1], high[:, :-1]), axis=1)
        self.spans[id(result)] = start, high
        if self.kept == "blocks":
            block = -(-rows // self.numbers)
            joined = (wanted.high - wanted.low > block[:, None]).any(axis=1)
            self.tail += _JOIN_TAIL * self.numbers * joined
            copied = self.size(id(result), wanted).sum(axis=1)
            self.extra += (copied * _JOIN_BYTE + _DISPATCH * self.numbers) * joined
        low = np.where(high > before, before, rows)
        return RowRanges(wanted.axis, low, np.where(high > before, high, 0))

    def _add_up(self, at: int, result: Tensor, wanted: RowRanges, results: int) -> None:
        """What tiles of this operator cost, for one of its results."""
        assert wanted.axis is not None, "made before the tiles"
        rows = (result.shape or ())[wanted.axis]
        made = np.maximum(wanted.high - wanted.low, 0).sum(axis=1)
        again = self.numbers - 1
        instructions = self.line.instructions[at] / results
        self.extra += instructions * (made / rows - 1) + _DISPATCH * again
        self.tail += self.line.tail[at] * again
        self.temp += self.line.temp[at] * again

    def _cut(self, tensor: Tensor) -> RowRanges | None:
        """The pieces of a result; None where there is no such axis. Numbers are not possible for
        which there are fewer pieces."""
        shape = tensor.shape or ()
        if self.axis >= len(shape):
            return None
        rows, unit = shape[self.axis], aligned_step(tensor, self.axis)
        low, high = np.full(self.missing.shape, rows), np.zeros(self.missing.shape, np.int64)
        for k, parts in enumerate(self.numbers.tolist()):
            ranges = cuts(rows, parts, unit if unit * parts <= rows else 1)
            self.possible[k] &= len(ranges) == parts
            low[k, : len(ranges)], high[k, : len(ranges)] = np.array(ranges, np.int64).T
        return RowRanges(self.axis, low, high)

    def _needs(self, at: int, op: Op, wanted: RowRanges, index: int) -> bool:
        """Note what the operator reads for a result; False where the axis cannot be split."""
        assert wanted.axis is not None, "made before the tiles"
        links = self.line.links(at, wanted.axis, index)
        if not links:
            return False
        for index, operand in enumerate(op.inputs):
            if operand is None or id(operand) not in self.line.bytes:
                continue
            found = next((link for link in links if link.operand == index), None)
            needed = operand_ranges(operand, found, wanted)
            known = self.ranges.get(id(operand))
            if known is not None and (differs := known.differs(needed)).any():
                self.uneven[id(operand)] = differs | self.uneven.get(id(operand), False)
            if not self.ranges.setdefault(id(operand), needed).join(needed):
                return False
            self.last.setdefault(id(operand), at)
            self.sizes[id(operand)] = self.size(id(operand), self.ranges[id(operand)])
        return True

    def size(self, key: int, found: RowRanges) -> Grid:
        """Bytes of a part of a tensor for each tile."""
        whole = self.line.bytes[key]
        if found.axis is None:
            return np.full(self.missing.shape, whole, np.int64)
        rows = (self.line.tensors[key].shape or ())[found.axis]
        return whole * np.maximum(found.high - found.low, 0) // rows

    def is_view(self, key: int) -> Bools:
        """Whether the parts that tiles need are runs of bytes at multiples of 16."""
        found, tensor = self.ranges[key], self.line.tensors[key]
        if key in self.pieces and self.line.made[key] >= 0:
            found = self.pieces[key]
        axis, shape = found.axis, tensor.shape or ()
        if (
            not self.limits.views
            or key in self.apart
            or axis is None
            or math.prod(shape[:axis]) != 1
        ):
            return self._none
        step = tensor.nbytes // max(shape[axis], 1)
        if not step % ALIGNMENT:
            return ~self._none
        return ~((found.low * step % ALIGNMENT != 0) & (found.low < found.high)).any(axis=1)


def first_wanted(ranges: RowRanges) -> Grid:
    """The first row that each tile or a later one reads."""
    return np.minimum.accumulate(ranges.low[:, ::-1], axis=1)[:, ::-1]
