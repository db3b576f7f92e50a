"""Finds which bytes of an operand its operator may overwrite before it has read them.

If a result lies where every kernel library allows it (`ops.sharings`), no byte is lost. If it
overlaps the operand otherwise, the accesses of the kernel are replayed in their order, for every
build of the kernels that may run (`tflm.kernels.contracts`): a byte that is written before its last
read is lost. If no order is known, every byte that both share is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops import Sharing, sharings
from tflm_planner.tflm.kernels.contracts import replays
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE
from tflm_planner.tflm.target_kernels import TargetKernels

Lost = npt.NDArray[np.bool_]


class Hazards:
    """The hazards of one plan. parts: tensor -> its bytes. Answers are cached, because loops ask
    for the same operators again and again."""

    def __init__(self, parts: Mapping[Tensor, slice], kernels: TargetKernels) -> None:
        self._parts = parts
        self._builds = tuple(dict.fromkeys((*kernels.builds, REFERENCE)))
        self._known: dict[tuple[Op, Tensor], Lost | None] = {}
        self._collisions: dict[Op, list[slice]] = {}

    def lost_bytes(self, op: Op, operand: Tensor) -> Lost | None:
        """Whether each byte of an operand in the arena is lost; None if none is."""
        key = op, operand
        if key not in self._known:
            self._known[key] = self._find_lost_bytes(op, operand)
        return self._known[key]

    def _find_lost_bytes(self, op: Op, operand: Tensor) -> Lost | None:
        part = self._parts[operand]
        shared: list[tuple[int, int, Lost]] = []
        for result in op.outputs:
            over = self._parts.get(result)
            if over is None or result is operand:
                continue
            above = over.start - part.start
            low, high = max(above, 0), min(over.stop, part.stop) - part.start
            if low < high and not self._is_shared(op, operand, result):
                overwritten = self._by_order(op, operand, result, -above, low, high)
                stay = self._stay(op, operand, result)[low:high]
                shared.append((low, high, overwritten & ~stay))
        if not shared:
            return None
        lost = np.zeros(part.stop - part.start, bool)
        for low, high, overwritten in shared:
            lost[low:high] |= overwritten
        return lost if lost.any() else None

    def _stay(self, op: Op, operand: Tensor, result: Tensor) -> Lost:
        """Which bytes of an operand lie inside another operand that the operator copies onto
        itself, and therefore stay the same. An example is a part of that other operand which is
        also copied to another place in the result."""
        part = self._parts[operand]
        stay = np.zeros(part.stop - part.start, bool)
        for s in sharings(op):
            if s.same_bytes and s.result is result and self._distance(s) == s.distance:
                copied = self._parts[s.operand]
                start, stop = copied.start - part.start, copied.stop - part.start
                stay[max(start, 0) : max(stop, 0)] = True
        return stay

    def _distance(self, sharing: Sharing) -> int | None:
        """The offset of a result minus that of its operand; None if the operand has no place."""
        operand = self._parts.get(sharing.operand)
        return None if operand is None else self._parts[sharing.result].start - operand.start

    def _is_shared(self, op: Op, operand: Tensor, result: Tensor) -> bool:
        """Whether the result lies at a permitted distance from the operand, or from another operand
        at the same place."""
        return any(
            s.result is result
            and self._is_one_place(s.operand, operand)
            and self._distance(s) == s.distance
            for s in sharings(op)
        )

    def _is_one_place(self, first: Tensor, second: Tensor) -> bool:
        return self._parts.get(first) == self._parts.get(second)

    def _by_order(
        self, op: Op, operand: Tensor, result: Tensor, below: int, low: int, high: int
    ) -> Lost:
        """Which of the bytes [low, high) of the operand some build of the kernels may lose."""
        everything = np.ones(high - low, bool)
        if len(op.outputs) != 1:
            return everything
        lost = np.zeros(high - low, bool)
        for build in self._builds:
            orders = replays(op, operand, build)
            if not orders:
                return everything
            for replay in orders:
                written = replay.first_write[low + below : high + below]
                lost |= written <= replay.last_read[low:high]
        return lost

    def collisions(self, op: Op) -> list[slice]:
        """The byte ranges that two results of an operator share."""
        if op not in self._collisions:
            self._collisions[op] = self._find_collisions(op)
        return self._collisions[op]

    def _find_collisions(self, op: Op) -> list[slice]:
        parts = [(p.start, p.stop) for t in op.outputs if (p := self._parts.get(t)) is not None]
        shared: list[slice] = []
        for i, (low, high) in enumerate(parts):
            for other_low, other_high in parts[i + 1 :]:
                start, stop = max(low, other_low), min(high, other_high)
                if start < stop:
                    shared.append(slice(start, stop))
        return shared
