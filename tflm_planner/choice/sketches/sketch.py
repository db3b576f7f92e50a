"""What an interval in tiles would need, from its geometry alone: microseconds, nothing is built.

    operators i .. j-1, results cut into P pieces along one axis, tile k:

       X  |dead|in tile k|still to come|        Y  |done|piece k|not there yet|
                \\  \\  halo  /  /
                 each operator's share of the tile, halos recomputed

Ranges go backwards from the results through the operators' axis maps; one walk from j downwards
serves all i. Live bytes are added up for every tile and operator. What tiles need whole is made
before them (`early`). Results may take over memory of operands as far as the whole operators' may.
Good to a few per cent; trials say what is true.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tflm_planner.choice.sketches.early import Early
from tflm_planner.choice.sketches.line import Line
from tflm_planner.choice.sketches.ranges import Ranges, Vector, needed_of, unit_of
from tflm_planner.ir import Op, Tensor
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.axes import axis_map
from tflm_planner.passes.tiler import cuts
from tflm_planner.units import ALIGNMENT

Kept = Literal["no", "blocks", "rows"]
"""Halos are recomputed; kept in as many equal blocks as there are tiles, and joined by copying
("merge" in `passes.tiler`); kept row by row, with nothing copied (what no stock operators do, and
so a floor)."""
_JOIN_TAIL, _JOIN_BYTE = 84, 0.6
"""Bytes of tail of a CONCATENATION; instructions of a byte that it copies, about."""
_DISPATCH = 400
"""Instructions of an operator that computes nothing, about."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """Operators first .. end-1 in `parts` along `axis`. head: bytes with all that lives beside.
    tail, temp, instructions: what is added to those of the operators as they are. slices, joins:
    whether parts are no views, and have to be cut out, and put together, by copying."""

    first: int
    end: int
    axis: int
    parts: int
    head: int
    tail: int
    temp: int
    instructions: int
    slices: bool = False
    joins: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a walk ends: bytes of tail and instructions that may be added. views: whether parts
    of tensors are views where they are runs of bytes."""

    tail: int
    instructions: int
    views: bool = True


def sketches(
    line: Line,
    end: int,
    axis: int,
    parts: int,
    firsts: Collection[int],
    limits: Limits,
    kept: Kept = "no",
) -> Iterator[Sketch]:
    """The intervals that end before operator `end` and begin at one of `firsts`, the shortest
    first; of those that what enters and what leaves does not already fill as much as they take
    as they are. kept: whether halos are kept instead of recomputed."""
    walk = _Walk(line, end, axis, parts, limits, kept)
    for first in range(end - 1, min(firsts, default=end) - 1, -1):
        if not walk.extend(first) or walk.is_beyond:
            return
        if first in firsts and walk.may_help(first):
            yield walk.sketch(first)


@dataclass
class _Walk:
    line: Line
    end: int
    axis: int
    parts: int
    limits: Limits
    kept: Kept = "no"
    spans: dict[int, tuple[Vector, Vector]] = field(
        default_factory=dict[int, tuple[Vector, Vector]]
    )
    """Where halos are kept, tensor -> the first row that a tile or a later one reads, and the row
    behind the last one made in it."""
    stays: dict[int, tuple[Vector, Vector, Vector]] = field(
        default_factory=dict[int, tuple[Vector, Vector, Vector]]
    )
    """The same as bytes: see `_stays`."""
    ranges: dict[int, Ranges] = field(default_factory=dict[int, Ranges])
    pieces: dict[int, Ranges] = field(default_factory=dict[int, Ranges])
    uneven: set[int] = field(default_factory=set[int])
    """Tensors of which readers need different parts."""
    last: dict[int, int] = field(default_factory=dict[int, int])
    """Tensor -> its last reader within."""
    sizes: dict[int, Vector] = field(default_factory=dict[int, Vector])
    """Tensor -> bytes of each tile's share of it."""
    early: Early = field(default_factory=Early)
    """What runs once, before the tiles."""
    beside: int = 0
    """Bytes of the tensors that live through the interval."""
    extra: float = 0.0
    tail: int = 0
    temp: int = 0
    """Instructions and bytes added so far."""
    need: int = 0
    """Bytes that the operators need as they are."""
    apart: set[int] = field(default_factory=set[int])
    """Tensors that are taken apart: of those no part is a view."""

    def __post_init__(self) -> None:
        self.beside = self.line.crossing[self.end]

    @property
    def is_beyond(self) -> bool:
        """Whether the interval costs too much already; longer ones cost more."""
        return self.extra > self.limits.instructions or self.tail > self.limits.tail

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

    def _is_cut(self, key: int, first: int) -> bool:
        """Whether a tensor is there as a whole, or in parts larger than some operator reads."""
        entering = self.line.made[key] < first
        apart = entering or key in self.uneven or key in self.early.last
        return self.ranges[key].axis is not None and apart

    def extend(self, at: int) -> bool:
        """Take in the operator before; False where it cannot be part of a tile."""
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
            wanted = self.ranges.setdefault(id(result), Ranges(piece.axis, piece.low, piece.high))
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

    def _make(self, at: int, op: Op, index: int, wanted: Ranges) -> bool:
        """Let tiles make what is wanted of a result of the operator."""
        result = op.outputs[index]
        made = wanted if self.kept == "no" else self._grown(result, wanted)
        self.sizes[id(result)] = self._size(id(result), made)
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

    def _grown(self, result: Tensor, wanted: Ranges) -> Ranges:
        """The rows that each tile makes, if none is made twice."""
        assert wanted.axis is not None, "made before the tiles"
        rows = (result.shape or ())[wanted.axis]
        block = 1 if self.kept == "rows" else -(-rows // self.parts)
        # Blocks are made when they are wanted and end where they must, so that counting whole
        # ones for every operator would add up to far too much.
        high = np.maximum.accumulate(np.maximum(wanted.high, 0))
        start = np.minimum.accumulate(wanted.low[::-1])[::-1]
        before = np.concatenate(([start[0]], high[:-1]))
        self.spans[id(result)] = start, high
        joined = self.kept == "blocks" and bool((wanted.high - wanted.low > block).any())
        if joined:
            self.tail += _JOIN_TAIL * self.parts
            copied = self._size(id(result), wanted).sum()
            self.extra += float(copied) * _JOIN_BYTE + _DISPATCH * self.parts
        low = np.where(high > before, before, rows)
        return Ranges(wanted.axis, low, np.where(high > before, high, 0))

    def _add_up(self, at: int, result: Tensor, wanted: Ranges, results: int) -> None:
        """What tiles of this operator cost, for one of its results."""
        assert wanted.axis is not None, "made before the tiles"
        rows = (result.shape or ())[wanted.axis]
        share = np.maximum(wanted.high - wanted.low, 0) / rows
        again = self.parts - 1
        instructions = self.line.instructions[at] / results
        self.extra += instructions * (float(share.sum()) - 1) + _DISPATCH * again
        self.tail += self.line.tail[at] * again
        self.temp += self.line.temp[at] * again

    def _cut(self, tensor: Tensor) -> Ranges | None:
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
        return Ranges(self.axis, low, high)

    def _needs(self, at: int, op: Op, wanted: Ranges, index: int) -> bool:
        """Note what the operator reads for a result; False where the axis cannot be split."""
        assert wanted.axis is not None, "made before the tiles"
        links = tuple(axis_map(op).links_of(wanted.axis, index))
        if not links:
            return False
        for index, operand in enumerate(op.inputs):
            if operand is None or id(operand) not in self.line.bytes:
                continue
            found = next((link for link in links if link.operand == index), None)
            needed = needed_of(operand, found, wanted)
            known = self.ranges.get(id(operand))
            if known is not None and not known.equals(needed):
                self.uneven.add(id(operand))
            if not self.ranges.setdefault(id(operand), needed).join(needed):
                return False
            self.last.setdefault(id(operand), at)
            self.sizes[id(operand)] = self._size(id(operand), self.ranges[id(operand)])
        return True

    # --- adding up ---

    def sketch(self, first: int) -> Sketch:
        """The interval from `first` on."""
        line, n = self.line, self.parts
        known = self.ranges | self.early.last
        entering = [k for k in known if line.made[k] < first and line.last[k] < self.end]
        live = self._live(first, entering)
        self.early.lay(live, line, first, entering, self.ranges)
        scratch = np.array(line.scratch[first : self.end], np.int64)
        head = self.beside + int((live.max(axis=1) + scratch).max())
        views = (sum(k in self.ranges for k in entering) + len(self.pieces)) * n
        return Sketch(
            first, self.end, self.axis, n, max(head, self._joined()),
            self.tail + _VIEW_TAIL * views, self.temp + _VIEW_TEMP * views, int(self.extra),
            bool(self.apart)
            or not all(self._is_view(key) for key in self.ranges if self._is_cut(key, first)),
            not all(map(self._is_view, self.pieces)),
        )  # fmt: skip

    def _live(self, first: int, entering: list[int]) -> Vector:
        """Bytes that live while an operator (row) of a tile (column) runs."""
        line = self.line
        live = np.zeros((self.end - first, self.parts), np.int64)
        for key in (k for k in entering if k in self.ranges):
            after = self.last[key] + 1 - first
            live[:after] += self._left(key, True)
            live[after:] += self._left(key, False)
        for key, size in self.sizes.items():
            made = line.made[key] - first
            if made < 0 or line.made[key] in self.early.ops:
                continue
            after = max(self.last.get(key, -1) + 1 - first, made + 1)
            if key not in self.pieces:
                if key in self.spans:
                    self._keep(live, key, made, after)
                else:
                    live[made:after] += size
                continue
            piece = self._piece(key)
            done = np.cumsum(piece)
            live[made:] += done
            live[:made] += done - piece
            live[made:after] += np.maximum(size - piece, 0)
        for at in self.early.ops:
            key = id(line.ops[at].outputs[0])
            if line.last[key] >= self.end:
                live += line.bytes[key]
            elif key in self.ranges:
                live += line.bytes[key]
                live[self.last[key] + 1 - first :, -1] -= line.bytes[key]
        for at in range(first, self.end):
            if len(line.ops[at].outputs) > 1:
                live[at - first] -= self._handed_on(at, entering)
            elif line.saved[at] and at not in self.early.ops:
                live[at - first] -= self._taken(at, entering)
        return live

    def _keep(self, live: Vector, key: int, made: int, after: int) -> None:
        """Add the rows of a tensor that are kept from tile to tile, and what is joined of them."""
        before, while_read, behind = self._stays(key)
        live[:made] += before
        live[made:after] += while_read
        live[after:] += behind
        if self.kept == "blocks":
            live[made + 1 : after] += self._size(key, self.ranges[key])

    def _stays(self, key: int) -> tuple[Vector, Vector, Vector]:
        """Bytes that are kept of a tensor before a tile's share is made, from then on, and behind
        the last operator that reads it."""
        if key not in self.stays:
            start, high = self.spans[key]
            before = np.concatenate(([start[0]], high[:-1]))
            behind = np.concatenate((start[1:], high[-1:]))
            step = self.line.bytes[key] // max(self._rows(key), 1)
            table = np.maximum((before - start, high - start, high - behind), 0) * step
            self.stays[key] = (table[0], table[1], table[2])
        return self.stays[key]

    def _joined(self) -> int:
        """Bytes while pieces that are no views are put together."""
        apart = [key for key in self.pieces if not self._is_view(key)]
        return self.beside + 2 * sum(self.line.bytes[key] for key in apart)

    def _rows(self, key: int) -> int:
        axis = self.ranges[key].axis
        return 1 if axis is None else (self.line.tensors[key].shape or ())[axis]

    def _size(self, key: int, found: Ranges) -> Vector:
        """Bytes of a part of a tensor for each tile."""
        whole = self.line.bytes[key]
        if found.axis is None:
            return np.full(self.parts, whole, np.int64)
        rows = (self.line.tensors[key].shape or ())[found.axis]
        return whole * np.maximum(found.high - found.low, 0) // rows

    def _piece(self, key: int) -> Vector:
        found = self.pieces[key]
        rows = (self.line.tensors[key].shape or ())[self.axis]
        return self.line.bytes[key] * (found.high - found.low) // rows

    def _is_view(self, key: int) -> bool:
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
            return False
        step = tensor.nbytes // max(shape[axis], 1)
        if not step % ALIGNMENT:
            return True
        return not (found.low * step % ALIGNMENT)[found.high > found.low].any()

    def _left(self, key: int, reading: bool) -> Vector:
        """Bytes of an entering tensor that this tile or a later one still reads."""
        found, whole = self.ranges[key], self.line.bytes[key]
        if not self._is_view(key):
            own = self._size(key, found) if reading and found.axis is not None else 0
            left = np.full(self.parts, whole, np.int64)
            if not reading:
                left[-1] = 0
            return left + own
        rows = self._rows(key)
        start = np.minimum.accumulate(found.low[::-1])[::-1]
        if not reading:
            start = np.append(start[1:], rows)
        return whole * (rows - start) // rows

    def _handed_on(self, at: int, entering: list[int]) -> Vector:
        """Bytes of an operand that is taken apart: parts need not be there with the whole."""
        line = self.line
        dying = (
            self.sizes[id(t)]
            for t in line.ops[at].operands()
            if self.last.get(id(t)) == at and id(t) in self.sizes and id(t) not in entering
        )
        return sum(dying, np.zeros(self.parts, np.int64))

    def _taken(self, at: int, entering: list[int]) -> Vector:
        """Bytes that the operator's result takes over from operands that die there."""
        line = self.line
        best = np.zeros(self.parts, np.int64)
        result = id(line.ops[at].outputs[0])
        made = self.sizes[result]
        for key, gain in line.saved[at].items():
            if self.last.get(key) != at or line.last[key] >= self.end:
                continue
            if line.made[key] in self.early.ops:  # every tile reads it
                continue
            operand = self.sizes[key]
            if key in entering:
                operand = self._left(key, True) - self._left(key, False)
            elif self.kept == "rows" and key in self.spans:
                start, high = self.spans[key]
                dying = np.append(start[1:], high[-1]) - start
                operand = dying * (line.bytes[key] // max(self._rows(key), 1))
            least = min(line.bytes[key], line.bytes[result])
            best = np.maximum(best, np.minimum(operand, made) - (least - gain))
        return best


_VIEW_TAIL, _VIEW_TEMP = 12, 64
"""Bytes of a view: of the tail, and while planning."""
