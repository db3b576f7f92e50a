"""What an interval in tiles makes once, before the first tile: what all of them need whole.

    x --keys---> K ----------------+            every tile of queries reads all keys and values
    x --values-> V -----------------+
    x --queries-> (tile by tile) --scores--mix-->

It adds up bytes as `sketch` does; it must not know ranges of rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Op
from tflm_planner.tiling.estimate.schedule import LinearSchedule


@dataclass
class Prologue:
    """ops: positions of operators that run before the tiles. last: tensor -> the last of them that
    reads it."""

    ops: set[int] = field(default_factory=set[int])
    last: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, at: int, op: Op, line: LinearSchedule) -> None:
        """Take in an operator; later ones were taken in before."""
        self.ops.add(at)
        for operand in op.operands():
            if id(operand) in line.bytes:
                self.last.setdefault(id(operand), at)

    def lay(
        self,
        live: npt.NDArray[np.int64],
        line: LinearSchedule,
        first: int,
        entering: Collection[int],
        tiled: Collection[int],
    ) -> None:
        """Write what lives while each of them runs into its row of `live`, one row an operator
        from `first` on. entering: tensors from before. tiled: those that tiles read."""
        if not self.ops:
            return
        end = first + len(live)
        bytes_at = np.zeros(len(live), np.int64)
        for key in entering:
            bytes_at[: self._until(key, tiled, end) - first] += line.bytes[key]
        for at in self.ops:
            key = id(line.ops[at].outputs[0])
            until = end if line.last[key] >= end else self._until(key, tiled, end)
            bytes_at[at - first : max(until, at + 1) - first] += line.bytes[key]
        for at in self.ops:
            gains = [
                gain
                for key, gain in line.saved[at].items()
                if key not in tiled and self.last.get(key) == at and line.last[key] < end
            ]
            live[at - first] = bytes_at[at - first] - max(gains, default=0)

    def _until(self, key: int, tiled: Collection[int], end: int) -> int:
        """Behind the last of the operators that still needs a tensor."""
        return end if key in tiled else self.last[key] + 1
