"""From which operand rows each row of a resized image is computed, bit-exact as in the kernels.

    result   0   1   2   3   4   5        bilinear, twice as large: row 3 is half of operand row 1
    operand  0       1       2            plus half of operand row 2

Kernels round the ratio of both sizes. So a tile computes the same values only if the ratio of its
own sizes leads to the same rows and weights, which `Resize.taps` returns. Source: tflite-micro,
reference/resize_bilinear.h and resize_nearest_neighbor.h. It must not know tiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tflm_planner.model.ir import Op
from tflm_planner.support.deferred import defer

if TYPE_CHECKING:
    import numpy as np
else:
    np = defer("numpy")

Sampling = Literal["nearest", "bilinear", "bilinear float"]
Taps = tuple[int, int, Fraction]
"""Lower operand row, upper operand row, and the weight of the upper one."""


@dataclass(frozen=True, slots=True)
class Resize:
    """The resizing of one axis from `size` to `out` rows."""

    sampling: Sampling
    align_corners: bool
    half_pixel: bool
    size: int
    out: int

    @property
    def ratio(self) -> Fraction:
        """Operand rows per row of the result."""
        if self.align_corners and self.out > 1:
            return Fraction(self.size - 1, self.out - 1)
        return Fraction(self.size, self.out)

    @property
    def has_exact_cuts(self) -> bool:
        """Whether parts of the result can be computed exactly from parts of the operand: some inner
        row lies exactly on an operand row, and the rounding of the ratio does not add up over
        rows."""
        if self.ratio.denominator >= self.out:
            return False
        if self.sampling == "nearest":
            return True
        if self.sampling == "bilinear":
            return (self.ratio * 1024).denominator == 1
        return all(self.taps(row) is not None for row in range(self.out))

    def taps(self, row: int) -> Taps | None:
        """The operand rows and weight of a row of the result. None if floating point would round:
        code from other compilers may round differently."""
        if self.sampling == "nearest":
            return self._nearest(row), self._nearest(row), Fraction(0)
        if self.sampling == "bilinear":
            return self._bilinear(row)
        return self._bilinear_float(row)

    def _nearest(self, row: int) -> int:
        float32 = np.float32
        if self.align_corners and self.out > 1:
            scale = float32(self.size - 1) / float32(self.out - 1)
        else:
            scale = float32(self.size) / float32(self.out)
        place = float((float32(row) + float32(0.5 if self.half_pixel else 0.0)) * scale)
        nearest = math.floor(place + 0.5) if self.align_corners else math.floor(place)
        return max(min(nearest, self.size - 1), 0)

    def _bilinear(self, row: int) -> Taps:
        """Fixed point with ten fractional bits."""
        one = 1 << 10
        size, divisor = self.size, self.out
        if self.align_corners and self.out > 1:
            size, divisor = self.size - 1, self.out - 1
        scale = (one * size + divisor // 2) // divisor
        place = row * scale + (scale // 2 - one // 2 if self.half_pixel else 0)
        lower = max(place // one, 0)
        upper = min((place + one - 1) // one, self.size - 1)
        weight = Fraction(place - one * lower, one)
        # The weights of a row always add up to exactly 1.
        return lower, upper, Fraction(0) if lower == upper else weight

    def _bilinear_float(self, row: int) -> Taps | None:
        float32 = np.float32
        scale = float32(self.ratio.numerator) / float32(self.ratio.denominator)
        offset = Fraction(1, 2) if self.half_pixel else Fraction(0)
        place = (row + offset) * self.ratio - offset
        computed = (float32(row) + float32(float(offset))) * scale
        exact = Fraction(float(scale)) == self.ratio
        if not exact or Fraction(float(computed)) != (row + offset) * self.ratio:
            return None
        if Fraction(float(float32(computed - float32(float(offset))))) != place:
            return None
        lower = max(math.floor(place), 0)
        return lower, min(math.ceil(place), self.size - 1), place - lower


_SAMPLING: dict[tuple[str, str], Sampling] = {
    ("RESIZE_NEAREST_NEIGHBOR", "int8"): "nearest",
    ("RESIZE_NEAREST_NEIGHBOR", "int16"): "nearest",
    ("RESIZE_NEAREST_NEIGHBOR", "float32"): "nearest",
    ("RESIZE_BILINEAR", "int8"): "bilinear",
    ("RESIZE_BILINEAR", "int16"): "bilinear",
    ("RESIZE_BILINEAR", "float32"): "bilinear float",
}


def resize_of(op: Op, axis: int) -> Resize | None:
    """How an operator resizes axis 1 or 2; None for other operators and unknown forms."""
    data, result = op.inputs[0], op.outputs[0]
    sampling = _SAMPLING.get((op.kind, result.type_name))
    if sampling is None or data is None or len(data.shape or ()) != 4 or op.options.is_absent:
        return None
    sizes = (data.shape or ())[axis], (result.shape or ())[axis]
    if min(sizes) < 1:
        return None
    align, half = op.options.aligns_corners, op.options.has_half_pixel_centers
    return Resize(sampling, align, half, *sizes)
