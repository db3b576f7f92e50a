"""Which rows of a tensor every tile needs, and how they follow from an operator's result.

tile      0       1       2
low       0       3       7        rows [low, high) along one axis, one pair a tile
high      5       9      12
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflm_planner.ir import Tensor
from tflm_planner.ops.axes import Link, Repeat, Rule, Same, Slide
from tflm_planner.units import ALIGNMENT

Vector = npt.NDArray[np.int64]


@dataclass
class Ranges:
    """What the tiles need of one tensor: rows [low, high) along `axis` for every tile; `axis` is
    None where they need it whole."""

    axis: int | None
    low: Vector
    high: Vector

    def equals(self, other: Ranges) -> bool:
        """Whether both are the same."""
        same = self.axis == other.axis
        return same and (
            self.axis is None
            or bool((self.low == other.low).all() and (self.high == other.high).all())
        )

    def join(self, other: Ranges) -> bool:
        """Widen by what another reader needs; False where it goes along another axis."""
        if self.axis is None or other.axis is None:
            self.axis = None
            return True
        if self.axis != other.axis:
            return False
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return True


def needed_of(operand: Tensor, link: Link | None, wanted: Ranges) -> Ranges:
    """What tiles read of an operand, from the rows of the result that they make. link: how the
    operand's axis hangs together with the result's; None where it is read whole."""
    if link is None or wanted.axis is None:
        return Ranges(None, wanted.low, wanted.high)
    size = (operand.shape or ())[link.axis]
    if isinstance(link.rule, Repeat) and size == 1:
        return Ranges(None, wanted.low, wanted.high)
    low, high = _read(link.rule, wanted.low, wanted.high, size)
    some = wanted.low < wanted.high
    return Ranges(link.axis, np.where(some, low, size), np.where(some, high, 0))


def _read(rule: Rule, low: Vector, high: Vector, size: int) -> tuple[Vector, Vector]:
    """`rule.needs` of all tiles; at once for the rules that nearly all operators have."""
    if isinstance(rule, Same):
        low, high = low + rule.shift, high + rule.shift
    elif isinstance(rule, Slide):
        low, high = low * rule.stride - rule.pad, (high - 1) * rule.stride - rule.pad + rule.reach
    else:
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        low, high = np.array([rule.needs(pair, size) for pair in pairs], np.int64).T
    return np.maximum(low, 0), np.minimum(high, size)


def unit_of(tensor: Tensor, axis: int) -> int:
    """The fewest steps along an axis that take a multiple of 16 bytes, where parts along it are
    runs of bytes: the tiler cuts there."""
    shape = tensor.shape or ()
    if math.prod(shape[:axis]) != 1:
        return 1
    step = math.prod(shape[axis + 1 :]) * tensor.nbytes // max(tensor.elements, 1)
    return ALIGNMENT // math.gcd(ALIGNMENT, step) if step else 1
