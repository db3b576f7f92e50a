"""Bytes that live while tiles run, added up once for all intervals with one end.

    row: operator      low ....... first ....... end-1
    columns: tiles,          ^ not yet   ^ `within`: what is made here, at every row from `low` on
    of each number             taken in
    at(first)                          within, and what enters at `first`: all of it, less what no
                                       later tile reads

What an operator of a tile makes is as it is for every interval that it lies in, as all its readers
were taken in before; what enters is not. It must not choose ranges (`walk`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tflm_planner.tiling.estimate.backward_ranges import BackwardWalk, first_wanted
from tflm_planner.tiling.estimate.ranges import Grid, Vector

_FAR = 1 << 60
"""More than there are bytes: tiles that a number does not have are below all others."""


class LiveBytes:
    """Of a walk that goes down to `low` at most."""

    def __init__(self, walk: BackwardWalk, low: int) -> None:
        self._walk, self._low = walk, low
        self._within = np.zeros((walk.end - low, *walk.missing.shape), np.int64)
        self._within -= _FAR * walk.missing
        self._last_tiles = np.arange(len(walk.numbers)), walk.numbers - 1
        self._done = walk.end
        self._open: list[int] = []
        """Operators that may take over memory of what enters, at some `first`."""
        scratch = walk.line.scratch[low : walk.end]
        self._scratch: Vector = np.array(scratch, np.int64)

    def height(self, first: int, entering: Collection[int]) -> Vector:
        """Bytes of the interval from `first` on, down to which the walk has come, without those
        that live through it. `entering`: tensors from before it that nobody reads behind it."""
        while self._done > first:
            self._done -= 1
            self._take_in(self._done)
        walk, skip = self._walk, first - self._low
        live = self._within[skip:].copy()
        left = {key: self._left(key) for key in entering if key in walk.ranges}
        for key, (reading, behind) in left.items():
            after = walk.last[key] + 1 - first
            live[:after] += reading
            live[after:] += behind
        still: list[int] = []
        for at in self._open:
            if self._is_settled(at, first):
                taken = self._taken_over(at, left)
                self._within[at - self._low] -= taken
            else:
                taken = self._taken_over(at, left)
                still.append(at)
            live[at - first] -= taken
        self._open = still
        walk.early.lay(live, walk.line, first, entering, walk.ranges)
        return (live.max(axis=2) + self._scratch[skip:, None]).max(axis=0)

    def _take_in(self, at: int) -> None:
        """Add what an operator makes."""
        walk, line = self._walk, self._walk.line
        op = line.ops[at]
        if at in walk.early.ops:
            self._make_early(at)
            return
        for result in op.outputs:
            if id(result) in walk.sizes:
                self._make(id(result), at - self._low)
        if len(op.outputs) > 1 or line.saved[at]:
            self._open.append(at)

    def _make_early(self, at: int) -> None:
        """Add the result of an operator that runs once, before the tiles."""
        walk, line = self._walk, self._walk.line
        key = id(line.ops[at].outputs[0])
        if line.last[key] >= walk.end:
            self._within += line.bytes[key]
        elif key in walk.ranges:
            self._within += line.bytes[key]
            behind = walk.last[key] + 1 - self._low
            self._within[behind:, *self._last_tiles] -= line.bytes[key]

    def _make(self, key: int, made: int) -> None:
        """Add the shares of a tensor that the operator of row `made` makes."""
        walk, live = self._walk, self._within
        size = walk.sizes[key]
        after = max(walk.last.get(key, -1) + 1 - self._low, made + 1)
        if key not in walk.pieces:
            if key in walk.spans:
                self._keep(key, made, after)
            else:
                live[made:after] += size
            return
        piece = self._piece(key)
        done = np.cumsum(piece, axis=1)
        live[made:] += done
        live[:made] += done - piece
        live[made:after] += np.maximum(size - piece, 0)

    def _keep(self, key: int, made: int, after: int) -> None:
        """Add the rows of a tensor that are kept from tile to tile, and what is joined of them."""
        walk, live = self._walk, self._within
        before, while_read, behind = self._stays(key)
        live[:made] += before
        live[made:after] += while_read
        live[after:] += behind
        if walk.kept == "blocks":
            live[made + 1 : after] += walk.size(key, walk.ranges[key])

    def _stays(self, key: int) -> tuple[Grid, Grid, Grid]:
        """Bytes that are kept of a tensor before a tile's share is made, from then on, and behind
        the last operator that reads it."""
        start, high = self._walk.spans[key]
        before = np.concatenate((start[:, :1], high[:, :-1]), axis=1)
        behind = np.concatenate((start[:, 1:], high[:, -1:]), axis=1)
        step = self._walk.line.bytes[key] // max(self._rows(key), 1)
        found = np.maximum((before - start, high - start, high - behind), 0) * step
        return found[0], found[1], found[2]

    def _rows(self, key: int) -> int:
        axis = self._walk.ranges[key].axis
        return 1 if axis is None else (self._walk.line.tensors[key].shape or ())[axis]

    def _piece(self, key: int) -> Grid:
        return self._walk.size(key, self._walk.pieces[key])

    def _left(self, key: int) -> tuple[Grid, Grid]:
        """Bytes of an entering tensor that there are while a tile reads it, and behind: what this
        one or a later one still reads, of what is no view all of it, and a part of its own."""
        walk = self._walk
        found, whole = walk.ranges[key], walk.line.bytes[key]
        view = walk.is_view(key)
        reading = np.full(walk.missing.shape, whole, np.int64)
        behind = reading.copy()
        behind[self._last_tiles] = 0
        if found.axis is None:
            return reading, behind
        if not view.all():
            reading += walk.size(key, found)
        if view.any():
            rows = self._rows(key)
            left = whole * (rows - first_wanted(found)) // rows
            after = np.concatenate((left[:, 1:], np.zeros_like(left[:, :1])), axis=1)
            reading[view], behind[view] = left[view], after[view]
        return reading, behind

    # --- what results take over ---

    def _is_settled(self, at: int, first: int) -> bool:
        """Whether no operand of an operator enters at `first`, nor before."""
        made = self._walk.line.made
        return all(
            made[id(t)] >= first for t in self._walk.line.ops[at].operands() if id(t) in made
        )

    def _taken_over(self, at: int, left: Mapping[int, tuple[Grid, Grid]]) -> Grid:
        """Bytes of an operator's operands that need not be there beside its results. left: what
        there is of those that enter while they are read, and behind."""
        if len(self._walk.line.ops[at].outputs) > 1:
            return self._handed_on(at, left)
        return self._taken(at, left)

    def _handed_on(self, at: int, entering: Collection[int]) -> Grid:
        """Bytes of an operand that is taken apart: parts need not be there with the whole."""
        walk = self._walk
        dying = (
            walk.sizes[id(t)]
            for t in walk.line.ops[at].operands()
            if walk.last.get(id(t)) == at and id(t) in walk.sizes and id(t) not in entering
        )
        return sum(dying, np.zeros(walk.missing.shape, np.int64))

    def _taken(self, at: int, left: Mapping[int, tuple[Grid, Grid]]) -> Grid:
        """Bytes that the operator's result takes over from operands that die there."""
        walk, line = self._walk, self._walk.line
        best = np.zeros(walk.missing.shape, np.int64)
        result = id(line.ops[at].outputs[0])
        made = walk.sizes[result]
        for key, gain in line.saved[at].items():
            if walk.last.get(key) != at or line.last[key] >= walk.end:
                continue
            if line.made[key] in walk.early.ops:  # every tile reads it
                continue
            operand = walk.sizes[key]
            if key in left:
                operand = left[key][0] - left[key][1]
            elif walk.kept == "rows" and key in walk.spans:
                start, high = walk.spans[key]
                dying = np.concatenate((start[:, 1:], high[:, -1:]), axis=1) - start
                operand = dying * (line.bytes[key] // max(self._rows(key), 1))
            least = min(line.bytes[key], line.bytes[result])
            best = np.maximum(best, np.minimum(operand, made) - (least - gain))
        return best
