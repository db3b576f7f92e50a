"""How an axis of a result follows an axis of an operand: which operand range a result range reads.

    Slide   result |..i..|   reads   operand |..i*stride-pad .. + reach..|

This module must not know operators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tflm_planner.ops.resize import Resize

Range = tuple[int, int]
"""A half-open range: first index, index after the last."""


@dataclass(frozen=True, slots=True)
class Same:
    """Result index i comes from operand index i + shift, if the operand has that index."""

    shift: int = 0

    def needs(self, wanted: Range, size: int) -> Range:
        """The range of an operand axis of `size` indices that the range `wanted` of the result
        reads."""
        return max(wanted[0] + self.shift, 0), min(wanted[1] + self.shift, size)


@dataclass(frozen=True, slots=True)
class Slide:
    """Result index i reads operand indices i * stride - pad + k * dilation, k < kernel."""

    kernel: int
    stride: int
    dilation: int
    pad: int

    @property
    def reach(self) -> int:
        """Number of operand indices from the first to the last one that a window covers."""
        return (self.kernel - 1) * self.dilation + 1

    def needs(self, wanted: Range, size: int) -> Range:
        """See `Same.needs`."""
        low, high = self.unclipped_range(wanted)
        return max(low, 0), min(high, size)

    def unclipped_range(self, wanted: Range) -> Range:
        """The operand range including the part that lies in the padding."""
        low = wanted[0] * self.stride - self.pad
        return low, (wanted[1] - 1) * self.stride - self.pad + self.reach


@dataclass(frozen=True, slots=True)
class Repeat:
    """Result index i comes from operand index i // times (a depthwise multiplier)."""

    times: int

    def needs(self, wanted: Range, size: int) -> Range:
        """See `Same.needs`."""
        return wanted[0] // self.times, -(-wanted[1] // self.times)


@dataclass(frozen=True, slots=True)
class Scatter:
    """Operand index i adds to result indices i * stride - pad + k, k < kernel."""

    kernel: int
    stride: int
    pad: int

    def needs(self, wanted: Range, size: int) -> Range:
        """See `Same.needs`."""
        low = -(-(wanted[0] + self.pad - self.kernel + 1) // self.stride)
        return max(low, 0), min((wanted[1] - 1 + self.pad) // self.stride + 1, size)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Result indices are computed from operand indices around i * ratio (`ops.resize`)."""

    resize: Resize

    def needs(self, wanted: Range, size: int) -> Range:
        """See `Same.needs`; the range has at most two indices more than are read."""
        ratio = self.resize.ratio
        low, high = math.floor(wanted[0] * ratio), math.ceil((wanted[1] - 1) * ratio)
        return max(low - 1, 0), min(high + 3, size)


Rule = Same | Slide | Repeat | Scatter | Stretch

SAME = Same()
"""The same index in operand and result: no shift."""
