"""A model in the memory that its plan gives it: a cell for every byte of the arena's head.

    cells   | x0 | x1 | x2 | ...       the element that lies there, which byte of it, of how many
    read    an element is itself if all its bytes are there; else a hash of what is there

What nobody wrote is rubbish, different in every cell. An operator makes rubbish of its scratch, and
of every byte of an operand that its own result may overwrite before it was read (`hazards`). So a
plan that loses a byte which is needed makes other terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.ops import sharings
from tflm_planner.support.units import ALIGNMENT
from tflm_planner.tflm.liveness import planned_bytes, timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.verification.terms import mixing
from tflm_planner.verification.terms.allowance import check_cells
from tflm_planner.verification.terms.field import LANES, Residues, total
from tflm_planner.verification.terms.hazards import Hazards
from tflm_planner.verification.terms.mixing import Mixer
from tflm_planner.verification.terms.stores import Store
from tflm_planner.verification.terms.values import DTYPES, InexpressibleError, Symbols, Values

_KINDS = {np.dtype(t): i + 1 for i, t in enumerate(dict.fromkeys(DTYPES.values()))}
"""Types of known numbers; 0 for elements that are not known."""
_DTYPE_OF = {i: t for t, i in _KINDS.items()}
_TORN = 255
"""The width of an element that is no longer whole."""
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Cells:
    """One entry a byte. element: of the field. place, width: which byte of how many it is. kind,
    number: type of a known number, and this byte of it."""

    element: Residues
    place: Bytes
    width: Bytes
    kind: Bytes
    number: Bytes

    def __getitem__(self, part: slice) -> Cells:
        return Cells(self.element[:, part], *(a[part] for a in self.tables()))

    def tables(self) -> tuple[Bytes, Bytes, Bytes, Bytes]:
        """All but the elements."""
        return self.place, self.width, self.kind, self.number

    def put(self, part: slice, cells: Cells) -> None:
        """Write cells over others."""
        self.element[:, part] = cells.element
        for mine, theirs in zip(self.tables(), cells.tables(), strict=True):
            mine[part] = theirs

    def same_as(self, other: Cells) -> npt.NDArray[np.bool_]:
        """Which hold the same byte, as far as is known."""
        same = (self.place == other.place) & (self.width == other.width) & (self.width != _TORN)
        return same & (self.element == other.element).all(0)

    def copy(self) -> Cells:
        """The same, apart."""
        return Cells(self.element.copy(), *(a.copy() for a in self.tables()))


def _dtype_of(tensor: Tensor) -> np.dtype[Any]:
    if tensor.type_name not in DTYPES:
        raise InexpressibleError(f"{tensor.name!r} has the type {tensor.type_name}")
    return np.dtype(DTYPES[tensor.type_name])


class ArenaStore(Store):
    """The tensors of a planned model where the plan, and TFLM's planner, put them."""

    def __init__(
        self,
        model: Model,
        kernels: TargetKernels,
        mixer: Mixer,
        symbols: Symbols,
        room: Cells | None = None,
    ) -> None:
        """room: cells of another arena in which this one lies; None: it has its own."""
        super().__init__(mixer, symbols)
        offsets = carried_plan(model) or {}
        if any(t.is_variable for t in offsets):
            raise InexpressibleError("the plan places variables, which keep what they hold")
        line = timeline_of(model, kernels.scratch_of, entries=entry_graphs(model))
        placement = placement_of(line, offsets)
        if min(placement.offsets, default=0) < 0:
            raise InexpressibleError("the plan places a tensor below the arena")
        self._place = dict(zip(line.planned, placement.offsets, strict=False))
        self._parts: dict[Tensor, slice | None] = {}
        self._scratch: dict[Op, list[slice]] = {}
        for scratch, at in zip(line.scratch, placement.scratch_offsets, strict=True):
            self._scratch.setdefault(scratch.op, []).append(slice(at, at + scratch.size))
        self._hazards = Hazards(self._place, kernels)
        self._apart: dict[Tensor, Values] = {}
        self._rubbish = 0
        head = max(placement.head, 0)
        if room is not None and len(room.place) < head:
            raise InexpressibleError(
                f"{head:,} bytes do not fit into a room of {len(room.place):,}"
            )
        if room is None:
            check_cells(head, model.file_size)
        self._cells = self._rubbish_of(head) if room is None else room[:head]

    def _rubbish_of(self, count: int) -> Cells:
        """Cells that hold nothing that anybody knows."""
        self._rubbish += 1
        words = mixing.keys(mixing.key("rubbish", self._rubbish), mixing.positions(count))
        zeros = [np.zeros(count, np.uint8) for _ in range(4)]
        zeros[1][:] = 1
        return Cells(self.mixer.elements(words), *zeros)

    def _part(self, tensor: Tensor) -> slice | None:
        if tensor not in self._parts:  # loops ask again and again
            at = self._place.get(tensor)
            self._parts[tensor] = None if at is None else slice(at, at + planned_bytes(tensor))
        return self._parts[tensor]

    def _part_in_arena(self, tensor: Tensor) -> slice:
        part = self._part(tensor)
        if part is None:
            raise InexpressibleError(f"{tensor.name!r} has no place in the arena")
        return part

    def room_in(self, tensor: Tensor) -> Cells:
        """The cells of a tensor, for an arena that lies in it."""
        part = self._part_in_arena(tensor)
        if part.start % ALIGNMENT:
            raise InexpressibleError(f"{tensor.name!r} is no room: byte {part.start} is unaligned")
        return self._cells[part]

    @property
    def head(self) -> int:
        """Bytes that it takes."""
        return len(self._cells.place)

    def spoil(self, tensor: Tensor, first: int) -> None:
        """Nobody knows any more what a tensor holds from a byte on."""
        part = self._part_in_arena(tensor)
        count = part.stop - part.start - first
        self._cells.put(slice(part.start + first, part.stop), self._rubbish_of(count))

    # --- tensors ---

    def _read(self, tensor: Tensor, op: Op | None) -> Values:
        part = self._part(tensor)
        if part is None:
            if tensor not in self._apart:
                raise InexpressibleError(f"{tensor.name!r} is read before anything writes it")
            return self._apart[tensor]
        cells = self._cells[part]
        lost = None if op is None else self._hazards.lost_bytes(op, tensor)
        if op is not None and lost is not None and lost.any() and not self._is_left_as_it_is(op):
            cells = cells.copy()
            spoilt = self._rubbish_of(len(lost))
            np.copyto(cells.element, spoilt.element, where=lost)
            for mine, theirs in zip(cells.tables(), spoilt.tables(), strict=True):
                np.copyto(mine, theirs, where=lost)
        return self._whole(cells, tensor).reshape(tensor.shape or ())

    def _is_left_as_it_is(self, op: Op) -> bool:
        """Whether each byte that `op` writes before it is read is there already: what it copies
        there is equal, a part of one operand that it reads elsewhere too, say. All or none: a byte
        that is lost is copied on."""
        changed = np.zeros(len(self._cells.place), bool)
        for result in op.outputs:
            part = self._part(result)
            if part is not None:  # every result counts: a later one may only seem to mend
                changed[part] |= ~self._is_there(op, result, part)
        return not any(
            (changed[part] & lost).any()
            for operand in op.operands()
            if (part := self._part(operand)) is not None
            and (lost := self._hazards.lost_bytes(op, operand)) is not None
        )

    def _is_there(self, op: Op, result: Tensor, part: slice) -> npt.NDArray[np.bool_]:
        """Which bytes of a result are copies of equal ones."""
        equal = np.zeros(part.stop - part.start, bool)
        for s in sharings(op):
            source = self._part(s.operand)
            if s.result is not result or not s.same_bytes or source is None:
                continue
            below = source.start + s.distance - part.start  # of what is copied there
            low = max(part.start, source.start - below)
            high = max(min(part.stop, source.stop - below), low)
            there, copied = (self._cells[low + by : high + by] for by in (0, below))
            equal[low - part.start : high - part.start] |= there.same_as(copied)
        return equal

    def _whole(self, cells: Cells, tensor: Tensor) -> Values:
        """The elements that bytes make up."""
        dtype = _dtype_of(tensor)
        width = dtype.itemsize
        first = cells.element[:, ::width]
        is_whole = cells.width[::width] == width
        for i in range(width):
            is_whole &= cells.place[i::width] == i
            if i:
                is_whole &= cells.width[i::width] == width
                is_whole &= (cells.element[:, i::width] == first).all(0)
        if is_whole.all():
            kind = _KINDS[dtype]
            if cells.kind.size and cells.kind[0] == kind and (cells.kind == kind).all():
                return Values(np.frombuffer(cells.number.tobytes(), dtype), True)
            return Values(first.copy(), False)
        torn = self._hash_torn(cells, width)
        return Values(np.where(is_whole, first, torn).astype(np.uint32), False)

    def _hash_torn(self, cells: Cells, width: int) -> Residues:
        """A hash of the bytes that lie where an element should."""
        places = np.arange(len(cells.place)) % width
        words = mixing.keys(mixing.key("torn", width), places, cells.place, cells.width)
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
        self._put(part, dtype, values)

    def write_some(self, tensor: Tensor, first: int, values: Values) -> None:
        """Let elements from one on hold values, as an application appends rows."""
        part, dtype = self._part_in_arena(tensor), _dtype_of(tensor)
        start = part.start + first * dtype.itemsize
        end = start + values.size * dtype.itemsize
        if end > part.stop:
            raise InexpressibleError(f"more is written to {tensor.name!r} than it holds")
        self._put(slice(start, end), dtype, values)

    def _put(self, part: slice, dtype: np.dtype[Any], values: Values) -> None:
        elements = self.symbols.elements(values).reshape(LANES, -1)
        width, count = dtype.itemsize, elements.shape[1]
        if values.known and values.data.dtype == dtype:
            kind = np.full(width * count, _KINDS[dtype], np.uint8)
            number = np.frombuffer(np.ascontiguousarray(values.data).tobytes(), np.uint8)
        else:
            kind = number = np.zeros(width * count, np.uint8)
        places = np.zeros((count, width), np.uint8)
        places[:] = np.arange(width)
        widths = np.full(width * count, width, np.uint8)
        wide = np.repeat(elements, width, 1) if width > 1 else elements
        self._cells.put(part, Cells(wide, places.reshape(-1), widths, kind, number))

    def copy(self, source: Tensor, destination: Tensor) -> int:
        """memcpy: onto itself it changes nothing, partly over itself nobody knows."""
        parts = self._part(source), self._part(destination)
        if source.is_constant or parts[0] is None or parts[1] is None:
            self.write(destination, self.read(source))
            return planned_bytes(destination)
        size, distance = parts[0].stop - parts[0].start, parts[1].start - parts[0].start
        if parts[1].stop - parts[1].start != size:
            raise InexpressibleError(f"{source.name!r} is copied to a tensor of another size")
        if 0 < abs(distance) < size:
            self._cells.put(parts[1], self._rubbish_of(size))
        elif distance:
            self._cells.put(parts[1], self._cells[parts[0]])
        return size if distance else 0

    # --- operators ---

    def begin(self, op: Op) -> None:
        """Scratch is written."""
        for part in self._scratch.get(op, ()):
            self._cells.put(part, self._rubbish_of(part.stop - part.start))

    def end(self, op: Op) -> None:
        """Scratch was written last, for all that anybody knows; and results over each other, but
        for those of control flow, which are copied one by one."""
        self.begin(op)
        for part in () if op.graphs else self._hazards.collisions(op):
            self._cells.put(part, self._rubbish_of(part.stop - part.start))

    # --- branches ---

    @property
    def bytes_kept(self) -> int:
        """See `Store`."""
        return self.head

    def snapshot(self) -> tuple[Cells, dict[Tensor, Values]]:
        """See `Store`."""
        return self._cells.copy(), dict(self._apart)

    def restore(self, snapshot: tuple[Cells, dict[Tensor, Values]]) -> None:
        """See `Store`."""
        self._cells.put(slice(None), snapshot[0])
        self._apart = dict(snapshot[1])

    def merge(
        self,
        choice: Residues,
        other: tuple[Cells, dict[Tensor, Values]],
        results: Sequence[Tensor],
    ) -> None:
        """See `Store`."""
        mine, (cells, apart) = self._cells, other
        same = (mine.place == cells.place) & (mine.width == cells.width)
        elements = self.choose(choice, Values(mine.element, False), Values(cells.element, False))
        same_number = (mine.kind == cells.kind) & (mine.number == cells.number)
        self._cells.put(
            slice(None),
            replace(
                mine,
                element=elements.data,
                width=np.where(same, mine.width, _TORN).astype(np.uint8),
                kind=np.where(same_number, mine.kind, 0).astype(np.uint8),
            ),
        )
        for tensor in results:
            if tensor in self._apart and tensor in apart:
                self._apart[tensor] = self.choose(choice, self._apart[tensor], apart[tensor])
