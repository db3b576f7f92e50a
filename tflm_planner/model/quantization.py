"""What the numbers of a tensor stand for: value = scale * (number - zero point).

    one scale           [0.05]  [3]              the same for every element
    one per channel     [0.1 0.2 0.3]  [0 0 0]   along `axis`; one zero point may stand for all

This module imports neither numpy nor the generated schema, so read-only models can use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Quantization:
    """Scales and zero points of a tensor: none, one, or one per index along `axis`.

    scales: each is exactly a float32; a NaN stays a NaN, but its payload bits may be lost. raw:
    the other fields in the file (the range of the floats that were quantised, and other kinds of
    quantisation), which are kept unchanged; None if the file has no quantisation for the tensor, or
    if this object was not read from a file.
    """

    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    raw: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, scales: Iterable[float], zero_point: int = 0, axis: int = 0) -> Quantization:
        """A quantisation with these scales, rounded to float32, and one zero point for all."""
        from array import array  # only needed to create a quantisation, not to read one

        rounded = tuple(array("f", scales))
        return cls(rounded, (zero_point,) * len(rounded), axis)

    @property
    def is_absent(self) -> bool:
        """Whether the file has no quantisation for the tensor. A table without scales counts."""
        return self.raw is None and not self.scales and not self.zero_points

    @property
    def is_per_channel(self) -> bool:
        """Whether there are several scales."""
        return len(self.scales) > 1

    @property
    def scale(self) -> float | None:
        """The first scale; None if there is none."""
        return self.scales[0] if self.scales else None

    @property
    def zero_point(self) -> int:
        """The first zero point; 0 if there is none."""
        return self.zero_points[0] if self.zero_points else 0

    @property
    def single(self) -> tuple[float, int] | None:
        """Scale and zero point if they are the same for all elements; None for floats and for
        quantisation per channel."""
        return (self.scales[0], self.zero_point) if len(self.scales) == 1 else None

    @property
    def lacks_zero_points(self) -> bool:
        """Whether one zero point stands for many channels; TFLM accepts that, LiteRT refuses it."""
        return len(self.zero_points) == 1 < len(self.scales)

    @property
    def repeats_zero_point(self) -> bool:
        """Whether there are several zero points, all equal."""
        return len(self.zero_points) > 1 and len(set(self.zero_points)) == 1

    def means_the_same(self, other: Quantization) -> bool:
        """Whether equal numbers stand for equal values, in tensors of one shape. The axis
        counts only if there are several scales; otherwise it means nothing, and files vary."""
        along_one_axis = self.axis == other.axis or not self.is_per_channel
        is_equal = (self.scales, self.zero_points) == (other.scales, other.zero_points)
        return is_equal and along_one_axis

    def channels(self, low: int, high: int) -> Quantization:
        """The quantisation of the channels from `low` up to, not including, `high`."""
        if not self.is_per_channel or (low, high) == (0, len(self.scales)):
            return self
        points = self.zero_points
        return replace(
            self,
            scales=self.scales[low:high],
            zero_points=points[low:high] if len(points) > 1 else points,
        )

    def with_one_zero_point(self) -> Quantization:
        """A copy that has only the first zero point, for all channels."""
        return replace(self, zero_points=self.zero_points[:1])

    def without_range(self) -> Quantization:
        """A copy without the range of the floats that were quantised. It is NOT_QUANTIZED if
        nothing is left that says what the numbers stand for."""
        if self.raw is None:
            return self
        if not self.scales and not self.raw.detailsType:
            return NOT_QUANTIZED
        raw = copy(self.raw)
        raw.min = raw.max = None
        return replace(self, raw=raw)


NOT_QUANTIZED = Quantization()
"""The quantisation of a tensor for which the file has none."""
UNIT_SCALE = Quantization.of([1.0])
"""The quantisation with which each number stands for itself."""
