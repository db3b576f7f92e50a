"""The operators in running order, with their costs and the life spans of their tensors.

    position  0    1    2    3    4    5          interval [2, 4): operators 2 and 3
    tensors   a---------------------+             a lives through it, b enters it, d leaves it
                   b-----+
                             d----------+

Bytes, scratch, tail and instructions of every operator are computed once. It knows no tiles.
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
from tflm_planner.tflm.kernels.parts import part_of
from tflm_planner.tflm.lean.costs import lean_kept_bytes
from tflm_planner.tflm.liveness import planned_bytes
from tflm_planner.tiling.estimate.interval import Interval
from tflm_planner.tiling.options import TilingOptions


class LinearSchedule:
    """The main graph of a model in one order. Positions count from 0.

    order: the operators, as their positions in the file.

    Only tensors with bytes in the head count. defined_at: the position of the operator that makes a
    tensor; -1 for inputs of the model. last_use: the position of the last operator that reads it;
    the number of operators for outputs of the model; `defined_at` if no operator reads it.

    For each position: scratch: bytes of scratch buffers. instructions: of the operator. tail: bytes
    that the operator keeps in the tail of the arena.
    """

    def __init__(self, model: Model, order: Sequence[int], options: TilingOptions) -> None:
        self.model, self.order, self.options = model, tuple(order), options
        self.ops: list[Op] = [model.main.ops[i] for i in order]
        self.defined_at: dict[Tensor, int] = {}
        self.last_use: dict[Tensor, int] = {}
        self._add_life_spans()
        target, scratch_of = options.kernels.target, options.kernels.scratch_of
        sizes = struct_sizes(target)
        self.scratch = [sum(map(align_up, scratch_of(op))) for op in self.ops]
        self.instructions = [cost_of(op, target).instructions for op in self.ops]
        self._kept = sizes.node + sizes.eval_tensor
        self.tail = [
            lean_kept_bytes(op, target) + self._kept + sizes.pointer * len(scratch_of(op))
            for op in self.ops
        ]
        self._links: dict[tuple[int, int, int], tuple[AxisLink, ...]] = {}
        self._part_scratch: dict[tuple[int, int, int], int] = {}
        self._part_tail: dict[tuple[int, int, int], int] = {}

    def _add_life_spans(self) -> None:
        for t in self.model.main.inputs:
            self._define(t, -1)
        for position, op in enumerate(self.ops):
            for t in op.outputs:
                self._define(t, position)
            for t in op.operands():
                if t in self.defined_at:
                    self.last_use[t] = position
        for t in self.model.main.outputs:
            if t in self.defined_at:
                self.last_use[t] = len(self.ops)

    def _define(self, tensor: Tensor, position: int) -> None:
        if planned_bytes(tensor) > 0 and tensor not in self.defined_at:
            self.defined_at[tensor] = self.last_use[tensor] = position

    def __len__(self) -> int:
        return len(self.ops)

    def links(self, position: int, axis: int, result: int) -> tuple[AxisLink, ...]:
        """How parts of one result along an axis depend on the operands. result: the index of the
        result among the operator's results."""
        key = position, axis, result
        if key not in self._links:
            self._links[key] = tuple(axis_map(self.ops[position]).links_of(axis, result))
        return self._links[key]

    def part_scratch(self, position: int, axis: int, size: int) -> int:
        """Bytes of scratch of a part of an operator whose result has `size` elements along an axis:
        in a part, kernels copy less of filters and inputs."""
        key = position, axis, size
        if key not in self._part_scratch:
            part = self.options.kernels.part_scratch_of(self.ops[position], axis, size)
            whole = self.scratch[position]
            self._part_scratch[key] = whole if part is None else sum(map(align_up, part))
        return self._part_scratch[key]

    def part_tail(self, position: int, axis: int, size: int) -> int:
        """Bytes of tail of such a part: a tile of channels keeps only the parameters of its
        channels.

        That is counted only if parts of the channels need less scratch or smaller weights.
        Otherwise such parts would look cheap and displace parts of the rows, although they seldom
        help (squeezenet_11 with all operators: +19 %)."""
        key = position, axis, size
        if key not in self._part_tail:
            self._part_tail[key] = self._tail_of_part(position, axis, size)
        return self._part_tail[key]

    def _tail_of_part(self, position: int, axis: int, size: int) -> int:
        op, kernels = self.ops[position], self.options.kernels
        is_last = axis == len(op.outputs[0].shape or ()) - 1
        has_made_weights = any(t is not None and not t.is_constant for t in op.inputs[1:2])
        helps = self.part_scratch(position, axis, size) < self.scratch[position] or has_made_weights
        part = part_of(op, axis, size) if is_last and helps and not kernels.target.lean else None
        if part is None:
            return self.tail[position]
        pointers = struct_sizes(kernels.target).pointer * len(kernels.scratch_of(part))
        return lean_kept_bytes(part, kernels.target) + self._kept + pointers

    @cached_property
    def bytes(self) -> dict[Tensor, int]:
        """Bytes that each tensor takes in the head."""
        return {t: align_up(planned_bytes(t)) for t in self.defined_at}

    @cached_property
    def crossing_bytes(self) -> list[int]:
        """Bytes of the tensors that live across the start of each position, and across the end."""
        change = [0] * (len(self.ops) + 2)
        for t, size in self.bytes.items():
            first, last = self.defined_at[t] + 1, self.last_use[t]
            if last >= first:
                change[first] += size
                change[last + 1] -= size
        total, crossing = 0, list[int]()
        for position in range(len(self.ops) + 1):
            total += change[position]
            crossing.append(total)
        return crossing

    @cached_property
    def reused_bytes(self) -> list[dict[Tensor, int]]:
        """For each operator: operand -> bytes of its memory that the result may reuse."""
        return [self._reused_bytes(op) for op in self.ops]

    def _reused_bytes(self, op: Op) -> dict[Tensor, int]:
        reused: dict[Tensor, int] = {}
        for sharing in sharings(op):
            if sharing.operand in self.bytes and sharing.result in self.bytes:
                reused[sharing.operand] = min(
                    self.bytes[sharing.operand], self.bytes[sharing.result]
                )
        if op.kind == "CONCATENATION":  # what tiles join lies where the whole result wants it
            return reused
        for overlap in self.options.input_overlaps_of(op):
            if overlap.operand in self.bytes and overlap.result in self.bytes:
                operand, result = self.bytes[overlap.operand], self.bytes[overlap.result]
                saved = operand + result - max(operand + overlap.low, result)
                reused[overlap.operand] = max(reused.get(overlap.operand, 0), saved)
        return reused

    @cached_property
    def live_bytes(self) -> list[int]:
        """Bytes of the head while each operator runs untiled, scratch included."""
        live: list[int] = []
        for position, op in enumerate(self.ops):
            results = sum(self.bytes.get(t, 0) for t in op.outputs)
            dying = [
                saved
                for t, saved in self.reused_bytes[position].items()
                if self.last_use[t] == position
            ]
            reused = sum(dying) if op.kind == "CONCATENATION" else max(dying, default=0)
            live.append(self.crossing_bytes[position] + results - reused + self.scratch[position])
        return live

    @cached_property
    def narrow_positions(self) -> list[int]:
        """0, the number of operators, and the positions between at whose start fewer bytes live
        than at that of one neighbour, and no more than at that of the other. Without operators 0
        alone."""
        live = self.crossing_bytes
        inner = [
            p
            for p in range(1, len(self))
            if live[p] <= min(live[p - 1], live[p + 1]) and live[p] < max(live[p - 1], live[p + 1])
        ]
        return [0, *inner, len(self)] if len(self) else [0]

    def tensors_living_through(self, interval: Interval) -> list[Tensor]:
        """Tensors that live from before the interval until after it."""
        first, end = interval
        return [
            t for t in self.defined_at if self.defined_at[t] < first and self.last_use[t] >= end
        ]
