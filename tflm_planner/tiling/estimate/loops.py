"""What an interval in a loop would need, from its geometry alone: nothing is built.

    beside |  store: input, and result in its place | halos | tile, result of one operator |

The geometry is that of `transforms.row_loop`, so that what it refuses is never tried. Live bytes
are those of the body's dearest operator: the halos of all others, its own tile, its result, and
rows that wait for a later one. What a loop adds to tail and instructions is counted from figures
measured on real runtimes. Evaluations say what is true.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.support.units import align_up
from tflm_planner.tflm.element_types import moves
from tflm_planner.tflm.machine import runners
from tflm_planner.tflm.versions import can
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.row_loop import EDGES, Edge, Geometry, LoopedRegion, NotStreamableError
from tflm_planner.transforms.row_loop.geometry import element_bytes, geometry, row_elements
from tflm_planner.transforms.row_loop.operand_rows import OperandRows, operand_rows

ROWS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Rows a turn that are sketched."""
_FIRST_ROWS = 2
"""Numbers of rows that must promise something before larger ones are looked at."""
_EVERY = ("WHILE", "LESS", "ADD", "RESHAPE", "DYNAMIC_UPDATE_SLICE")
"""What every loop takes; rows come by GATHER or SLICE."""
_TAIL, _USE_TAIL = 1100, 450
"""Bytes of tail of a loop, and of each use that carries a halo, where pointers take 4 bytes."""
_TURN, _OPERATOR, _USE, _MASK, _BYTE = 3_500, 275, 4_500, 1_300, 0.5
"""Instructions of a turn: of the loop, each operator inside, each halo, each mask, each byte that
is moved."""


@dataclass(frozen=True, slots=True)
class LoopEstimate:
    """Operators first .. end-1 in a loop. head: bytes with all that lives beside. tail,
    instructions: what is added to those of the operators as they are."""

    first: int
    end: int
    rows: int
    border: Edge
    head: int
    tail: int
    instructions: int


def loops_allowed(options: TilingOptions, used: frozenset[str]) -> bool:
    """Whether loops can be had at all: the target's runtime has their operators, and the firmware
    may."""
    rows = any(options.allows(k, used) for k in ("GATHER", "SLICE"))
    planned = can(options.machine.target, "plans_of_subgraphs")
    return planned and rows and all(options.allows(k, used) for k in _EVERY)


class LoopEstimator:
    """Sketches of loops for a line of operators."""

    def __init__(self, line: LinearSchedule) -> None:
        self._line = line
        self._known: dict[int, list[OperandRows]] = {}
        """By operator; nothing where it cannot stream."""

    def ending(self, end: int, firsts: Collection[int]) -> Iterator[LoopEstimate]:
        """Loops over the intervals that end before operator `end` and begin at one of `firsts`,
        in all forms that may need less than the operators as they are."""
        for first in range(end - 1, min(firsts, default=end) - 1, -1):
            if not self._streams(first):
                return
            if first in firsts and end - first > 1:
                frame = _LoopInterval(self._line, first, end, self._read)
                if frame.closed and frame.floor < frame.need:
                    yield from frame.sketches()

    def _streams(self, at: int) -> bool:
        return bool(self._read(self._line.ops[at]))

    def _read(self, op: Op) -> list[OperandRows]:
        if id(op) not in self._known:
            try:
                self._known[id(op)] = operand_rows(op)
            except NotStreamableError:
                self._known[id(op)] = []
        return self._known[id(op)]


@dataclass(frozen=True)
class _LoopInterval:
    """An interval, and what lives around it."""

    line: LinearSchedule
    first: int
    end: int
    read: Callable[[Op], list[OperandRows]]

    @property
    def ops(self) -> list[Op]:
        """The operators."""
        return self.line.ops[self.first : self.end]

    @cached_property
    def entering(self) -> dict[int, Tensor]:
        """The tensors that the operators read and do not make."""
        made = self.line.made
        return {
            id(t): t
            for op in self.ops
            for t in op.operands()
            if id(t) in made and made[id(t)] < self.first
        }

    @cached_property
    def closed(self) -> bool:
        """Whether one tensor enters and one leaves, of types whose rows TFLM can take and put."""
        line, result = self.line, self.ops[-1].outputs
        leaving = [
            id(t) for op in self.ops for t in op.outputs if line.last.get(id(t), -1) >= self.end
        ]
        if not (len(self.entering) == 1 and len(result) == 1 and leaving == [id(result[0])]):
            return False
        (source,) = self.entering.values()
        return all(
            (moves("GATHER", source.type_name, on) or moves("SLICE", source.type_name, on))
            and moves("DYNAMIC_UPDATE_SLICE", result[0].type_name, on)
            for on in runners(self.line.options.machine.target)
        )

    @cached_property
    def beside(self) -> int:
        """Bytes of what lives through, the input apart."""
        inside = {*self.entering}
        return sum(
            self.line.bytes[id(t)]
            for t in self.line.through(self.first, self.end)
            if id(t) not in inside
        )

    @property
    def need(self) -> int:
        """Bytes that the operators need as they are."""
        return max(self.line.needs[self.first : self.end])

    @property
    def floor(self) -> int:
        """Bytes below which no loop comes."""
        ends = [self.line.bytes[key] for key in self.entering]
        return self.beside + max(*ends, self.line.bytes[id(self.ops[-1].outputs[0])])

    def sketches(self) -> Iterator[LoopEstimate]:
        """All forms that may help."""
        for border in EDGES:
            for k, rows in enumerate(ROWS):
                found = self._sketch(rows, border)
                helps = found is not None and found.head < self.need
                if helps and found is not None:
                    yield found
                elif k + 1 >= _FIRST_ROWS:
                    break

    def _sketch(self, rows: int, border: Edge) -> LoopEstimate | None:
        ops = self.ops
        try:
            loop = LoopedRegion(tuple(range(len(ops))), rows, border)
            g = geometry(self.line.model.main, ops, loop, self.read)
        except NotStreamableError:
            return None
        if border == "peeled" and not sum(g.peeled):
            return None  # the same as masked
        head = self.beside + align_up(g.store_bytes) + self._body(g)
        return LoopEstimate(
            self.first, self.end, rows, border, head, self._tail(g), self._instructions(g)
        )

    def _body(self, g: Geometry) -> int:
        """Bytes inside, beside the store, while the dearest operator runs."""
        halos = g.halo_bytes
        last: dict[int, int] = {}
        for k, op in enumerate(g.ops):
            for t in op.operands():
                last[id(t)] = k
        most = 0
        for k, op in enumerate(g.ops):
            out = op.outputs[0]
            made = _rows_bytes(g, out)
            tiles = carried = shared = 0
            for u in g.uses_of(op):
                size = u.tile * u.reading.width * element_bytes(u.reading.tensor)
                tiles, carried = tiles + size, carried + u.carried_bytes
                if id(u.reading.tensor) in self.line.saved[self.first + k]:
                    shared = max(shared, min(size, made))
            waiting = sum(
                _rows_bytes(g, before.outputs[0])
                for j, before in enumerate(g.ops[:k])
                if j < k < last.get(id(before.outputs[0]), -1)
            )
            scratch = self.line.scratch[self.first + k]
            most = max(most, halos - carried + tiles + made - shared + waiting + scratch)
        return most

    def _tail(self, g: Geometry) -> int:
        pointers = self.line.options.machine.target.pointer // 4
        uses = sum(1 for u in g.uses if u.carried or u.masked)
        again = sum(g.peeled) * sum(self.line.tail[self.first : self.end])
        return pointers * (_TAIL + _USE_TAIL * uses) + again

    def _instructions(self, g: Geometry) -> int:
        each = _TURN + _OPERATOR * len(g.ops)
        moved = 2 * g.step * element_bytes(g.result)
        for u in g.uses:
            if u.carried or u.masked:
                each += _USE + _MASK * u.masked
                moved += u.tile * u.reading.width * element_bytes(u.reading.tensor)
        return int(g.turns * (each + moved * _BYTE))


def _rows_bytes(g: Geometry, t: Tensor) -> int:
    """Bytes of a turn's rows of a tensor."""
    return g.rows[t] * row_elements(t) * element_bytes(t)
