"""Operators of a tiled interval that run once, before the first tile, because every tile reads the
whole of their results.

    x --keys---> K ----------------+            every tile of queries reads all keys and values
    x --values-> V -----------------+
    x --queries-> (tile by tile) --scores--mix-->

It adds up bytes; it must not know ranges of rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tiling.estimate.schedule import LinearSchedule


@dataclass
class Prologue:
    """Operators that run before the tiles, and what they read."""

    ops: set[int] = field(default_factory=set[int])
    """Positions of the operators."""
    last_reader: dict[Tensor, int] = field(default_factory=dict[Tensor, int])
    """Operand -> position of the last of these operators that reads it."""

    def add(self, position: int, op: Op, schedule: LinearSchedule) -> None:
        """Add an operator; the operators that follow it were added before."""
        self.ops.add(position)
        for operand in op.operands():
            if operand in schedule.bytes:
                self.last_reader.setdefault(operand, position)

    def write_live_bytes(
        self,
        live: npt.NDArray[np.int64],
        schedule: LinearSchedule,
        first: int,
        entering: Collection[Tensor],
        tiled: Collection[Tensor],
    ) -> None:
        """Set the row of `live` of each of these operators to the bytes that live while it runs.

        live: one row for each operator from position `first` on. entering: tensors from before the
        interval. tiled: tensors that tiles read.
        """
        if not self.ops:
            return
        end = first + len(live)
        bytes_at = np.zeros(len(live), np.int64)
        for tensor in entering:
            bytes_at[: self._needed_until(tensor, tiled, end) - first] += schedule.bytes[tensor]
        for position in self.ops:
            result = schedule.ops[position].outputs[0]
            leaves = schedule.last_use[result] >= end
            until = end if leaves else self._needed_until(result, tiled, end)
            bytes_at[position - first : max(until, position + 1) - first] += schedule.bytes[result]
        for position in self.ops:
            reused = [
                saved
                for operand, saved in schedule.reused_bytes[position].items()
                if operand not in tiled
                and self.last_reader.get(operand) == position
                and schedule.last_use[operand] < end
            ]
            live[position - first] = bytes_at[position - first] - max(reused, default=0)

    def _needed_until(self, tensor: Tensor, tiled: Collection[Tensor], end: int) -> int:
        """The position after the last operator that needs a tensor."""
        return end if tensor in tiled else self.last_reader[tensor] + 1
