"""What an interval in tiles would need, from its geometry alone: microseconds, nothing is built.

    operators i .. j-1, results cut into P pieces along one axis, tile k:

       X  |dead|in tile k|still to come|        Y  |done|piece k|not there yet|
                \\  \\  halo  /  /
                 each operator's share of the tile, halos recomputed

Ranges go backwards from the results through the operators' axis maps; one walk from j downwards
serves all i. Live bytes are added up for every tile and operator. Results may take over memory of
operands as far as the whole operators' may. Good to a few per cent; trials say what is true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tflm_planner.choice.line import Line
from tflm_planner.ir import Op, Tensor
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.axes import Link, Repeat, axis_map
from tflm_planner.passes.tiler import cuts
from tflm_planner.units import ALIGNMENT

Vector = npt.NDArray[np.int64]
_DISPATCH = 400
"""Instructions of an operator that computes nothing, about."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """Operators first .. end-1 in `parts` along `axis`. head: bytes with all that lives beside.
    tail, temp, instructions: what is added to those of the operators as they are."""

    first: int
    end: int
    axis: int
    parts: int
    head: int
    tail: int
    temp: int
    instructions: int


@dataclass
class _Ranges:
    """What the tiles need of one tensor: rows [low, high) along `axis` for every tile; `axis` is
    None where they need it whole."""

    axis: int | None
    low: Vector
    high: Vector

    def join(self, other: _Ranges) -> bool:
        """Widen by what another reader needs; False where it goes along another axis."""
        if self.axis is None or other.axis is None:
            self.axis = None
            return True
        if self.axis != other.axis:
            return False
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return True


def sketches(
    line: Line, end: int, axis: int, parts: int, *, bound: bool, lowest: int
) -> Iterator[Sketch]:
    """The intervals that end before operator `end`, the shortest first, none with more operators
    than from `lowest` on. bound: parts of tensors are views where they are runs of bytes."""
    walk = _Walk(line, end, axis, parts, bound)
    for first in range(end - 1, lowest - 1, -1):
        if not walk.extend(first):
            return
        yield walk.sketch(first)


@dataclass
class _Walk:
    line: Line
    end: int
    axis: int
    parts: int
    bound: bool
    ranges: dict[int, _Ranges] = field(default_factory=dict[int, _Ranges])
    pieces: dict[int, _Ranges] = field(default_factory=dict[int, _Ranges])
    shares: dict[int, npt.NDArray[np.float64]] = field(
        default_factory=dict[int, npt.NDArray[np.float64]]
    )
    """Operator -> the share of it that each tile computes."""
    extra: float = 0.0
    """Instructions added so far."""

    def extend(self, at: int) -> bool:
        """Take in the operator before; False where it cannot be part of a tile."""
        op = self.line.ops[at]
        if len(op.outputs) != 1 or has_side_effects(op):
            return False
        result = op.outputs[0]
        if id(result) not in self.line.bytes:
            return False
        if self.line.last[id(result)] >= self.end:
            piece = self._cut(result)
            if piece is None:
                return False
            self.pieces[id(result)] = piece
            wanted = self.ranges.setdefault(id(result), _Ranges(piece.axis, piece.low, piece.high))
            if not wanted.join(piece):
                return False
        wanted = self.ranges.get(id(result))
        if wanted is None:  # nobody reads it
            return False
        if not self._needs(op, wanted):
            return False
        size = (result.shape or ())[wanted.axis] if wanted.axis is not None else 1
        ones = np.zeros(self.parts)
        ones[0] = 1.0
        share = ones if wanted.axis is None else (wanted.high - wanted.low) / size
        self.shares[at] = share
        whole = self.line.instructions[at]
        self.extra += whole * (float(share.sum()) - 1)
        self.extra += _DISPATCH * (np.count_nonzero(share) - 1)
        return True

    def _cut(self, tensor: Tensor) -> _Ranges | None:
        """The pieces of a result; None where there are fewer than asked for."""
        shape = tensor.shape or ()
        if self.axis >= len(shape):
            return None
        unit = unit_of(tensor, self.axis)
        unit = unit if unit * self.parts <= shape[self.axis] else 1
        ranges = cuts(shape[self.axis], self.parts, unit)
        if len(ranges) != self.parts:
            return None
        low, high = np.array(ranges, np.int64).T
        return _Ranges(self.axis, low, high)

    def _needs(self, op: Op, wanted: _Ranges) -> bool:
        """Note what the operator reads; False where the axis cannot be split."""
        links = () if wanted.axis is None else tuple(axis_map(op).links_of(wanted.axis))
        if wanted.axis is not None and not links:
            return False
        for index, operand in enumerate(op.inputs):
            if operand is None or id(operand) not in self.line.bytes:
                continue
            found = next((link for link in links if link.operand == index), None)
            needed = _needed(operand, found, wanted)
            if not self.ranges.setdefault(id(operand), needed).join(needed):
                return False
        return True

    # --- adding up ---

    def sketch(self, first: int) -> Sketch:
        """The interval from `first` on."""
        line, n = self.line, self.parts
        beside = sum(line.bytes[id(t)] for t in line.through(first, self.end))
        head = beside + max(
            int(live.max()) + line.scratch[at] for at, live in self._live(first)
        )
        tiles = range(first, self.end)
        entering, leaving = self._borders(first)
        views = (len(entering) + len(leaving)) * n
        tail = sum(line.tail[at] * (np.count_nonzero(self.shares[at]) - 1) for at in tiles)
        temp = sum(line.temp[at] * (np.count_nonzero(self.shares[at]) - 1) for at in tiles)
        return Sketch(
            first, self.end, self.axis, n, head,
            int(tail) + _VIEW_TAIL * views, int(temp) + _VIEW_TEMP * views, int(self.extra),
        )  # fmt: skip

    def _borders(self, first: int) -> tuple[list[int], list[int]]:
        """Tensors that enter the interval, and those that leave it."""
        line = self.line
        entering = [
            key
            for key in self.ranges
            if line.made[key] < first and line.last[key] < self.end
        ]
        leaving = [key for key in self.pieces if line.made[key] >= first]
        return entering, leaving

    def _live(self, first: int) -> Iterator[tuple[int, Vector]]:
        """For each operator the bytes that live while each tile runs it."""
        line = self.line
        entering, leaving = self._borders(first)
        last = {key: self._last_read(key) for key in (*entering, *self.ranges)}
        for at in range(first, self.end):
            op = line.ops[at]
            live = np.zeros(self.parts, np.int64)
            for key in entering:
                live += self._left(key, at <= last[key])
            for key in self.ranges:
                if first <= line.made[key] <= at <= last[key] and key not in leaving:
                    live += self._size(key)
            for key in leaving:
                live += self._done(key, at >= line.made[key])
                if self.pieces[key] is not self.ranges[key] and first <= line.made[key] <= at:
                    rest = self._size(key) - self._piece(key)
                    live += np.where(at <= last[key], np.maximum(rest, 0), 0)
            yield at, live - self._taken(at, op, last, entering)
        if leaving and not self._is_view(leaving[0]):  # all pieces and the whole
            total = sum(2 * line.bytes[key] for key in leaving)
            yield self.end - 1, np.full(self.parts, total, np.int64)

    def _last_read(self, key: int) -> int:
        reads = [at for at in self.shares if any(id(t) == key for t in self.line.ops[at].operands())]
        return max(reads, default=-1)

    def _rows(self, key: int) -> int:
        axis = self.ranges[key].axis
        return 1 if axis is None else (self.line.tensors[key].shape or ())[axis]

    def _size(self, key: int) -> Vector:
        """Bytes of each tile's share of a tensor."""
        found, whole = self.ranges[key], self.line.bytes[key]
        if found.axis is None:
            return np.full(self.parts, whole, np.int64)
        return whole * (found.high - found.low) // self._rows(key)

    def _piece(self, key: int) -> Vector:
        found = self.pieces[key]
        rows = (self.line.tensors[key].shape or ())[self.axis]
        return self.line.bytes[key] * (found.high - found.low) // rows

    def _is_view(self, key: int) -> bool:
        axis = self.ranges[key].axis
        shape = self.line.tensors[key].shape or ()
        return self.bound and axis is not None and math.prod(shape[:axis]) == 1

    def _left(self, key: int, reading: bool) -> Vector:
        """Bytes of an entering tensor that this tile or a later one still reads."""
        found, whole = self.ranges[key], self.line.bytes[key]
        if not self._is_view(key):
            own = self._size(key) if reading and found.axis is not None else 0
            left = np.full(self.parts, whole, np.int64)
            if not reading:
                left[-1] = 0
            return left + own
        rows = self._rows(key)
        start = np.minimum.accumulate(found.low[::-1])[::-1]
        if not reading:
            start = np.append(start[1:], rows)
        return whole * (rows - start) // rows

    def _done(self, key: int, made: bool) -> Vector:
        """Bytes of the pieces of a leaving tensor that are there."""
        pieces = self._piece(key)
        done = np.cumsum(pieces)
        return done if made else done - pieces

    def _taken(self, at: int, op: Op, last: dict[int, int], entering: list[int]) -> Vector:
        """Bytes that the operator's result takes over from operands that die there."""
        best = np.zeros(self.parts, np.int64)
        made = self._size(id(op.outputs[0]))
        for key, gain in self.line.saved[at].items():
            if last.get(key) != at or key not in self.ranges or self.line.last[key] >= self.end:
                continue
            whole = min(self.line.bytes[key], self.line.bytes[id(op.outputs[0])])
            operand = self._size(key)
            if key in entering:
                operand = self._left(key, True) - self._left(key, False)
            best = np.maximum(best, np.minimum(operand, made) - (whole - gain))
        return best


_VIEW_TAIL, _VIEW_TEMP = 12, 64
"""Bytes of a view: of the tail, and while planning."""


def _needed(operand: Tensor, link: Link | None, wanted: _Ranges) -> _Ranges:
    if link is None or wanted.axis is None:
        return _Ranges(None, wanted.low, wanted.high)
    size = (operand.shape or ())[link.axis]
    rows = (wanted.low, wanted.high)
    if isinstance(link.rule, Repeat) and size == 1:
        return _Ranges(None, *rows)
    found = [link.rule.needs((int(a), int(b)), size) for a, b in zip(*rows, strict=True)]
    low, high = np.array(found, np.int64).T
    return _Ranges(link.axis, np.minimum(low, high), high)


def unit_of(tensor: Tensor, axis: int) -> int:
    """The fewest steps along an axis that take a multiple of 16 bytes, where parts along it are
    runs of bytes: the tiler cuts there."""
    shape = tensor.shape or ()
    if math.prod(shape[:axis]) != 1:
        return 1
    step = math.prod(shape[axis + 1 :]) * tensor.nbytes // max(tensor.elements, 1)
    return ALIGNMENT // math.gcd(ALIGNMENT, step) if step else 1
