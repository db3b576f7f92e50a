"""Limits how much a proof may compute: by the file's size, regardless of the shapes it declares.

A file of a kilobyte can declare a tensor of a billion elements, or a loop of a billion iterations.
The limits count what runs, including iterations of loops. An element takes about two microseconds
(the model runs with separate tensors and in its arena), a multiply-accumulate about ten
nanoseconds, so that a file of some kilobytes takes half a minute at most. Classifiers stay far
below the limits: of 45 published ones, the largest needs 21 elements and 730 multiply-accumulates
per byte of its file. The _FREE_... allowances are for networks with few weights and large images
(upscaling, segmentation), where each weight is used for every pixel.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.ops.macs import macs
from tflm_planner.ops.terms import movement
from tflm_planner.ops.terms.values import InexpressibleError

_MOST_MACS, _FREE_MACS, _MACS_A_BYTE = 3_000_000_000, 1 << 30, 2048
_MOST_ELEMENTS, _FREE_ELEMENTS, _ELEMENTS_A_BYTE = 1 << 27, 1 << 23, 64
_MOST_RUNS = 1 << 15
"""Operators that may run, counted in every iteration of a loop, in addition to one for each
_BYTES_AN_OPERATOR of the file. Fifty convolutions of a 224 x 224 image, with one row of the result
per iteration, run 18,000."""
_BYTES_AN_OPERATOR = 16
_MOVED = 4
"""How many elements can be read or moved in the time that it takes to make one."""
_MOST_CELLS, _FREE_CELLS = 1 << 27, 1 << 24
"""Bytes of an arena. Each takes about thirty bytes of memory here."""


class Allowance:
    """Counts down what may still be computed for a file of `file_size` bytes."""

    def __init__(self, file_size: int) -> None:
        self._size = file_size
        self._macs = min(_FREE_MACS + _MACS_A_BYTE * file_size, _MOST_MACS)
        self._elements = min(_FREE_ELEMENTS + _ELEMENTS_A_BYTE * file_size, _MOST_ELEMENTS)
        self._runs = _MOST_RUNS + file_size // _BYTES_AN_OPERATOR
        self._left = [self._macs, _MOVED * self._elements, self._runs]
        self._costs: dict[Op, tuple[int, int, int]] = {}

    def spend(self, op: Op, times: int = 1) -> None:
        """Subtract what an operator computes when it runs `times` times. Raises InexpressibleError
        if too little is left."""
        if op not in self._costs:
            elements_made = sum(t.elements for t in op.outputs)
            elements_read = sum(t.elements for t in op.operands())
            weight = 1 if op.kind in movement.RULES else _MOVED
            self._costs[op] = macs(op), weight * elements_made + elements_read, 1
        for i, cost in enumerate(self._costs[op]):
            self._left[i] -= times * cost
        self._check()

    def move(self, elements: int) -> None:
        """Subtract elements that are copied, or that are inputs. Raises InexpressibleError if too
        little is left."""
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
    """Raise InexpressibleError for an arena that is too large for a cell per byte. head: its
    bytes."""
    most = min(_FREE_CELLS + _ELEMENTS_A_BYTE * file_size, _MOST_CELLS)
    if head > most:
        raise InexpressibleError(
            f"an arena of {head:,} bytes is too large to be proved here for a file of "
            f"{file_size:,} bytes ({most:,})"
        )
