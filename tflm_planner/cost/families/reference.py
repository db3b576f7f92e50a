"""Which loops TFLM's reference kernels run.

They multiply once at a time, and check at every tap of a window whether it lies in the image.
Read from TFLM 90b983c. A count is a number of times that a piece of code runs; what the piece
costs is a constant that the fit finds. This module must not know constants.
"""

from __future__ import annotations

from tflm_planner.cost.case import Case
from tflm_planner.cost.families.base import KernelFamily
from tflm_planner.cost.kinds import Counts, Work
from tflm_planner.cost.moves import MOVES
from tflm_planner.cost.windows import WindowCounts, spread_inside, window_counts


def conv(case: Case) -> Work:
    """CONV_2D."""
    w = window_counts(case)
    if w is None:
        return _by_sizes(case)
    counts = {
        "mac": w.inside * w.kernel_depth * w.channels[1],
        "tap": w.inside * w.channels[1],
        "place": w.pixels * w.taps * w.channels[1],
        "row": w.rows_inside * w.channels[1],
        "output": w.pixels * w.channels[1],
        "pixel": w.pixels,
    }
    return Work("conv", counts, w.pixels * w.column * w.channels[1])


def depthwise(case: Case) -> Work:
    """DEPTHWISE_CONV_2D."""
    w = window_counts(case)
    if w is None:
        return _by_sizes(case)
    return Work("depthwise", each_channel(w), w.pixels * w.taps * w.channels[1])


def each_channel(w: WindowCounts) -> Counts:
    """Channel by channel."""
    fours = w.channels[1] // 4
    return {
        "mac": w.inside * w.channels[1], "place": w.pixels * w.taps * w.channels[1],
        "row": w.rows_inside * w.channels[1], "output": w.pixels * w.channels[1],
        "pixel": w.pixels, "channel": w.pixels * w.channels[0],
        "tap": w.inside, "tap_4": w.inside * fours, "output_4": w.pixels * fours,
        "place_4": w.pixels * (w.taps // 2) * fours,
    }  # fmt: skip


def dense(case: Case) -> Work:
    """FULLY_CONNECTED: an input of any rank, by rows."""
    weights = case.operand(1)
    if weights is None or len(weights.shape) != 2:
        return _by_sizes(case)
    out, column = weights.shape
    rows = case.data.elements // max(1, column)
    macs = rows * out * column
    path = "dense_channels" if weights.scales > 1 else "dense"
    return Work(path, {"mac": macs, "output": rows * out, "row": rows}, macs)


def matmul(case: Case) -> Work:
    """BATCH_MATMUL: operands are transposed first where they do not lie as the kernel wants."""
    x, y, result = case.operand(0), case.operand(1), case.result
    if x is None or y is None or len(result.shape) < 2 or len(x.shape) < 2:
        return _by_sizes(case)
    rows, out = result.shape[-2:]
    column = x.shape[-2] if case.option("adjX") else x.shape[-1]
    batch = result.elements // max(1, rows * out)
    straight = 1 - case.option("adjY")
    counts = {
        "mac": result.elements * column,
        "turned_x": x.elements * case.option("adjX"), "turn_x": batch * case.option("adjX"),
        "turned_y": y.elements * straight, "turn_y": batch * straight, "batch": batch,
        "output": result.elements, "rows": batch * rows,
    }  # fmt: skip
    return Work("matmul", counts, result.elements * column)


def transpose_conv(case: Case) -> Work:
    """TRANSPOSE_CONV: every input pixel is spread over outputs."""
    weights, data, result = case.operand(1), case.data, case.result
    if weights is None or {len(t.shape) for t in (weights, data, result)} != {4}:
        return _by_sizes(case)
    out, kh, kw, depth = weights.shape
    pixels = data.elements // max(1, depth)
    inside = spread_inside(data.shape, result.shape, (kh, kw), case)
    counts = {
        "mac": inside * depth * out, "tap": inside * depth, "line": pixels * kh * kw * depth,
        "pixel": pixels,
        "element": pixels * depth, "output": result.elements, "place": pixels * kh * kw,
    }  # fmt: skip
    return Work("transpose_conv", counts, pixels * kh * kw * depth * out)


def pool(case: Case) -> Work:
    """AVERAGE_POOL_2D, MAX_POOL_2D."""
    w = window_counts(case)
    if w is None:
        return _by_sizes(case)
    depth, pixels = w.channels[0], w.pixels
    counts = {
        "tap": w.inside, "row": w.rows_inside, "pixel": pixels,
        "tap_4": w.inside * (depth // 4), "tap_1": w.inside * (depth % 4),
        "output": pixels * depth, "tap_each": w.inside * depth, "row_each": w.rows_inside * depth,
    }  # fmt: skip
    return Work(pool_path(case), counts, w.inside * depth)


def pool_path(case: Case) -> str:
    """The path of a pool in tables of constants."""
    return "average" if case.kind.startswith("AVERAGE") else "max"


def _by_sizes(case: Case) -> Work:
    return Work("other", {"output": case.result.elements, "input": case.data.elements}, 0)


REFERENCE = KernelFamily(
    "reference",
    {
        **MOVES,
        "CONV_2D": conv,
        "DEPTHWISE_CONV_2D": depthwise,
        "FULLY_CONNECTED": dense,
        "BATCH_MATMUL": matmul,
        "TRANSPOSE_CONV": transpose_conv,
        "AVERAGE_POOL_2D": pool,
        "MAX_POOL_2D": pool,
    },
)
"""TFLM's own kernels."""
