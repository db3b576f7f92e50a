"""Which loops CMSIS-NN runs with MVE (Cortex-M55, M85), where other cores run others.

Products go four rows at a time, 16 elements a step.
Read from CMSIS-NN 4ab83cc. This module must not know constants.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tflm_planner.cost.case import Case
from tflm_planner.cost.families.base import KernelFamily, Loops
from tflm_planner.cost.families.cmsis_nn import SERVED, CmsisNnKernels, column_counts
from tflm_planner.cost.families.reference import REFERENCE, pool_path
from tflm_planner.cost.kinds import Counts, Work, ceil_div, times
from tflm_planner.cost.moves import POINTWISE, pointwise
from tflm_planner.cost.windows import WindowCounts, window_counts

_BLOCK = 124
"""Channels that the MVE depthwise kernel handles at a time."""
_SPREAD_ABOVE = 1
"""Output channels above which the MVE kernel spreads a single input channel over all of them, and
runs a convolution."""


class _MveKernels(CmsisNnKernels):
    """Four rows at a time, 16 elements a step."""

    def loops(self) -> dict[str, Loops]:
        """Pools and element-wise operators go by lanes, too."""
        return {
            **super().loops(),
            **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _pool_by_lanes),
            **dict.fromkeys(POINTWISE, partial(pointwise, by_lanes=True)),
        }

    def product(self, rows: int, out: int, column: int) -> Counts:
        """Steps of 16."""
        fours, odd, steps = rows // 4, rows % 4, ceil_div(column, 16)
        return {
            "four_step": fours * out * steps, "four": fours * out,
            "odd_step": odd * out * steps, "odd": odd * out, "odd4": odd * (out // 4),
            "fours": fours,
        }  # fmt: skip

    def vectors(self, rows: int, out: int, column: int) -> Counts:
        """Four rows of weights at a time."""
        fours, odd, steps = out // 4, out % 4, ceil_div(column, 16)
        return {"four_step": rows * fours * steps, "four": rows * fours,
                "odd_step": rows * odd * steps, "odd": rows * odd,
                "step_8": rows * out * ceil_div(column, 8)}  # fmt: skip

    def columns(self, w: WindowCounts) -> Counts:
        """Of four pixels."""
        pixels = w.pixels // max(1, w.batch)
        product = self.product(pixels, w.channels[1] // w.groups, w.column)
        return {
            **times(product, w.batch * w.groups),
            **times(column_counts(w, w.kernel_depth), w.groups),
        }

    def steps(self, name: str, taps: int, depth: int) -> Counts:
        """Sixteen channels at a time."""
        return {f"{name}_step": taps * ceil_div(depth, 16)}

    def conv_of_row(self, w: WindowCounts, macs: int) -> Work:
        """arm_convolve_1_x_n_s8: windows at both edges apart."""
        sides = ceil_div(w.pad[1], w.stride[1]) * 2
        counts = {
            **times(self.product(w.output[1], w.channels[1], w.column), w.batch),
            "edge": w.batch * sides, "edge_element": w.batch * sides * w.column,
        }  # fmt: skip
        return Work("conv_row", counts, macs)

    def depthwise_s8(self, w: WindowCounts) -> tuple[str, Counts]:
        """A single input channel runs as a convolution."""
        if w.channels[0] == 1 and w.channels[1] > _SPREAD_ABOVE:
            columns = self.columns(replace(w, kernel_depth=1))
            return "depthwise_spread", {**columns, "turned": w.channels[1] * w.taps}
        return super().depthwise_s8(w)

    def depthwise_simple(self, w: WindowCounts) -> tuple[str, Counts]:
        """Columns of four pixels, by blocks of channels."""
        blocks, padded_channels = ceil_div(w.channels[0], _BLOCK), ceil_div(w.channels[0], 4)
        fours, odd = w.pixels // 4, w.pixels % 4
        return "depthwise_fast", {
            **column_counts(w, w.channels[0]),
            "block": blocks * w.pixels, "block_tap": blocks * w.inside,
            "four_mac": fours * padded_channels * w.taps, "four": fours * padded_channels,
            "odd_mac": odd * padded_channels * w.taps, "odd": odd * padded_channels,
            "fours": fours,
        }  # fmt: skip


def _pool_by_lanes(case: Case) -> Work | None:
    """AVERAGE_POOL_2D, MAX_POOL_2D."""
    w = window_counts(case)
    if w is None or case.data.type not in SERVED:
        return None
    depth, pixels, wide = w.channels[0], w.pixels, ceil_div(w.channels[0], 16)
    counts = {
        "tap": w.inside, "row": w.rows_inside, "pixel": pixels,
        "tap_16": w.inside * wide, "pixel_16": pixels * wide,
        "tap_8": w.inside * ceil_div(depth, 8), "pixel_8": pixels * ceil_div(depth, 8),
        "output_16": ceil_div(case.result.elements, 16),
    }  # fmt: skip
    return Work(pool_path(case), counts, w.inside * depth)


MVE = KernelFamily("mve", _MveKernels().loops(), REFERENCE)
"""With MVE (M55, M85)."""
