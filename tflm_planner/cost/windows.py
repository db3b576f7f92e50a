"""Geometry of sliding windows: how many outputs, taps inside the image, taps in the padding.

The taps under a window are separable: rows inside, times columns inside, so their sums over an
image are products of two short sums. This module must not know kernels or targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tflm_planner.cost.case import Case
from tflm_planner.ops.window import WindowGeometry, low_padding, low_paddings


@dataclass(frozen=True, slots=True)
class WindowCounts(WindowGeometry):
    """The window of a convolution or pool. Sums run over all output pixels of all images.

    kernel_depth: channels of a filter; inside: taps (kernel positions) inside the image;
    rows_inside: kernel rows inside the image.
    """

    kernel_depth: int
    inside: int
    rows_inside: int

    @property
    def pixels(self) -> int:
        """Output pixels of all images."""
        return self.batch * self.output[0] * self.output[1]

    @property
    def taps(self) -> int:
        """Positions of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def column(self) -> int:
        """Input elements that one output element of one group reads."""
        return self.taps * self.kernel_depth

    @property
    def groups(self) -> int:
        """Groups of a grouped convolution."""
        return max(1, self.channels[0] // max(1, self.kernel_depth))


def window_counts(case: Case) -> WindowCounts | None:
    """The window of a convolution, depthwise convolution or pool; None for ranks other than 4."""
    data, weights = case.operand(0), case.operand(1)
    if data is None or len(data.shape) != 4 or len(case.result.shape) != 4:
        return None
    if case.kind.endswith("POOL_2D"):
        kernel = (case.option("filterHeight", 1), case.option("filterWidth", 1), data.shape[3])
    elif weights is not None and len(weights.shape) == 4:
        kernel = (weights.shape[1], weights.shape[2], weights.shape[3])
    else:
        return None
    batch, height, width, depth = data.shape
    _, out_h, out_w, out_depth = case.result.shape
    stride = max(1, case.option("strideH", 1)), max(1, case.option("strideW", 1))
    dilation = (
        max(1, case.option("dilationHFactor", 1)),
        max(1, case.option("dilationWFactor", 1)),
    )
    valid = case.option("padding") == 1
    pad = low_paddings((height, width), kernel, stride, dilation, valid)
    rows = taps_inside(height, out_h, kernel[0], stride[0], dilation[0], pad[0])
    columns = taps_inside(width, out_w, kernel[1], stride[1], dilation[1], pad[1])
    return WindowCounts(
        batch, (height, width), (out_h, out_w), (depth, out_depth), kernel[:2], stride, dilation,
        pad, kernel[2], batch * rows * columns, batch * rows * out_w,
    )  # fmt: skip


@lru_cache(maxsize=8192)
def taps_inside(size: int, out: int, kernel: int, stride: int, dilation: int, pad: int) -> int:
    """Sum over outputs of the kernel positions k inside the image: 0 <= base + k * d < size.

    Loops over outputs or over positions, whichever are fewer: there may be millions of either.
    """
    if kernel < out:
        return sum(_count_inside(size, out, stride, pad - k * dilation) for k in range(kernel))
    return sum(
        _count_inside(size, kernel, dilation, pad - output * stride) for output in range(out)
    )


def _count_inside(size: int, count: int, step: int, before: int) -> int:
    """Number of i in [0, count) with 0 <= i * step - before < size."""
    first = max(0, -(-before // step))
    return max(0, min(count, -(-(size + before) // step)) - first)


def spread_inside(
    data: tuple[int, ...], result: tuple[int, ...], kernel: tuple[int, int], case: Case
) -> int:
    """Number of taps of a transposed convolution that fall into the result, over all input
    pixels."""
    if len(data) != 4 or len(result) != 4:
        return 0
    total, valid = data[0], case.option("padding") == 1
    for axis, name in ((1, "strideH"), (2, "strideW")):
        stride, size = max(1, case.option(name, 1)), kernel[axis - 1]
        pad = low_padding(result[axis], size, stride, 1, valid)
        total *= taps_inside(result[axis], data[axis], size, stride, 1, pad)
    return total


def kept_rows(case: Case, kernel: int) -> int:
    """Kernel rows of a transposed convolution that fall into one image of the result."""
    stride = max(1, case.option("strideH", 1))
    size = case.result.shape[1]
    pad = low_padding(size, kernel, stride, 1, case.option("padding") == 1)
    return taps_inside(size, case.data.shape[1], kernel, stride, 1, pad)
