"""The rows that tiles need, followed from the results of an interval back to its operands.

    positions      first ....... position ....... end-1
    extend(position)                <-----|       adds the operator before: the rows that each tile
                                                  makes of its result and reads of its operands

It adds up tail and instructions. It must not know life spans (`live_bytes`).
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
    IntGrid,
    IntVector,
    RowRanges,
    aligned_step,
    operand_ranges,
)
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.transforms.tile.boxes import cuts

EstimatedHalo = Literal["recompute", "merge", "rows"]
"""What happens to rows that several tiles read. "recompute": each tile computes them again.
"merge": a tensor is kept in equal blocks, one for each tile, which are joined by copying, as in
`transforms.tile.tiler`. "rows": it is kept row by row and nothing is copied; no stock operators
do that, so the result is a lower bound, which `benchmarks/tiers.py` uses."""
_CONCATENATION_TAIL, _INSTRUCTIONS_PER_COPIED_BYTE = 84, 0.6
"""Approximate bytes of tail of a CONCATENATION, and instructions for each byte that it copies."""
_OPERATOR_INSTRUCTIONS = 400
"""Approximate instructions of an operator that computes nothing."""


@dataclass(frozen=True, slots=True)
class EstimateLimits:
    """Limits beyond which a part count becomes infeasible."""

    tail: int
    """Bytes that tiling may add to the tail."""
    instructions: int
    """Instructions that tiling may add."""


@dataclass
class BackwardWalk:
    """The operators from some position up to `end`, in tiles along `axis`; `extend` adds the one
    before.

    All part counts are computed together, one entry of a vector for each. The sums `instructions`
    and `tail` are what tiling has added so far.
    """

    schedule: LinearSchedule
    end: int
    axis: int
    part_counts: IntVector
    limits: EstimateLimits
    halo_policy: EstimatedHalo = "recompute"
    ranges: dict[Tensor, RowRanges] = field(default_factory=dict[Tensor, RowRanges])
    """Rows of a tensor that the operators added so far read; for a result of the interval, also
    its own part."""
    result_parts: dict[Tensor, RowRanges] = field(default_factory=dict[Tensor, RowRanges])
    """For tensors that are needed after the interval: the part that each tile contributes."""
    kept_rows: dict[Tensor, tuple[IntGrid, IntGrid]] = field(
        default_factory=dict[Tensor, "tuple[IntGrid, IntGrid]"]
    )
    """Where halos are kept, for each tile: the first row that this or a later tile reads, and the
    end of the rows that exist after this tile."""
    uneven: dict[Tensor, Bools] = field(default_factory=dict[Tensor, Bools])
    """For which part counts the readers of a tensor need different rows."""
    last_reader: dict[Tensor, int] = field(default_factory=dict[Tensor, int])
    """Position of the last operator of the interval that reads a tensor, within tiles."""
    part_bytes: dict[Tensor, IntGrid] = field(default_factory=dict[Tensor, IntGrid])
    """Bytes of each tile's rows of a tensor."""
    prologue: Prologue = field(default_factory=Prologue)
    """Operators that run once, before the tiles."""
    taken_apart: set[Tensor] = field(default_factory=set[Tensor])
    """Operands of operators with several results (SPLIT): no part of these counts as a view."""
    bytes_beside: int = 0
    """Bytes of the tensors that live through the interval."""
    untiled_bytes: int = 0
    """Largest number of bytes that an operator needs untiled."""
    instructions: npt.NDArray[np.float64] = field(init=False)
    tail: IntVector = field(init=False)
    feasible: Bools = field(init=False)
    """Part counts that give this many tiles and are within the limits so far: longer intervals only
    cost more."""
    no_tile: Bools = field(init=False)
    """Entries of a grid without a tile, because the part count has fewer tiles."""

    def __post_init__(self) -> None:
        self.bytes_beside = self.schedule.crossing_bytes[self.end]
        self.instructions = np.zeros(len(self.part_counts))
        self.tail = np.zeros_like(self.part_counts)
        self._never = np.zeros(len(self.part_counts), np.bool_)
        self.feasible = ~self._never
        self.no_tile = np.arange(self.part_counts.max()) >= self.part_counts[:, None]

    def may_help(self, first: int) -> bool:
        """Whether tiles can need fewer bytes than the untiled operators. All tensors that enter
        exist at the start, and all that leave exist at the end, whatever the tiling."""
        schedule = self.schedule
        entering = sum(
            schedule.bytes[t]
            for t in self.ranges
            if schedule.defined_at[t] < first and schedule.last_use[t] < self.end
        )
        leaving = sum(schedule.bytes[t] for t in self.result_parts)
        return self.bytes_beside + max(entering, leaving) < self.untiled_bytes

    def is_cut(self, tensor: Tensor, first: int) -> Bools | bool:
        """Whether tiles cut rows out of a tensor: because it exists as a whole, or because some
        operator reads less than one of its parts."""
        if self.ranges[tensor].axis is None:
            return False
        is_whole = self.schedule.defined_at[tensor] < first or tensor in self.prologue.last_reader
        return is_whole or self.uneven.get(tensor, False)

    def extend(self, position: int) -> bool:
        """Add the operator before. Returns False if it cannot be part of a tile, or if no part
        count is feasible any more."""
        added = self._add_operator(position)
        self.feasible &= self.instructions <= self.limits.instructions
        self.feasible &= self.tail <= self.limits.tail
        return added and bool(self.feasible.any())

    def _add_operator(self, position: int) -> bool:
        op = self.schedule.ops[position]
        self.untiled_bytes = max(self.untiled_bytes, self.schedule.live_bytes[position])
        if has_side_effects(op):
            return False
        if len(op.outputs) != 1:
            return self._add_splitting_operator(position, op)
        result = op.outputs[0]
        if result not in self.schedule.bytes:
            return False
        if self.schedule.last_use[result] >= self.end and not self._add_result(result):
            return False
        needed = self.ranges.get(result)
        if result in self.prologue.last_reader or (needed is not None and needed.axis is None):
            self.prologue.add(position, op, self.schedule)
            self.result_parts.pop(result, None)
            return True
        if needed is None:  # no operator reads it
            return False
        return self._tile_result(position, op, 0, needed)

    def _add_result(self, result: Tensor) -> bool:
        """Cut a tensor that is needed after the interval; False if that is impossible."""
        self.bytes_beside -= self.schedule.bytes[result]
        part = self._cut(result)
        if part is None:
            return False
        self.result_parts[result] = part
        ranges = self.ranges.setdefault(result, RowRanges(part.axis, part.low, part.high))
        return ranges.join(part)

    def _tile_result(self, position: int, op: Op, index: int, needed: RowRanges) -> bool:
        """Let tiles compute the needed rows of the operator's result number `index`."""
        result = op.outputs[index]
        computed = needed
        if self.halo_policy != "recompute":
            computed = self._without_recomputation(result, needed)
        self.part_bytes[result] = self.rows_bytes(result, computed)
        if not self._read_operands(position, op, computed, index):
            return False
        self._add_cost(position, result, computed, len(op.outputs))
        return True

    def _add_splitting_operator(self, position: int, op: Op) -> bool:
        """Add an operator whose several results are parts of its operand: each tile cuts out the
        results that it reads. False if a result is used after the interval, or is needed whole."""
        last_use, early = self.schedule.last_use, self.prologue.last_reader
        needed = [self.ranges.get(t) for t in op.outputs]
        if not any(needed) or any(last_use.get(t, self.end) >= self.end for t in op.outputs):
            return False
        if any(t in early for t in op.outputs) or any(n and n.axis is None for n in needed):
            return False
        self.taken_apart |= {*op.operands()}
        return all(
            self._tile_result(position, op, k, n) for k, n in enumerate(needed) if n is not None
        )

    def _without_recomputation(self, result: Tensor, needed: RowRanges) -> RowRanges:
        """The rows that each tile computes if the rows of earlier tiles are kept."""
        assert needed.axis is not None, "made before the tiles"
        rows = (result.shape or ())[needed.axis]
        # A block is computed just before its first use, up to the row needed then. Counting whole
        # blocks for every operator would overestimate.
        high = np.maximum.accumulate(np.maximum(needed.high, 0), axis=1)
        start = np.where(self.no_tile, high, first_row_still_read(needed))
        before = np.concatenate((start[:, :1], high[:, :-1]), axis=1)
        self.kept_rows[result] = start, high
        if self.halo_policy == "merge":
            block = -(-rows // self.part_counts)
            joined = (needed.high - needed.low > block[:, None]).any(axis=1)
            self.tail += _CONCATENATION_TAIL * self.part_counts * joined
            copied = self.rows_bytes(result, needed).sum(axis=1)
            self.instructions += joined * (
                copied * _INSTRUCTIONS_PER_COPIED_BYTE + _OPERATOR_INSTRUCTIONS * self.part_counts
            )
        low = np.where(high > before, before, rows)
        return RowRanges(needed.axis, low, np.where(high > before, high, 0))

    def _add_cost(self, position: int, result: Tensor, computed: RowRanges, results: int) -> None:
        """Add the cost of the tiles of an operator, for one of its `results` results."""
        assert computed.axis is not None, "made before the tiles"
        rows = (result.shape or ())[computed.axis]
        computed_rows = np.maximum(computed.high - computed.low, 0).sum(axis=1)
        more_operators = self.part_counts - 1
        untiled = self.schedule.instructions[position] / results
        recomputed = untiled * (computed_rows / rows - 1)
        self.instructions += recomputed + _OPERATOR_INSTRUCTIONS * more_operators
        self.tail += self._added_tail(position, computed.axis, rows)

    def _added_tail(self, position: int, axis: int, rows: int) -> IntVector:
        """Bytes of tail of an operator's tiles, in addition to those of the untiled operator."""
        tail = self.schedule.tail[position]
        parts = [
            self.schedule.part_tail(position, axis, -(-rows // n))
            for n in self.part_counts.tolist()
        ]
        return np.maximum(np.array(parts, np.int64) * self.part_counts - tail, 0)

    def _cut(self, tensor: Tensor) -> RowRanges | None:
        """The parts of a result, one for each tile; None if it lacks the axis. A part count for
        which there are fewer parts becomes infeasible."""
        shape = tensor.shape or ()
        if self.axis >= len(shape):
            return None
        rows, unit = shape[self.axis], aligned_step(tensor, self.axis)
        low, high = np.full(self.no_tile.shape, rows), np.zeros(self.no_tile.shape, np.int64)
        for k, parts in enumerate(self.part_counts.tolist()):
            ranges = cuts(rows, parts, unit if unit * parts <= rows else 1)
            self.feasible[k] &= len(ranges) == parts
            low[k, : len(ranges)], high[k, : len(ranges)] = np.array(ranges, np.int64).T
        return RowRanges(self.axis, low, high)

    def _read_operands(self, position: int, op: Op, computed: RowRanges, index: int) -> bool:
        """Add the rows that the operator reads to compute rows of its result number `index`. False
        if it cannot be split along the axis, or if an operand would be cut along two axes."""
        assert computed.axis is not None, "made before the tiles"
        links = self.schedule.links(position, computed.axis, index)
        if not links:
            return False
        for number, operand in enumerate(op.inputs):
            if operand is None or operand not in self.schedule.bytes:
                continue
            link = next((link for link in links if link.operand == number), None)
            read = operand_ranges(operand, link, computed)
            earlier = self.ranges.get(operand)
            if earlier is not None and (differs := earlier.differs(read)).any():
                self.uneven[operand] = differs | self.uneven.get(operand, False)
            if not self.ranges.setdefault(operand, read).join(read):
                return False
            self.last_reader.setdefault(operand, position)
            self.part_bytes[operand] = self.rows_bytes(operand, self.ranges[operand])
        return True

    def rows_bytes(self, tensor: Tensor, ranges: RowRanges) -> IntGrid:
        """Bytes of each tile's rows of a tensor."""
        tensor_bytes = self.schedule.bytes[tensor]
        if ranges.axis is None:
            return np.full(self.no_tile.shape, tensor_bytes, np.int64)
        rows = (tensor.shape or ())[ranges.axis]
        return tensor_bytes * np.maximum(ranges.high - ranges.low, 0) // rows

    def is_view(self, tensor: Tensor) -> Bools:
        """For which part counts the parts that tiles need are contiguous and begin at multiples of
        16 bytes."""
        ranges = self.ranges[tensor]
        if tensor in self.result_parts and self.schedule.defined_at[tensor] >= 0:
            ranges = self.result_parts[tensor]
        axis, shape = ranges.axis, tensor.shape or ()
        if tensor in self.taken_apart or axis is None or math.prod(shape[:axis]) != 1:
            return self._never
        step = tensor.nbytes // max(shape[axis], 1)
        if not step % ALIGNMENT:
            return ~self._never
        nonempty = ranges.low < ranges.high
        return ~((ranges.low * step % ALIGNMENT != 0) & nonempty).any(axis=1)


def first_row_still_read(ranges: RowRanges) -> IntGrid:
    """For each tile, the first row that it or a later tile reads."""
    return np.minimum.accumulate(ranges.low[:, ::-1], axis=1)[:, ::-1]
