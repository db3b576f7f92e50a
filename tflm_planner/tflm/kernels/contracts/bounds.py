"""The distance from which on an output may overlap its own input: bounds in closed form.

    arena     A_out        A_in = A_out + D
      |         |<--- D --->|###### input ######|
      |         |## output ##|                       output pixel p ends at (p + 1) * Co

When output pixel p is written, the input from pixel M[p] on is still needed: M[p] is the lowest
pixel in the windows of p and of all later pixels. So every D with

    D >= (p + 1) * Co - M[p] * Ci        for all p with M[p] * Ci < input size        (bytes)

is safe for a kernel that computes pixel by pixel. For kernels that compute groups of pixels and
read between the writes of a group, p + 1 becomes the end of the group, and M[p] that of its first
pixel. This module knows bounds only; the replay, which checks them, must share no arithmetic with
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm

from tflm_planner.ops.window import Window
from tflm_planner.support.units import ALIGNMENT
from tflm_planner.tflm.kernels.access_order import AccessOrder, Restart


@dataclass(frozen=True, slots=True)
class Bound:
    """Distances of at least `least` bytes are safe, if they are multiples of `step`."""

    least: int
    step: int

    def first_aligned(self) -> int:
        """The smallest safe distance that is a multiple of the arena's alignment."""
        step = lcm(self.step, ALIGNMENT)
        return -(-self.least // step) * step

    def intersect(self, other: Bound) -> Bound:
        """The distances that both bounds permit."""
        return Bound(max(self.least, other.least), lcm(self.step, other.step))


def bound(window: Window, order: AccessOrder) -> Bound | None:
    """The safe distances of a kernel in bytes; None if only disjoint memory is known to be safe.

    Every safe distance is at least 0: the output is never permitted above its input.
    """
    ci, co = window.channels
    passes = 1 if order.passes is None else -(-co // order.passes)
    if passes == 1:
        if (order.pixels == 1 or order.chunk is None) and _starts_inside(window):
            return Bound(_least_by_pixels(window), 1)  # windows are read ahead: as pixel by pixel
        return Bound(_overhang_of_groups(window, order), 1)
    if window.groups == 1:  # every pass reads all input channels again
        if order.restart is not Restart.ROW:
            return None
        return Bound(_largest_overhang(window, _rows(window)), 1)
    if window.batch > 1 or ci != co:
        return None
    # A pass reads and writes only its own channels: at multiples of a pixel's bytes it overwrites
    # nothing that another pass reads.
    return Bound(_overhang_of_groups(window, order), ci * window.element)


def _rows(window: Window) -> Iterable[tuple[int, int]]:
    """First and end pixel of each output row."""
    width = window.output[1]
    return ((y * width, (y + 1) * width) for y in range(window.batch * window.output[0]))


def _groups(window: Window, order: AccessOrder) -> Iterable[tuple[int, int]]:
    """First and end pixel of each group of pixels that is computed together, with reads between its
    writes."""
    pixels = window.batch * window.output[0] * window.output[1]
    if order.pixels == 1 or order.chunk is None:  # windows are read ahead: as pixel by pixel
        return ((p, p + 1) for p in range(pixels))
    if order.edges is not None:  # groups begin anywhere
        return ((p, min(p + order.pixels, pixels)) for p in range(pixels))
    unit = {
        Restart.NEVER: pixels,
        Restart.BATCH: window.output[0] * window.output[1],
        Restart.ROW: window.output[1],
    }[order.restart]
    return (
        (start, min(start + order.pixels, first + unit))
        for first in range(0, pixels, unit)
        for start in range(first, first + unit, order.pixels)
    )


def first_needed_pixels(window: Window) -> list[int]:
    """M: for each output pixel in raster order, the lowest input pixel that it or a later pixel may
    read. That is where its own window begins, or the first window of the next row, or the next
    image, whichever is lowest."""
    (height, width), (rows, columns) = window.input, window.output
    tops = [max(0, y * window.stride[0] - window.pad[0]) * width for y in range(rows)]
    lefts = [max(0, x * window.stride[1] - window.pad[1]) for x in range(columns)]
    last_needed = tops[-1] + max(lefts, default=0)  # there is no later row
    after = [*tops[1:], last_needed]
    of_image = [
        min(top + left, below) for top, below in zip(tops, after, strict=True) for left in lefts
    ]
    area = height * width
    return [
        image * area + (m if image + 1 == window.batch else min(m, area))
        for image in range(window.batch)
        for m in of_image
    ]


def _overhang_of_groups(window: Window, order: AccessOrder) -> int:
    """`_largest_overhang` of an order's groups. If all rows have the same groups, the largest reach
    in one row is used for all rows."""
    columns, own_rows = window.output[1], order.restart is Restart.ROW
    grouped = order.pixels > 1 and order.chunk is not None and order.edges is None
    if not grouped or not (own_rows or columns % order.pixels == 0) or not _starts_inside(window):
        return _largest_overhang(window, _groups(window, order))
    ci, co = window.channels
    lefts = [max(0, x * window.stride[1] - window.pad[1]) for x in range(columns)]
    reach = max(
        min(x + order.pixels, columns) * co - lefts[x] * ci for x in range(0, columns, order.pixels)
    )
    line = window.input[1] * ci
    tops = [max(0, y * window.stride[0] - window.pad[0]) * line for y in range(window.output[0])]
    own = max(y * columns * co + reach - top for y, top in enumerate(tops))
    worst = max((y * columns * co - top for y, top in enumerate(tops) if y), default=own)
    worst = max(own, worst)
    area = window.input[0] * line
    worst += (window.batch - 1) * max(0, window.output[0] * columns * co - area)
    return min(max(worst, 0) * window.element, window.output_bytes)


def _largest_overhang(window: Window, groups: Iterable[tuple[int, int]]) -> int:
    """The largest number of bytes, over all groups of pixels, by which the written output reaches
    beyond the first input byte that is still needed."""
    ci, co = window.channels
    needed, end_of_input = first_needed_pixels(window), window.input_bytes // window.element
    worst = max(
        (end * co - needed[p] * ci for p, end in groups if needed[p] * ci < end_of_input), default=0
    )
    return min(max(worst, 0) * window.element, window.output_bytes)


def _starts_inside(window: Window) -> bool:
    """Whether every window begins inside the image, as in all windows that TFLM computes."""
    last_starts = [
        (n - 1) * s - p for n, s, p in zip(window.output, window.stride, window.pad, strict=True)
    ]
    return last_starts[0] < window.input[0] and last_starts[1] < window.input[1]


def _least_by_pixels(window: Window) -> int:
    """`_largest_overhang` for a kernel that computes pixel by pixel, without a loop over all
    pixels.

    M of the pixel in row y and column x is where its own window begins, or where the first window
    of row y + 1 begins if that is lower (windows in the padding all begin at 0). The overhang for
    the former is a sum of two concave functions, one of y and one of x; that for the latter is a
    concave function of y. Each has its maximum at an end or beside its kink, where the padding
    ends. From image to image the overhang changes by a constant.
    """
    (height, width), (rows, columns) = window.input, window.output
    ci, co = window.channels
    down, right = window.stride[0], window.stride[1]

    def along_rows(first: int) -> int:
        slope, step = columns * co, width * ci
        return _largest_slope(first, rows, slope, step, down, window.pad[0])

    own = co + along_rows(0) + _largest_slope(0, columns, co, ci, right, window.pad[1])
    worst = max(own, along_rows(1)) if rows > 1 else own
    worst += (window.batch - 1) * max(0, rows * columns * co - height * width * ci)
    return min(max(worst, 0) * window.element, window.output_bytes)


def _largest_slope(first: int, end: int, slope: int, step: int, stride: int, pad: int) -> int:
    """The maximum of i * slope - max(0, i * stride - pad) * step for i in [first, end)."""
    kink = pad // stride
    places = (min(max(i, first), end - 1) for i in (first, kink, kink + 1, end - 1))
    return max(i * slope - max(0, i * stride - pad) * step for i in places)
