"""How much a proof may compute: bounded by the size of the file, whatever shapes it declares.

A file of a kilobyte can declare a tensor of a billion elements, or a loop of a billion turns.
Counted is what runs, turns of loops included. An element takes some two microseconds, with the
model run apart and in its arena, a multiply-accumulate some ten nanoseconds: half a minute at most
for any file of kilobytes. Classifiers stay far below: of 45 published ones the one that makes most
of its bytes makes 21 elements and 730 multiply-accumulates for each. What is free is for networks
of few weights and large images, as those that enlarge or segment: there each weight is used for
every pixel.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.ops.macs import macs
from tflm_planner.ops.terms import movement
from tflm_planner.ops.terms.values import InexpressibleError

_MOST_MACS, _FREE_MACS, _MACS_A_BYTE = 3_000_000_000, 1 << 30, 2048
_MOST_ELEMENTS, _FREE_ELEMENTS, _ELEMENTS_A_BYTE = 1 << 27, 1 << 23, 64
_MOST_RUNS = 1 << 15
"""Operators, each turn of a loop counted, beside those that a file of the size can have. Fifty
convolutions of a 224 x 224 image, one row of the result a turn, run 18,000."""
_BYTES_AN_OPERATOR = 16
_MOVED = 4
"""Elements that are read, or moved, in the time in which one is made."""
_MOST_CELLS, _FREE_CELLS = 1 << 27, 1 << 24
"""Bytes of an arena, each of which takes some thirty."""


class Allowance:
    """What may still be computed for a file of some bytes."""

    def __init__(self, file_size: int) -> None:
        self._size = file_size
        self._macs = min(_FREE_MACS + _MACS_A_BYTE * file_size, _MOST_MACS)
        self._elements = min(_FREE_ELEMENTS + _ELEMENTS_A_BYTE * file_size, _MOST_ELEMENTS)
        self._runs = _MOST_RUNS + file_size // _BYTES_AN_OPERATOR
        self._left = [self._macs, _MOVED * self._elements, self._runs]
        self._costs: dict[Op, tuple[int, int, int]] = {}

    def spend(self, op: Op, times: int = 1) -> None:
        """Take off what an operator computes. InexpressibleError if too little is left."""
        if op not in self._costs:
            elements_made = sum(t.elements for t in op.outputs)
            elements_read = sum(t.elements for t in op.operands())
            weight = 1 if op.kind in movement.RULES else _MOVED
            self._costs[op] = macs(op), weight * elements_made + elements_read, 1
        for i, cost in enumerate(self._costs[op]):
            self._left[i] -= times * cost
        self._check()

    def move(self, elements: int) -> None:
        """Take off what is copied, or taken from outside. InexpressibleError as above."""
        self._left[1] -= elements
        self._check()

    def _check(self) -> None:
        if min(self._left) < 0:
            raise InexpressibleError(self._refusal())

    def _refusal(self) -> str:
        macs_left, elements_left, _ = self._left
        what = f"{self._runs:,} operators run, turns counted"
        if macs_left < 0:
            what = f"{self._macs:,} multiply-accumulates"
        elif elements_left < 0:
            what = f"{self._elements:,} elements are made"
        return f"more than {what}: too many to be proved here for a file of {self._size:,} bytes"


def check_cells(head: int, file_size: int) -> None:
    """InexpressibleError for an arena that is too large to keep what lies in each of its bytes."""
    most = min(_FREE_CELLS + _ELEMENTS_A_BYTE * file_size, _MOST_CELLS)
    if head > most:
        raise InexpressibleError(
            f"an arena of {head:,} bytes is too large to be proved here for a file of "
            f"{file_size:,} bytes ({most:,})"
        )
