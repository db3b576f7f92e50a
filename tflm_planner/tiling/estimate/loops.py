"""What an interval would need in a loop, from its geometry alone: nothing is built.

    beside |  store: input, and result in its place | halos | tile, result of one operator |

The geometry is that of `transforms.row_loop`, so that intervals that it refuses are never
evaluated. The live bytes are those of the largest operator of the body: its tile, its result, the
halos of all other operators, and rows that a later operator reads. The tail and the instructions
that a loop adds are computed from figures that were measured on real runtimes. Only an evaluation
is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.support.units import align_up
from tflm_planner.tflm.element_types import moves
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tflm.versions import can
from tflm_planner.tiling.estimate.interval import Interval
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.row_loop import (
    LOOP_BORDERS,
    LoopBorder,
    LoopedRegion,
    LoopGeometry,
    NotStreamableError,
)
from tflm_planner.transforms.row_loop.geometry import loop_geometry
from tflm_planner.transforms.row_loop.operand_rows import (
    OperandRows,
    element_bytes,
    operand_rows,
    row_elements,
)

_LOOP_KINDS = ("WHILE", "LESS", "ADD", "RESHAPE", "DYNAMIC_UPDATE_SLICE")
"""Operators of every loop; rows are read by GATHER or SLICE."""
_LOOP_TAIL, _HALO_TAIL = 1100, 450
"""Bytes of tail of a loop, and of each operand with a halo or a mask, for pointers of 4 bytes."""
_TURN, _OPERATOR, _HALO, _MASK, _MOVED_BYTE = 3_500, 275, 4_500, 1_300, 0.5
"""Instructions of one turn: for the loop itself, for each operator inside, for each operand with a
halo or a mask, for each mask, and for each byte moved."""


@dataclass(frozen=True, slots=True)
class LoopEstimate:
    """The figures of an interval in a loop."""

    interval: Interval
    rows: int
    """Rows of the interval's result that one turn makes."""
    border: LoopBorder
    """What the loop does at the image's borders."""
    head: int
    """Bytes of the head while the loop runs, with all that lives beside it."""
    tail: int
    """Bytes that the loop adds to the tail."""
    instructions: int
    """Instructions that the loop adds."""


def allows_loops(options: TilingOptions, used_kinds: frozenset[str]) -> bool:
    """Whether loops are possible at all: the target's TFLM must plan their sub-graphs, and the
    operators of a loop must be permitted. used_kinds: kinds of operators of the model."""
    reads_rows = any(options.allows(kind, used_kinds) for kind in ("GATHER", "SLICE"))
    plans_loops = can(options.kernels.target, "plans_of_subgraphs")
    return plans_loops and reads_rows and all(options.allows(k, used_kinds) for k in _LOOP_KINDS)


class LoopEstimator:
    """Estimates loops over intervals of one schedule."""

    def __init__(self, schedule: LinearSchedule) -> None:
        self._schedule = schedule
        self._operand_rows: dict[Op, list[OperandRows]] = {}
        """Cached for each operator; empty if it cannot run in a loop."""

    def estimates_ending_at(self, end: int, firsts: Collection[int]) -> Iterator[LoopEstimate]:
        """Loops over the intervals that end before position `end` and begin at one of `firsts`, in
        all forms that may need fewer bytes than the untiled operators."""
        for first in range(end - 1, min(firsts, default=end) - 1, -1):
            if not self._rows_of(self._schedule.ops[first]):
                return
            if first in firsts and end - first > 1:
                loop = _closed_interval(self._schedule, Interval(first, end), self._rows_of)
                if loop is not None and loop.least_bytes < loop.untiled_bytes:
                    yield from loop.estimates()

    def _rows_of(self, op: Op) -> list[OperandRows]:
        if op not in self._operand_rows:
            try:
                self._operand_rows[op] = operand_rows(op)
            except NotStreamableError:
                self._operand_rows[op] = []
        return self._operand_rows[op]


def _closed_interval(
    schedule: LinearSchedule, interval: Interval, rows_of: Callable[[Op], list[OperandRows]]
) -> _ClosedInterval | None:
    """The interval; None unless exactly one tensor enters and one leaves, both of types whose rows
    TFLM can read and write. rows_of: the rows of its operands that an operator reads."""
    ops = schedule.ops[interval.as_slice]
    defined_at, last_use = schedule.defined_at, schedule.last_use
    operands = (t for op in ops for t in op.operands() if t in defined_at)
    entering = dict.fromkeys(t for t in operands if defined_at[t] < interval.first)
    leaving = [t for op in ops for t in op.outputs if last_use.get(t, -1) >= interval.end]
    results = ops[-1].outputs
    if not (len(entering) == 1 and len(results) == 1 and leaving == [results[0]]):
        return None
    (source,) = entering
    can_move = all(
        (moves("GATHER", source.type_name, on) or moves("SLICE", source.type_name, on))
        and moves("DYNAMIC_UPDATE_SLICE", results[0].type_name, on)
        for on in runners(schedule.options.kernels.target)
    )
    if not can_move:
        return None
    beside = sum(
        schedule.bytes[t] for t in schedule.tensors_living_through(interval) if t is not source
    )
    return _ClosedInterval(schedule, interval, rows_of, ops, source, beside)


@dataclass(frozen=True)
class _ClosedInterval:
    """An interval with exactly one tensor that enters and one that leaves."""

    schedule: LinearSchedule
    interval: Interval
    rows_of: Callable[[Op], list[OperandRows]]
    """The rows of its operands that an operator reads."""
    ops: list[Op]
    source: Tensor
    """The tensor that enters."""
    bytes_beside: int
    """Bytes of the tensors that live through the interval, without `source`."""

    @property
    def untiled_bytes(self) -> int:
        """Bytes that the operators need without a loop."""
        return max(self.schedule.live_bytes[self.interval.as_slice])

    @property
    def least_bytes(self) -> int:
        """Bytes that every loop needs: its whole input, or its whole result."""
        sizes = self.schedule.bytes
        return self.bytes_beside + max(sizes[self.source], sizes[self.ops[-1].outputs[0]])

    def estimates(self) -> Iterator[LoopEstimate]:
        """The estimates of all forms of the loop that may help."""
        for border in LOOP_BORDERS:
            for rows in self.schedule.options.search_budget.loop_rows:
                estimate = self._estimate(rows, border)
                if estimate is None or estimate.head >= self.untiled_bytes:
                    break
                yield estimate

    def _estimate(self, rows: int, border: LoopBorder) -> LoopEstimate | None:
        """The estimate of a loop; None if it is impossible, or identical to the masked one."""
        ops = self.ops
        try:
            loop = LoopedRegion(tuple(range(len(ops))), rows, border)
            g = loop_geometry(self.schedule.model.main, ops, loop, self.rows_of)
        except NotStreamableError:
            return None
        if border == "peeled" and not sum(g.peeled):
            return None  # the same as masked
        head = self.bytes_beside + align_up(g.store_bytes) + self._body_bytes(g)
        return LoopEstimate(self.interval, rows, border, head, self._tail(g), self._instructions(g))

    def _body_bytes(self, g: LoopGeometry) -> int:
        """Bytes inside the loop, without the store, while its largest operator runs."""
        last_reader: dict[Tensor, int] = {}
        for k, op in enumerate(g.ops):
            for t in op.operands():
                last_reader[t] = k
        return max(self._operator_bytes(g, k, last_reader) for k in range(len(g.ops)))

    def _operator_bytes(self, g: LoopGeometry, index: int, last_reader: dict[Tensor, int]) -> int:
        """Bytes inside the loop, without the store, while operator number `index` runs."""
        op, position = g.ops[index], self.interval.first + index
        result_bytes = sum(_rows_bytes(g, t) for t in op.outputs)
        tiles = own_halos = reused = 0
        for use in g.uses_of(op):
            size = use.tile * use.reading.width * element_bytes(use.reading.tensor)
            tiles, own_halos = tiles + size, own_halos + use.carried_bytes
            if use.reading.tensor in self.schedule.reused_bytes[position]:
                reused = max(reused, min(size, result_bytes))
        waiting = sum(
            _rows_bytes(g, t)
            for j, earlier in enumerate(g.ops[:index])
            for t in earlier.outputs
            if j < index < last_reader.get(t, -1)
        )
        other_halos = g.halo_bytes - own_halos
        scratch = self.schedule.scratch[position]
        return other_halos + tiles + result_bytes - reused + waiting + scratch

    def _tail(self, g: LoopGeometry) -> int:
        pointers = self.schedule.options.kernels.target.pointer // 4
        uses = sum(1 for use in g.uses if use.carried or use.masked)
        peeled = sum(g.peeled) * sum(self.schedule.tail[self.interval.as_slice])
        return pointers * (_LOOP_TAIL + _HALO_TAIL * uses) + peeled

    def _instructions(self, g: LoopGeometry) -> int:
        turn = _TURN + _OPERATOR * len(g.ops)
        moved_bytes = 2 * g.step * element_bytes(g.result)
        for use in g.uses:
            if use.carried or use.masked:
                turn += _HALO + _MASK * use.masked
                moved_bytes += use.tile * use.reading.width * element_bytes(use.reading.tensor)
        return int(g.turns * (turn + moved_bytes * _MOVED_BYTE))


def _rows_bytes(g: LoopGeometry, tensor: Tensor) -> int:
    """Bytes of the rows of a tensor that one turn makes."""
    return g.rows[tensor] * row_elements(tensor) * element_bytes(tensor)
