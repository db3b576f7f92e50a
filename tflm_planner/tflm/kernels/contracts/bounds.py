"""The distance from which on an output may overlap its own input: bounds in closed form.

    arena     A_out        A_in = A_out + D
      |         |<--- D --->|###### input ######|
      |         |## output ##|                       output pixel p ends at (p + 1) * Co

While output pixel p is computed, the input from pixel M[p] on is still needed: M[p] is the lowest
pixel in the windows of p and of all later pixels. So every D with

    D >= (p + 1) * Co - M[p] * Ci        for all p with M[p] * Ci < input size        (bytes)

is safe for a kernel that computes pixel by pixel. For kernels that compute groups of pixels and
read between the writes of a group, p + 1 becomes the end of the group, and M[p] that of its first
pixel.

A kernel that reads the windows of a group before it writes any of it needs less. Once p is
written, only windows of later pixels are needed:

    D >= (p + 1) * Co - M[p + 1] * Ci    for all p but the last

which is the same maximum, less the Co bytes of one pixel. Where each channel of the result depends
on one channel of the input (depthwise convolutions, pools), a channel of the window of p is not
needed when it is written either: what is left of that window begins one pixel higher, less what
was written of p, so that the maximum is less by Ci.

This module knows bounds only; the replay, which checks them, must share no arithmetic with them.
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
        if _by_pixels(order) and _starts_inside(window):
            reach = _reach_by_pixels(window)
        else:
            reach = _reach_of_groups(window, order)
        return Bound(_least(window, reach - _read_before(window, order)), 1)
    if window.groups == 1:  # every pass reads all input channels again
        if order.restart is not Restart.ROW:
            return None
        return Bound(_least(window, _largest_reach(window, _rows(window))), 1)
    if window.batch > 1 or ci != co:
        return None
    # A pass reads and writes only its own channels: at multiples of a pixel's bytes it overwrites
    # nothing that another pass reads.
    reach = _reach_of_groups(window, order) - _read_before(window, order)
    return Bound(_least(window, reach), ci * window.element)


def _by_pixels(order: AccessOrder) -> bool:
    """Whether no group of several pixels is written while its windows are read. (Groups whose
    windows are read ahead need no more than single pixels do.)"""
    return order.pixels == 1 or order.chunk is None


def _least(window: Window, reach: int) -> int:
    """The least distance in bytes for a reach in elements; disjoint memory is always enough."""
    return min(max(reach, 0) * window.element, window.output_bytes)


def _read_before(window: Window, order: AccessOrder) -> int:
    """Elements by which less than the reach is enough, because a pixel is written when its window,
    or that channel of it, was read."""
    if order.accumulates:
        # The first pixel of the window would be copied onto itself, or onto a part of itself,
        # by a memcpy, for which C promises nothing.
        return 0
    ci, co = window.channels
    if order.chunk is None:
        return co
    return ci if order.pixels == 1 and window.groups == ci and co % ci == 0 else 0


def _rows(window: Window) -> Iterable[tuple[int, int]]:
    """First and end pixel of each output row."""
    width = window.output[1]
    return ((y * width, (y + 1) * width) for y in range(window.batch * window.output[0]))


def _groups(window: Window, order: AccessOrder) -> Iterable[tuple[int, int]]:
    """First and end pixel of each group of pixels that is computed together, with reads between its
    writes."""
    pixels = window.batch * window.output[0] * window.output[1]
    if _by_pixels(order):
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


def _reach_of_groups(window: Window, order: AccessOrder) -> int:
    """`_largest_reach` of an order's groups. If all rows have the same groups, the largest reach
    in one row is used for all rows."""
    columns, own_rows = window.output[1], order.restart is Restart.ROW
    grouped = order.pixels > 1 and order.chunk is not None and order.edges is None
    if not grouped or not (own_rows or columns % order.pixels == 0) or not _starts_inside(window):
        return _largest_reach(window, _groups(window, order))
    ci, co = window.channels
    lefts = [max(0, x * window.stride[1] - window.pad[1]) for x in range(columns)]
    reach = max(
        min(x + order.pixels, columns) * co - lefts[x] * ci for x in range(0, columns, order.pixels)
    )
    line = window.input[1] * ci
    tops = [max(0, y * window.stride[0] - window.pad[0]) * line for y in range(window.output[0])]
    worst = max(y * columns * co + reach - top for y, top in enumerate(tops))
    area = window.input[0] * line
    return worst + (window.batch - 1) * max(0, window.output[0] * columns * co - area)


def _largest_reach(window: Window, groups: Iterable[tuple[int, int]]) -> int:
    """The largest number of elements, over all groups of pixels, by which the written output
    reaches beyond the first input element that is still needed."""
    ci, co = window.channels
    needed, end_of_input = first_needed_pixels(window), window.input_bytes // window.element
    return max(
        (end * co - needed[p] * ci for p, end in groups if needed[p] * ci < end_of_input), default=0
    )


def _starts_inside(window: Window) -> bool:
    """Whether every window begins inside the image, as in all windows that TFLM computes."""
    last_starts = [
        (n - 1) * s - p for n, s, p in zip(window.output, window.stride, window.pad, strict=True)
    ]
    return last_starts[0] < window.input[0] and last_starts[1] < window.input[1]


def _reach_by_pixels(window: Window) -> int:
    """`_largest_reach` for a kernel that computes pixel by pixel, without a loop over all
    pixels.

    M of the pixel in row y and column x is where its own window begins, or where the first window
    of row y + 1 begins if that is lower, but then the reach of that window's pixel is larger. So it
    is the sum of two concave functions, one of y and one of x, and each has its maximum at an end
    or beside its kink, where the padding ends. From image to image the reach changes by a constant.
    """
    (height, width), (rows, columns) = window.input, window.output
    ci, co = window.channels
    (down, right), (above, left) = window.stride, window.pad
    reach = (
        co
        + _largest_slope(rows, columns * co, width * ci, down, above)
        + _largest_slope(columns, co, ci, right, left)
    )
    return reach + (window.batch - 1) * max(0, rows * columns * co - height * width * ci)


def _largest_slope(count: int, slope: int, step: int, stride: int, pad: int) -> int:
    """The maximum of i * slope - max(0, i * stride - pad) * step for i in [0, count)."""
    kink = pad // stride
    places = (min(i, count - 1) for i in (0, kink, kink + 1, count - 1))
    return max(i * slope - max(0, i * stride - pad) * step for i in places)
