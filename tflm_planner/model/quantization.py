"""What a tensor's numbers stand for: value = scale * (number - zero point).

    one scale         [0.05]  [3]              every element alike
    one a channel     [0.1 0.2 0.3]  [0 0 0]   along `axis`; one zero point may stand for all

It knows neither numpy nor the generated schema, so that models that are only looked at have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Quantization:
    """Scales and zero points of a tensor: none, one, or one for each place along `axis`.

    scales: each exactly a float32; one that is not a number stays so, whatever its bits say more.
    raw: what else the file says (the range of the floats that the numbers were made of, and
    quantisation of other kinds), carried along untouched; None where the file has no quantisation
    for the tensor, or where it was made here.
    """

    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    raw: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, scales: Iterable[float], zero_point: int = 0, axis: int = 0) -> Quantization:
        """One with these scales, rounded to float32, and the same zero point for each."""
        from array import array  # looking at a model needs no quantisation but what files have

        rounded = tuple(array("f", scales))
        return cls(rounded, (zero_point,) * len(rounded), axis)

    @property
    def is_absent(self) -> bool:
        """Whether a file has nothing for it; a table without scales is there all the same."""
        return self.raw is None and not self.scales and not self.zero_points

    @property
    def is_per_channel(self) -> bool:
        """Whether there are several scales."""
        return len(self.scales) > 1

    @property
    def scale(self) -> float | None:
        """The first scale; None without one."""
        return self.scales[0] if self.scales else None

    @property
    def zero_point(self) -> int:
        """The first zero point; 0 without one."""
        return self.zero_points[0] if self.zero_points else 0

    @property
    def single(self) -> tuple[float, int] | None:
        """Scale and zero point where all elements have the same; None for floats, and where
        channels have scales of their own."""
        return (self.scales[0], self.zero_point) if len(self.scales) == 1 else None

    @property
    def lacks_zero_points(self) -> bool:
        """Whether one zero point stands for many channels, which TFLM takes and LiteRT refuses."""
        return len(self.zero_points) == 1 < len(self.scales)

    @property
    def repeats_zero_point(self) -> bool:
        """Whether there are several zero points, all equal."""
        return len(self.zero_points) > 1 and len(set(self.zero_points)) == 1

    def means_the_same(self, other: Quantization) -> bool:
        """Whether equal numbers stand for equal values, in tensors of one shape. The axis says
        something only where there are several scales: files differ in it elsewhere."""
        along_one_axis = self.axis == other.axis or not self.is_per_channel
        is_equal = (self.scales, self.zero_points) == (other.scales, other.zero_points)
        return is_equal and along_one_axis

    def channels(self, low: int, high: int) -> Quantization:
        """That of the channels from `low` up to `high`."""
        if not self.is_per_channel or (low, high) == (0, len(self.scales)):
            return self
        points = self.zero_points
        return replace(
            self,
            scales=self.scales[low:high],
            zero_points=points[low:high] if len(points) > 1 else points,
        )

    def with_one_zero_point(self) -> Quantization:
        """The first zero point for all channels."""
        return replace(self, zero_points=self.zero_points[:1])

    def without_range(self) -> Quantization:
        """Without the range of the floats that the numbers were made of; absent if nothing is left
        that says what they stand for."""
        if self.raw is None:
            return self
        if not self.scales and not self.raw.detailsType:
            return NOT_QUANTIZED
        raw = copy(self.raw)
        raw.min = raw.max = None
        return replace(self, raw=raw)


NOT_QUANTIZED = Quantization()
"""That of a tensor for which the file has none."""
UNIT_SCALE = Quantization.of([1.0])
"""That of plain numbers."""
