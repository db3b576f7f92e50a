"""Runs a model in the memory that its plan gives it: a cell for every byte of the arena's head.

    cells   | x0 | x1 | x2 | ...       the element that lies there, and which byte of it (`cells`)
    read    an element is itself if all its bytes are there; else a hash of the bytes that are

A cell that was never written holds rubbish, different in each cell. An operator turns its scratch
into rubbish, and every byte of an operand that its own result may overwrite before it is read
(`hazards`). So a plan that loses a byte which is needed gives different terms.
Tensors that lie there as they were written are read without a look at their cells (`arena_cells`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops import sharings
from tflm_planner.ops.terms import mixing
from tflm_planner.ops.terms.field import LANES, Residues, total
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import DTYPES, InexpressibleError, Symbols, Values
from tflm_planner.support.units import ALIGNMENT
from tflm_planner.tflm.liveness import planned_bytes
from tflm_planner.verification.terms.arena_cells import ArenaCells
from tflm_planner.verification.terms.cells import Cells, Mask
from tflm_planner.verification.terms.layout import ArenaLayout
from tflm_planner.verification.terms.stores import Store

_DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(kind) for name, kind in DTYPES.items()}


def _dtype_of(tensor: Tensor) -> np.dtype[Any]:
    name = tensor.type_name
    if name not in _DTYPES:
        raise InexpressibleError(f"{tensor.name!r} has the type {name}")
    return _DTYPES[name]


class ArenaStore(Store):
    """Holds the tensors of a planned model where its plan, or else TFLM's planner, puts them."""

    def __init__(
        self,
        layout: ArenaLayout,
        mixer: Mixer,
        symbols: Symbols,
        room: Cells | None = None,
        *,
        late_copies: bool = False,
    ) -> None:
        """room: cells of another arena inside which this arena lies; None to make new cells."""
        super().__init__(mixer, symbols)
        self.late_copies = late_copies
        self._layout = layout
        self._part = layout.part
        self._apart: dict[Tensor, Values] = {}
        if room is not None and len(room) < layout.head:
            raise InexpressibleError(
                f"{layout.head:,} bytes do not fit into a room of {len(room):,}"
            )
        if room is None:
            layout.check_size()
        self._cells = ArenaCells(layout.head, mixer, symbols, room)

    def _part_in_arena(self, tensor: Tensor) -> slice:
        part = self._part(tensor)
        if part is None:
            raise InexpressibleError(f"{tensor.name!r} has no place in the arena")
        return part

    def room_in(self, tensor: Tensor) -> Cells:
        """The cells of a tensor, for another arena that lies inside it."""
        part = self._part_in_arena(tensor)
        if part.start % ALIGNMENT:
            raise InexpressibleError(f"{tensor.name!r} is no room: byte {part.start} is unaligned")
        return self._cells.share(part)

    @property
    def head(self) -> int:
        """Bytes of the arena's head."""
        return len(self._cells)

    def poison(self, tensor: Tensor, first: int) -> None:
        """Turn a tensor into rubbish from byte `first` on."""
        part = self._part_in_arena(tensor)
        self._cells.poison(slice(part.start + first, part.stop))

    # --- tensors ---

    def holds(self, tensor: Tensor, op: Op, values: Values) -> bool:
        """See `Store`. This compares without copying."""
        part = self._part(tensor)
        if part is None:
            return super().holds(tensor, op, values)
        if self._lost_bytes(op, tensor) is not None:
            return False  # rubbish is like nothing else
        return values.is_same_as(self._values_of(part, tensor))

    def _read(self, tensor: Tensor, op: Op | None) -> Values:
        part = self._part(tensor)
        if part is None:
            if tensor not in self._apart:
                raise InexpressibleError(f"{tensor.name!r} is read before anything writes it")
            return self._apart[tensor]
        lost = None if op is None else self._lost_bytes(op, tensor)
        if lost is None:
            return self._values_of(part, tensor)
        cells = self._cells.look_at(part).copy()
        cells.put_where(lost, self._cells.rubbish(len(lost)))
        return self._elements_of(cells, tensor)

    def _values_of(self, part: slice, tensor: Tensor) -> Values:
        """What a tensor holds, whoever reads it; not in the memory of its cells."""
        written = self._cells.written(part, _dtype_of(tensor))
        if written is not None:
            return written.reshape(tensor.shape or ())
        values = self._elements_of(self._cells.look_at(part), tensor)
        return Values(values.data.copy(), values.known)

    def _lost_bytes(self, op: Op, operand: Tensor) -> Mask | None:
        """Which bytes of an operand `op` overwrites before it has read them; None if it loses
        none."""
        lost = self._layout.hazards.lost_bytes(op, operand)
        return None if lost is None or self._is_left_as_it_is(op) else lost

    def _is_left_as_it_is(self, op: Op) -> bool:
        """Whether every byte that `op` writes too early equals the byte that is already there, so
        that nothing is lost. That happens when `op` copies equal bytes there, such as a part of one
        operand that it reads in two places. If one byte changes, all count as lost, because a lost
        byte may be copied further."""
        changed = np.zeros(len(self._cells), bool)
        for result in op.outputs:
            part = self._part(result)
            if part is not None:  # all: a later result may only seem to repair it
                changed[part] |= ~self._is_there(op, result, part)
        return not any(
            (changed[part] & lost).any()
            for operand in op.operands()
            if (part := self._part(operand)) is not None
            and (lost := self._layout.hazards.lost_bytes(op, operand)) is not None
        )

    def _is_there(self, op: Op, result: Tensor, part: slice) -> Mask:
        """Which bytes of a result are copies of bytes that equal those already there."""
        equal = np.zeros(part.stop - part.start, bool)
        for s in sharings(op):
            source = self._part(s.operand)
            if s.result is not result or not s.same_bytes or source is None:
                continue
            below = source.start + s.distance - part.start  # to the bytes copied
            low = max(part.start, source.start - below)
            high = max(min(part.stop, source.stop - below), low)
            there, copied = (self._cells.look_at(slice(low + by, high + by)) for by in (0, below))
            equal[low - part.start : high - part.start] |= there.same_as(copied)
        return equal

    def _elements_of(self, cells: Cells, tensor: Tensor) -> Values:
        """The elements of a tensor made from its cells, as a view of the same memory where
        possible."""
        dtype = _dtype_of(tensor)
        width = dtype.itemsize
        elements, is_whole = cells.element[:, ::width], cells.is_whole(width)
        if is_whole.all():
            numbers = cells.numbers(dtype)
            values = Values(elements, False) if numbers is None else Values(numbers, True)
        else:
            torn = self._hash_torn(cells, width)
            values = Values(np.where(is_whole, elements, torn), False)
        return values.reshape(tensor.shape or ())

    def _hash_torn(self, cells: Cells, width: int) -> Residues:
        """A hash of the bytes that lie in place of each element."""
        places = np.arange(len(cells)) % width
        words = mixing.keys(mixing.key("torn", width), places, *cells.columns())
        mixed = self.mixer.mix(cells.element, words)
        return total(mixed.reshape(LANES, -1, width), (2,))

    def write(self, tensor: Tensor, values: Values) -> None:
        """See `Store`."""
        part = self._part(tensor)
        if part is None:
            self._apart[tensor] = values.reshape(tensor.shape or ())
            return
        dtype = _dtype_of(tensor)
        if values.size * dtype.itemsize != part.stop - part.start:
            raise InexpressibleError(f"{tensor.name!r} is written as a tensor of another size")
        self._cells.write(part, values.reshape(tensor.shape or ()), dtype)

    def write_some(self, tensor: Tensor, first: int, values: Values) -> None:
        """Write values to a tensor from element `first` on, as an application that appends rows."""
        part, dtype = self._part_in_arena(tensor), _dtype_of(tensor)
        start = part.start + first * dtype.itemsize
        end = start + values.size * dtype.itemsize
        if end > part.stop:
            raise InexpressibleError(f"more is written to {tensor.name!r} than it holds")
        self._cells.write(slice(start, end), values, dtype)

    def copy(self, source: Tensor, destination: Tensor) -> int:
        """Copy as memcpy does. A copy onto the same bytes changes nothing; a copy with partial
        overlap makes the destination rubbish."""
        parts = self._part(source), self._part(destination)
        if source.is_constant or parts[0] is None or parts[1] is None:
            self.write(destination, self.read(source))
            return planned_bytes(destination)
        size, distance = parts[0].stop - parts[0].start, parts[1].start - parts[0].start
        if parts[1].stop - parts[1].start != size:
            raise InexpressibleError(f"{source.name!r} is copied to a tensor of another size")
        if 0 < abs(distance) < size:
            self._cells.poison(parts[1])
        elif distance:
            self._cells.copy(parts[0], parts[1])
        return size if distance else 0

    # --- operators ---

    def begin(self, op: Op) -> None:
        """The operator begins: its scratch becomes rubbish."""
        for part in self._layout.scratch.get(op, ()):
            self._cells.poison(part)

    def end(self, op: Op) -> None:
        """The operator ends: its scratch becomes rubbish, since it may have been written last.
        Bytes that two results share become rubbish too, except for control flow, which copies
        results one by one."""
        self.begin(op)
        for part in () if op.graphs else self._layout.hazards.collisions(op):
            self._cells.poison(part)

    # --- branches ---

    @property
    def bytes_kept(self) -> int:
        """See `Store`."""
        return self.head

    def snapshot(self) -> tuple[Cells, dict[Tensor, Values]]:
        """See `Store`."""
        return self._all_cells().copy(), dict(self._apart)

    def restore(self, snapshot: tuple[Cells, dict[Tensor, Values]]) -> None:
        """See `Store`."""
        self._all_cells().put(slice(None), snapshot[0])
        self._apart = dict(snapshot[1])

    def merge(
        self,
        choice: Residues,
        other: tuple[Cells, dict[Tensor, Values]],
        results: Sequence[Tensor],
    ) -> None:
        """See `Store`."""
        mine, (cells, apart) = self._all_cells(), other
        elements = self.choose(choice, Values(mine.element, False), Values(cells.element, False))
        mine.put(slice(None), mine.merged(cells, elements.data))
        for tensor in results:
            if tensor in self._apart and tensor in apart:
                self._apart[tensor] = self.choose(choice, self._apart[tensor], apart[tensor])

    def _all_cells(self) -> Cells:
        return self._cells.look_at(slice(0, len(self._cells)))
