"""Adds up the bytes that live while tiles run, for all intervals that end at one position.

    _live[position, part count, tile]      bytes of the tensors added so far that live while the
                                           operator at `position` computes its rows of a tile

    position   low ....... first ....... end-1
               |<--------->|<------------>|
               not added    operators added: the bytes of the tensors that they make are counted at
               yet          every position from `low` on at which they live

`peak(first)` adds the tensors that enter at `first`: whole, minus the rows that no later tile
reads. A tensor that tiles make has the same life span in every interval that contains its operator,
because all its readers were added before. The life span of a tensor that enters depends on `first`,
so its bytes are added anew for each `first`. This module must not choose ranges
(`backward_ranges`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tflm_planner.model.ir import Tensor
from tflm_planner.tiling.estimate.backward_ranges import BackwardWalk, first_row_still_read
from tflm_planner.tiling.estimate.ranges import IntGrid, IntVector

_ABOVE_ANY_ARENA = 1 << 60
"""Larger than any arena. Grid entries without a tile start at minus this value, so that they never
are the maximum."""

Entering = Mapping[Tensor, tuple[IntGrid, IntGrid]]
"""Tensor that enters -> its bytes while a tile reads it, and its bytes after its last reader."""


class LiveBytes:
    """Live bytes of one walk, which goes back to position `low` at most."""

    def __init__(self, walk: BackwardWalk, low: int) -> None:
        self._walk, self._low = walk, low
        self._live = np.zeros((walk.end - low, *walk.no_tile.shape), np.int64)
        self._live -= _ABOVE_ANY_ARENA * walk.no_tile
        self._last_tiles = np.arange(len(walk.part_counts)), walk.part_counts - 1
        self._next_position = walk.end
        self._undecided: list[int] = []
        """Operators whose result may reuse memory of a tensor that enters, for some `first`."""
        scratch = walk.schedule.scratch[low : walk.end]
        self._scratch: IntGrid = np.repeat(
            np.array(scratch, np.int64)[:, None], len(walk.part_counts), 1
        )
        """For each position and part count: bytes of scratch of one tile's part of the operator."""

    def peak(self, first: int, entering: Collection[Tensor]) -> IntVector:
        """Bytes of the head for the interval that begins at `first`, without the tensors that live
        through it. The walk must have reached `first`, and `first` must fall from call to call:
        what is decided for one `first` stays valid for all lower ones. entering: tensors from
        before the interval that no operator reads after it."""
        assert first <= self._next_position, "`first` must fall from call to call"
        while self._next_position > first:
            self._next_position -= 1
            self._add_operator(self._next_position)
        walk, skip = self._walk, first - self._low
        live = self._live[skip:].copy()
        inputs = {t: self._entering_bytes(t) for t in entering if t in walk.ranges}
        for tensor, (while_read, behind) in inputs.items():
            after = walk.last_reader[tensor] + 1 - first
            live[:after] += while_read
            live[after:] += behind
        undecided: list[int] = []
        for position in self._undecided:
            saved = self._saved_bytes(position, inputs)
            if self._is_decided(position, first):
                self._live[position - self._low] -= saved
            else:
                undecided.append(position)
            live[position - first] -= saved
        self._undecided = undecided
        walk.prologue.write_live_bytes(live, walk.schedule, first, entering, walk.ranges)
        return (live.max(axis=2) + self._scratch[skip:]).max(axis=0)

    def _add_operator(self, position: int) -> None:
        """Add the bytes of the tensors that an operator makes."""
        walk, schedule = self._walk, self._walk.schedule
        op = schedule.ops[position]
        if position in walk.prologue.ops:
            self._add_prologue_result(op.outputs[0])
            return
        for result in op.outputs:
            if result in walk.part_bytes:
                self._add_tiled_result(result, position - self._low)
                self._divide_scratch(position, result)
        if len(op.outputs) > 1 or schedule.reused_bytes[position]:
            self._undecided.append(position)

    def _divide_scratch(self, position: int, result: Tensor) -> None:
        """Replace the scratch of an operator by the scratch of its parts, if tiles make its result
        in parts."""
        ranges, schedule = self._walk.ranges.get(result), self._walk.schedule
        if ranges is None or ranges.axis is None or not schedule.scratch[position]:
            return
        sizes = np.maximum(ranges.high - ranges.low, 1).max(axis=1)
        self._scratch[position - self._low] = [
            schedule.part_scratch(position, ranges.axis, size) for size in sizes.tolist()
        ]

    def _add_prologue_result(self, result: Tensor) -> None:
        """Add the result of an operator that runs once, before the tiles."""
        walk, schedule = self._walk, self._walk.schedule
        if schedule.last_use[result] >= walk.end:
            self._live += schedule.bytes[result]
        elif result in walk.ranges:
            self._live += schedule.bytes[result]
            behind = walk.last_reader[result] + 1 - self._low
            self._live[behind:, *self._last_tiles] -= schedule.bytes[result]

    def _add_tiled_result(self, tensor: Tensor, row: int) -> None:
        """Add each tile's rows of a tensor that the operator of `row` makes."""
        walk, live = self._walk, self._live
        size = walk.part_bytes[tensor]
        after = max(walk.last_reader.get(tensor, -1) + 1 - self._low, row + 1)
        if tensor not in walk.result_parts:
            if tensor in walk.kept_rows:
                self._add_kept_rows(tensor, row, after)
            else:
                live[row:after] += size
            return
        part = walk.rows_bytes(tensor, walk.result_parts[tensor])
        finished = np.cumsum(part, axis=1)
        live[row:] += finished
        live[:row] += finished - part
        live[row:after] += np.maximum(size - part, 0)

    def _add_kept_rows(self, tensor: Tensor, row: int, after: int) -> None:
        """Add the rows of a tensor that are kept from tile to tile, and the copies that are joined
        from them."""
        walk, live = self._walk, self._live
        before, while_read, behind = self._kept_bytes(tensor)
        live[:row] += before
        live[row:after] += while_read
        live[after:] += behind
        if walk.halo_policy == "merge":
            live[row + 1 : after] += walk.rows_bytes(tensor, walk.ranges[tensor])

    def _kept_bytes(self, tensor: Tensor) -> tuple[IntGrid, IntGrid, IntGrid]:
        """Bytes of a tensor that are kept before a tile makes its rows, while it reads them, and
        after the last operator that reads them."""
        start, high = self._walk.kept_rows[tensor]
        before = np.concatenate((start[:, :1], high[:, :-1]), axis=1)
        behind = np.concatenate((start[:, 1:], high[:, -1:]), axis=1)
        step = self._row_bytes(tensor)
        byte_counts = np.maximum((before - start, high - start, high - behind), 0) * step
        return byte_counts[0], byte_counts[1], byte_counts[2]

    def _rows(self, tensor: Tensor) -> int:
        axis = self._walk.ranges[tensor].axis
        return 1 if axis is None else (tensor.shape or ())[axis]

    def _row_bytes(self, tensor: Tensor) -> int:
        return self._walk.schedule.bytes[tensor] // max(self._rows(tensor), 1)

    def _entering_bytes(self, tensor: Tensor) -> tuple[IntGrid, IntGrid]:
        """Bytes of a tensor that enters, while a tile reads it and after its last reader. If its
        parts are views, only the rows that this tile or a later one reads must exist; otherwise the
        whole tensor and a copy of the tile's rows."""
        walk = self._walk
        ranges, tensor_bytes = walk.ranges[tensor], walk.schedule.bytes[tensor]
        view = walk.is_view(tensor)
        while_read = np.full(walk.no_tile.shape, tensor_bytes, np.int64)
        behind = while_read.copy()
        behind[self._last_tiles] = 0
        if ranges.axis is None:
            return while_read, behind
        if not view.all():
            while_read += walk.rows_bytes(tensor, ranges)
        if view.any():
            rows = self._rows(tensor)
            unread = tensor_bytes * (rows - first_row_still_read(ranges)) // rows
            after = np.concatenate((unread[:, 1:], np.zeros_like(unread[:, :1])), axis=1)
            while_read[view], behind[view] = unread[view], after[view]
        return while_read, behind

    # --- memory of operands that results reuse ---

    def _is_decided(self, position: int, first: int) -> bool:
        """Whether all operands of an operator are made in the interval, so that its savings stay
        the same for every lower `first`."""
        defined_at = self._walk.schedule.defined_at
        operands = self._walk.schedule.ops[position].operands()
        return all(defined_at[t] >= first for t in operands if t in defined_at)

    def _saved_bytes(self, position: int, inputs: Entering) -> IntGrid:
        """Bytes that an operator's operands and results need less than the sum of their sizes."""
        if len(self._walk.schedule.ops[position].outputs) > 1:
            return self._split_operand_bytes(position, inputs)
        return self._reused_bytes(position, inputs)

    def _split_operand_bytes(self, position: int, entering: Collection[Tensor]) -> IntGrid:
        """Bytes of operands that die at an operator that splits them: where its results may be
        views of them, they take no bytes of their own."""
        walk = self._walk
        dying = (
            walk.part_bytes[t]
            for t in walk.schedule.reused_bytes[position]
            if walk.last_reader.get(t) == position and t in walk.part_bytes and t not in entering
        )
        return sum(dying, np.zeros(walk.no_tile.shape, np.int64))

    def _reused_bytes(self, position: int, inputs: Entering) -> IntGrid:
        """Bytes of operands that die at the operator and that its result reuses."""
        walk, schedule = self._walk, self._walk.schedule
        reused = np.zeros(walk.no_tile.shape, np.int64)
        result = schedule.ops[position].outputs[0]
        result_bytes = walk.part_bytes[result]
        for operand, saved in schedule.reused_bytes[position].items():
            if walk.last_reader.get(operand) != position or schedule.last_use[operand] >= walk.end:
                continue
            if schedule.defined_at[operand] in walk.prologue.ops:  # every tile reads it
                continue
            dying = walk.part_bytes[operand]
            if operand in inputs:
                while_read, behind = inputs[operand]
                dying = while_read - behind
            elif walk.halo_policy == "rows" and operand in walk.kept_rows:
                start, high = walk.kept_rows[operand]
                next_start = np.concatenate((start[:, 1:], high[:, -1:]), axis=1)
                dying = (next_start - start) * self._row_bytes(operand)
            smaller = min(schedule.bytes[operand], schedule.bytes[result])
            reused = np.maximum(reused, np.minimum(dying, result_bytes) - (smaller - saved))
        return reused
