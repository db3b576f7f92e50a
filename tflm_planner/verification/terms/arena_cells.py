"""The cells of an arena, behind the newest writes to them, which are kept as they came.

    kept     [0, 64) = x     [64, 80) = rubbish     [16, 48) = y        oldest first
    cells    what lay there before

Most tensors are read as they were written: all of their bytes, and none that somebody wrote to
since. Their values are then the ones that were written, and no cell is looked at. Where a read
meets a part of a write, or bytes of several, all writes up to the newest of these are put into the
cells, in their order. So a cell holds what it would hold if each write went there at once. This
module must not know plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflm_planner.ops.terms import mixing
from tflm_planner.ops.terms.field import LANES
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import Symbols, Values
from tflm_planner.verification.terms.cells import Cells

MOST_WRITES = 64
"""Kept at a time, so that looking for one never takes long; the oldest go into the cells."""
MOST_MEMORY = 24 << 20
"""Bytes of memory that values may take which are kept: those of a megabyte of int8."""


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    """Bytes [start, stop) hold values: numbers of `dtype`, or elements as wide as it. None for
    rubbish, of which no two with different numbers have anything in common."""

    start: int
    stop: int
    values: Values | None
    dtype: np.dtype[Any]
    number: int = 0

    @property
    def memory(self) -> int:
        """Bytes that its values hold in memory, with all of an array of which they are a part."""
        if self.values is None:
            return 0
        whole = self.values.data.base
        return whole.nbytes if isinstance(whole, np.ndarray) else self.values.data.nbytes

    def is_of(self, part: slice) -> bool:
        """Whether it writes these bytes and no others."""
        return self.start == part.start and self.stop == part.stop


_BYTE = np.dtype(np.int8)


class ArenaCells:
    """Cells that are read and written in parts; a part is never empty."""

    def __init__(
        self, count: int, mixer: Mixer, symbols: Symbols, room: Cells | None = None
    ) -> None:
        """room: cells of another arena in which these lie; each write then goes there at once.
        None: cells of their own, which hold rubbish."""
        self._count, self._mixer, self._symbols = count, mixer, symbols
        self._rubbish = 0
        self._writes: list[_Write] = []
        self._memory = 0
        """Of the writes that are kept, or more: with some that are kept no more."""
        self._at_once = room is not None
        self._room: Cells | None = None if room is None else room[:count]
        if room is None:
            self.poison(slice(0, count))

    def __len__(self) -> int:
        return self._count

    # --- writing ---

    def write(self, part: slice, values: Values, dtype: np.dtype[Any]) -> None:
        """Let bytes hold elements as wide as `dtype`; numbers of another type are no numbers any
        more for whoever reads them."""
        if values.known and values.data.dtype != dtype:
            values = Values(self._symbols.elements(values), False)
        self._keep(_Write(part.start, part.stop, values, dtype))

    def poison(self, part: slice) -> None:
        """Let bytes hold what nobody knows, different from all that was there before."""
        self._rubbish += 1
        self._keep(_Write(part.start, part.stop, None, _BYTE, self._rubbish))

    def copy(self, source: slice, destination: slice) -> None:
        """Let bytes hold what others do, which lie apart from them."""
        write = self._newest(source)
        if write is not None and write.is_of(source):
            start, stop = destination.start, destination.stop
            self._keep(_Write(start, stop, write.values, write.dtype, write.number))
            return
        cells = self.look_at(source)
        self.look_at(destination).put(slice(None), cells)

    def _keep(self, write: _Write) -> None:
        start, stop = write.start, write.stop
        self._writes = [w for w in self._writes if w.start < start or w.stop > stop]
        self._writes.append(write)
        self._memory += write.memory
        if self._at_once:
            self._put_first(len(self._writes))
        elif self._memory > MOST_MEMORY:
            self._memory = sum(w.memory for w in self._writes)
            while self._memory > MOST_MEMORY:
                self._memory -= self._writes[0].memory
                self._put_first(1)
        elif len(self._writes) > MOST_WRITES:
            self._put_first(1)

    # --- reading ---

    def written(self, part: slice, dtype: np.dtype[Any]) -> Values | None:
        """What these bytes hold as numbers of a type, or as elements as wide as it: the values that
        were written, in their shape. None where that takes a look at the cells."""
        write = self._newest(part)
        return write.values if write is not None and write.is_of(part) and write.dtype == dtype \
            else None  # fmt: skip

    def look_at(self, part: slice) -> Cells:
        """The cells of these bytes, to be read or changed before anything else is written."""
        newest = self._newest(part)
        if newest is not None:
            self._put_first(self._writes.index(newest) + 1)
        return self._cells[part]

    def share(self, part: slice) -> Cells:
        """The cells of these bytes for another arena that lies in them. Both see at once what
        either of them writes."""
        self._put_first(len(self._writes))
        self._at_once = True
        return self._cells[part]

    def rubbish(self, count: int) -> Cells:
        """So many cells that hold what nobody knows."""
        self._rubbish += 1
        return self._rubbish_of(self._rubbish, count)

    def _newest(self, part: slice) -> _Write | None:
        """The last write to any of these bytes, if it is kept."""
        start, stop = part.start, part.stop
        for write in reversed(self._writes):
            if write.start < stop and start < write.stop:
                return write
        return None

    # --- cells ---

    @property
    def _cells(self) -> Cells:
        if self._room is None:  # every byte was poisoned first, so that these are never read
            element = np.empty((LANES, self._count), np.uint32)
            self._room = Cells(element, np.empty(self._count, np.uint32))
        return self._room

    def _put_first(self, count: int) -> None:
        """Put the oldest writes into the cells."""
        for write in self._writes[:count]:
            part = slice(write.start, write.stop)
            if write.values is None:
                self._cells.put(part, self._rubbish_of(write.number, write.stop - write.start))
                continue
            elements = self._symbols.elements(write.values).reshape(LANES, -1)
            if write.values.known:
                self._cells.put_numbers(part, write.values.data, elements)
            else:
                self._cells.put_elements(part, write.dtype.itemsize, elements)
        del self._writes[:count]

    def _rubbish_of(self, number: int, count: int) -> Cells:
        words = mixing.keys(mixing.key("rubbish", number), mixing.positions(count))
        return Cells.of_bytes(self._mixer.elements(words))
