"""Which rows of a tensor every tile needs, and how they follow from an operator's result.

tile        0      1      2        rows [low, high) along one axis, one pair a tile; several
2 tiles   0..6   6..12    -        numbers of tiles at a time, one line of a grid each. Where
3 tiles   0..5   3..9   7..12      there are fewer tiles the last ones are empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Tensor
from tflm_planner.ops.axes import AxisLink
from tflm_planner.ops.axis_rules import Repeat, Rule, Same, Slide
from tflm_planner.support.units import ALIGNMENT

Vector = npt.NDArray[np.int64]
"""A figure for each number of tiles."""
Bools = npt.NDArray[np.bool_]
"""The same of what is so or not."""
Grid = npt.NDArray[np.int64]
"""A figure for each tile: a line for each number of tiles."""


@dataclass
class RowRanges:
    """What the tiles need of one tensor: rows [low, high) along `axis` for every tile; `axis` is
    None where they need it whole. Empty ones end before they begin."""

    axis: int | None
    low: Grid
    high: Grid

    def differs(self, other: RowRanges) -> Bools:
        """For which numbers of tiles the two are not the same."""
        if self.axis is None and other.axis is None:
            return np.zeros(len(self.low), np.bool_)
        if self.axis != other.axis:
            return np.ones(len(self.low), np.bool_)
        return ((self.low != other.low) | (self.high != other.high)).any(axis=1)

    def join(self, other: RowRanges) -> bool:
        """Widen by what another reader needs; False where it goes along another axis."""
        if self.axis is None or other.axis is None:
            self.axis = None
            return True
        if self.axis != other.axis:
            return False
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return True


def operand_ranges(operand: Tensor, link: AxisLink | None, wanted: RowRanges) -> RowRanges:
    """What tiles read of an operand, from the rows of the result that they make. link: how the
    operand's axis hangs together with the result's; None where it is read whole."""
    if link is None or wanted.axis is None:
        return RowRanges(None, wanted.low, wanted.high)
    size = (operand.shape or ())[link.axis]
    if isinstance(link.rule, Repeat) and size == 1:
        return RowRanges(None, wanted.low, wanted.high)
    low, high = _read(link.rule, wanted.low, wanted.high, size)
    some = wanted.low < wanted.high
    return RowRanges(link.axis, np.where(some, low, size), np.where(some, high, 0))


def _read(rule: Rule, low: Grid, high: Grid, size: int) -> tuple[Grid, Grid]:
    """`rule.needs` of all tiles; at once for the rules that nearly all operators have."""
    if isinstance(rule, Same):
        low, high = low + rule.shift, high + rule.shift
    elif isinstance(rule, Slide):
        low, high = low * rule.stride - rule.pad, (high - 1) * rule.stride - rule.pad + rule.reach
    else:
        some = low < high
        pairs = zip(low[some].tolist(), high[some].tolist(), strict=True)
        read = np.array([rule.needs(pair, size) for pair in pairs], np.int64).reshape(-1, 2)
        low, high = low.copy(), high.copy()
        low[some], high[some] = read.T
    return np.maximum(low, 0), np.minimum(high, size)


def aligned_step(tensor: Tensor, axis: int) -> int:
    """The fewest steps along an axis that take a multiple of 16 bytes, where parts along it are
    runs of bytes: the tiler cuts there."""
    shape = tensor.shape or ()
    if math.prod(shape[:axis]) != 1:
        return 1
    step = math.prod(shape[axis + 1 :]) * tensor.nbytes // max(tensor.elements, 1)
    return ALIGNMENT // math.gcd(ALIGNMENT, step) if step else 1
