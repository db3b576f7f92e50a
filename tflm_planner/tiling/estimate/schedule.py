"""The operators in running order, as intervals of them see each other.

    order     0    1    2    3    4    5          interval [2, 4): operators 2 and 3
    tensors   a---------------------+             a lives through it, b enters, d leaves
                   b-----+
                             d----------+

Bytes, scratch, tail and instructions of every operator, once. It knows no tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tflm_planner.cost import cost_of
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.ops import sharings
from tflm_planner.ops.axes import AxisLink, axis_map
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena.struct_sizes import struct_sizes
from tflm_planner.tflm.lean.costs import lean_kept
from tflm_planner.tflm.liveness import planned_bytes
from tflm_planner.tiling.options import TilingOptions


class LinearSchedule:
    """The main graph of a model in some order. Positions count from 0; time -1 is before all."""

    def __init__(self, model: Model, order: Sequence[int], options: TilingOptions) -> None:
        self.model, self.options = model, options
        self.ops: list[Op] = [model.main.ops[i] for i in order]
        self.made: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.tensors: dict[int, Tensor] = {}
        for t in model.main.inputs:
            self._enter(t, -1)
        for at, op in enumerate(self.ops):
            for t in op.outputs:
                self._enter(t, at)
            for t in op.operands():
                if id(t) in self.made:
                    self.last[id(t)] = at
        for t in model.main.outputs:
            if id(t) in self.made:
                self.last[id(t)] = len(self.ops)
        target = options.machine.target
        sizes = struct_sizes(target)
        self.scratch = [sum(map(align_up, options.machine.scratch_of(op))) for op in self.ops]
        self.instructions = [cost_of(op, target).instructions for op in self.ops]
        self.tail: list[int] = []
        self.temp: list[int] = []
        for op in self.ops:
            kept, requests = lean_kept(op, target), len(options.machine.scratch_of(op))
            self.tail.append(kept + sizes.node + sizes.eval_tensor + sizes.pointer * requests)
            self.temp.append((sizes.allocation_info + sizes.planner_buffer) * (1 + requests))

        self._links: dict[tuple[int, int, int], tuple[AxisLink, ...]] = {}

    def _enter(self, tensor: Tensor, at: int) -> None:
        if planned_bytes(tensor) > 0 and id(tensor) not in self.made:
            self.made[id(tensor)] = self.last[id(tensor)] = at
            self.tensors[id(tensor)] = tensor

    def __len__(self) -> int:
        return len(self.ops)

    def links(self, at: int, axis: int, result: int) -> tuple[AxisLink, ...]:
        """What an operator reads for parts of one of its results along an axis."""
        key = at, axis, result
        if key not in self._links:
            self._links[key] = tuple(axis_map(self.ops[at]).links_of(axis, result))
        return self._links[key]

    @cached_property
    def bytes(self) -> dict[int, int]:
        """Tensor -> bytes that it takes in the head."""
        return {key: align_up(planned_bytes(t)) for key, t in self.tensors.items()}

    @cached_property
    def crossing(self) -> list[int]:
        """Bytes of the tensors that live across the start of each position, and across the end."""
        change = [0] * (len(self.ops) + 2)
        for key, n in self.bytes.items():
            first, last = self.made[key] + 1, self.last[key]
            if last >= first:
                change[first] += n
                change[last + 1] -= n
        total, found = 0, list[int]()
        for at in range(len(self.ops) + 1):
            total += change[at]
            found.append(total)
        return found

    @cached_property
    def saved(self) -> list[dict[int, int]]:
        """For each operator: operand -> bytes that its result takes over from it."""
        return [self._saved(op) for op in self.ops]

    def _saved(self, op: Op) -> dict[int, int]:
        found: dict[int, int] = {}
        for s in sharings(op):
            if id(s.operand) in self.bytes and id(s.result) in self.bytes:
                both = min(self.bytes[id(s.operand)], self.bytes[id(s.result)])
                found[id(s.operand)] = both
        for t in self.options.trails_of(op):
            if id(t.operand) in self.bytes and id(t.result) in self.bytes:
                operand, result = self.bytes[id(t.operand)], self.bytes[id(t.result)]
                gain = operand + result - max(operand + t.low, result)
                found[id(t.operand)] = max(found.get(id(t.operand), 0), gain)
        return found

    @cached_property
    def needs(self) -> list[int]:
        """Bytes that each operator needs as it is, with all that lives beside it."""
        found: list[int] = []
        for at, op in enumerate(self.ops):
            made = sum(self.bytes.get(id(t), 0) for t in op.outputs)
            dying = [g for key, g in self.saved[at].items() if self.last[key] == at]
            taken = sum(dying) if op.kind == "CONCATENATION" else max(dying, default=0)
            found.append(self.crossing[at] + made - taken + self.scratch[at])
        return found

    @cached_property
    def narrows(self) -> list[int]:
        """Positions at whose start less lives than around them, both ends included; of several in
        a row where as little lives, the first and the last."""
        live = self.crossing
        inner = [
            p
            for p in range(1, len(self))
            if live[p] <= min(live[p - 1], live[p + 1]) and live[p] < max(live[p - 1], live[p + 1])
        ]
        return [0, *inner, len(self)]

    def through(self, first: int, end: int) -> list[Tensor]:
        """Tensors that live from before the interval until after it."""
        return [
            t for key, t in self.tensors.items() if self.made[key] < first and self.last[key] >= end
        ]
