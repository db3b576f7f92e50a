"""Which rows of a tensor every tile needs, and how they follow from the rows of a result.

tile          0      1      2      rows [low, high) along one axis, one pair for each tile.
in 2 tiles   0..6   6..12    -     Several part counts are computed together, one line of a grid
in 3 tiles   0..5   3..9   7..12   for each; if one has fewer tiles, the other entries are empty.

"Rows" are steps along the axis that is cut, whichever it is.
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

IntVector = npt.NDArray[np.int64]
"""A figure for each part count."""
Bools = npt.NDArray[np.bool_]
"""A truth value for each part count."""
IntGrid = npt.NDArray[np.int64]
"""A figure for each tile: one line for each part count."""


@dataclass
class RowRanges:
    """Rows [low, high) of one tensor that each tile needs; empty unless low < high. axis: the axis
    that is cut; None if every tile needs the whole tensor."""

    axis: int | None
    low: IntGrid
    high: IntGrid

    def differs(self, other: RowRanges) -> Bools:
        """For which part counts the two ranges differ."""
        if self.axis is None and other.axis is None:
            return np.zeros(len(self.low), np.bool_)
        if self.axis != other.axis:
            return np.ones(len(self.low), np.bool_)
        return ((self.low != other.low) | (self.high != other.high)).any(axis=1)

    def join(self, other: RowRanges) -> bool:
        """Widen the ranges by those of another reader. Returns False, and widens nothing, if that
        reader cuts another axis."""
        if self.axis is None or other.axis is None:
            self.axis = None
            return True
        if self.axis != other.axis:
            return False
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return True


def operand_ranges(operand: Tensor, link: AxisLink | None, result: RowRanges) -> RowRanges:
    """Rows of an operand that each tile reads to make its rows of the result. link: how an axis of
    the operand depends on the result's axis; None if the operand is read whole."""
    if link is None or result.axis is None:
        return RowRanges(None, result.low, result.high)
    size = (operand.shape or ())[link.axis]
    if isinstance(link.rule, Repeat) and size == 1:
        return RowRanges(None, result.low, result.high)
    low, high = _apply_rule(link.rule, result.low, result.high, size)
    nonempty = result.low < result.high
    return RowRanges(link.axis, np.where(nonempty, low, size), np.where(nonempty, high, 0))


def _apply_rule(rule: Rule, low: IntGrid, high: IntGrid, size: int) -> tuple[IntGrid, IntGrid]:
    """`rule.needs` for all tiles; vectorized for the rules of nearly all operators."""
    if isinstance(rule, Same):
        low, high = low + rule.shift, high + rule.shift
    elif isinstance(rule, Slide):
        low, high = low * rule.stride - rule.pad, (high - 1) * rule.stride - rule.pad + rule.reach
    else:
        nonempty = low < high
        pairs = zip(low[nonempty].tolist(), high[nonempty].tolist(), strict=True)
        read = np.array([rule.needs(pair, size) for pair in pairs], np.int64).reshape(-1, 2)
        low, high = low.copy(), high.copy()
        low[nonempty], high[nonempty] = read.T
    return np.maximum(low, 0), np.minimum(high, size)


def aligned_step(tensor: Tensor, axis: int) -> int:
    """The smallest number of rows whose bytes are a multiple of 16, if rows are contiguous; else 1.
    The tiler cuts at multiples of it."""
    shape = tensor.shape or ()
    if math.prod(shape[:axis]) != 1:
        return 1
    step = math.prod(shape[axis + 1 :]) * tensor.nbytes // max(tensor.elements, 1)
    return ALIGNMENT // math.gcd(ALIGNMENT, step) if step else 1
