"""Which loops convolutions and matrix products run, by kernel library, as counts of loop bodies.

    reference   one multiplication at a time, the window checked at every tap
    plain, dsp  CMSIS-NN: columns copied, two rows x two channels at a time, steps of 16, 4, 1
    mve         CMSIS-NN: four rows at a time, 16 elements per step

Read from CMSIS-NN 4ab83cc and TFLM 90b983c. A count says how often a piece of code runs; its cost
is a constant that the fit finds. This module must not know constants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflm_planner.cost.case import Case
from tflm_planner.cost.kinds import Counts, KernelFamily, Work
from tflm_planner.cost.windows import WindowCounts, kept_rows, spread_inside, window_counts

_BLOCK = 124
"""Channels that the MVE depthwise kernel handles at a time."""
_SPREAD_ABOVE = 1
"""With more output channels than this, the MVE kernel copies a single input channel to all of them
and runs a convolution."""
_REVERSE_ABOVE = 16
"""With more input channels than this, TRANSPOSE_CONV with a small stride runs as a convolution with
reversed weights."""
_LONG = 512
"""16-bit columns longer than this are summed in 64 bits, in parts."""
_LONG_COUNTS = (
    "mac",
    "slow",
    "output",
    "two_4",
    "odd_4",
    "last_element",
    "tap_4",
    "tap",
    "four_step",
)


def _up(value: int, unit: int) -> int:
    return -(-value // unit)


_WEIGHT_SUMS = ("pair", "pair_weight")
"""Counts of a product that stand for summing its weights."""


def _gemm(rows: int, out: int, column: int, family: KernelFamily) -> Counts:
    """A product [rows x column] by [out x column], transposed."""
    if family == "mve":
        fours, odd, steps = rows // 4, rows % 4, _up(column, 16)
        return {
            "four_step": fours * out * steps, "four": fours * out,
            "odd_step": odd * out * steps, "odd": odd * out, "odd4": odd * (out // 4),
            "fours": fours,
        }  # fmt: skip
    pairs, twos, odd, last = out // 2, rows // 2, rows % 2, out % 2
    return {
        "two_16": pairs * twos * (column // 16), "two_4": pairs * twos * (column % 16 // 4),
        "two_1": pairs * twos * (column % 4), "two": pairs * twos,
        "odd_4": pairs * odd * (column // 4), "odd_1": pairs * odd * (column % 4),
        "odd": pairs * odd, "pair_weight": pairs * column, "pair": pairs,
        "last_element": last * rows * column, "last": last * rows,
    }  # fmt: skip


def _column_counts(w: WindowCounts, depth: int) -> Counts:
    """Copying the columns, tap by tap."""
    outside = w.pixels * w.taps - w.inside
    return {
        "column": w.pixels, "column_row": w.pixels * w.kernel[0], "tap": w.inside,
        "tap_4": w.inside * (depth // 4), "tap_16": w.inside * _up(depth, 16),
        "tap_1": w.inside * (depth % 4), "tap_short": w.inside * (depth < 4),
        "outside": outside, "outside_4": outside * _up(depth, 4),
    }  # fmt: skip


def _plain_conv(w: WindowCounts) -> Counts:
    """One multiplication at a time."""
    return {
        "mac": w.inside * w.kernel_depth * w.channels[1],
        "tap": w.inside * w.channels[1],
        "place": w.pixels * w.taps * w.channels[1],
        "row": w.rows_inside * w.channels[1],
        "output": w.pixels * w.channels[1],
        "pixel": w.pixels,
    }


def conv(case: Case, family: KernelFamily) -> Work:
    """CONV_2D."""
    w, kind = window_counts(case), case.data.type
    if w is None:
        return Work("other", _sizes(case), 0)
    macs = w.pixels * w.column * w.channels[1]
    if family == "reference" or kind not in ("int8", "int16"):
        return Work("conv", _plain_conv(w), macs)
    if kind == "int8" and w.groups == 1 and _pointwise(w):
        if w.stride == (1, 1):
            return Work("conv_1x1", _gemm(w.pixels, w.channels[1], w.channels[0], family), macs)
        strided = _gemm(w.output[1], w.channels[1], w.channels[0], family)
        lines = w.batch * w.output[0]
        return Work("conv_1x1_strided", {"line": lines, **_times(strided, lines)}, macs)
    if kind == "int8" and _row(w):
        if family == "mve":
            counts = {**_times(_gemm(w.output[1], w.channels[1], w.column, family), w.batch)}
            return Work("conv_row", {**counts, **_edges(w)}, macs)
        return Work("conv", _columns(w, family), macs)
    if kind == "int16" and w.column > _LONG:
        outputs = w.pixels * w.channels[1]
        counts = {"mac": macs, "slow": outputs * (w.column - _LONG), "output": outputs}
        counts = {**counts, **_columns(w, family)}
        return Work("conv_long", {k: v for k, v in counts.items() if k in _LONG_COUNTS}, macs)
    return Work("conv", _columns(w, family), macs)


def _pointwise(w: WindowCounts) -> bool:
    return w.taps == 1 and w.pad == (0, 0) and w.undilated


def _row(w: WindowCounts) -> bool:
    """arm_nn_is_convolve_1_x_n."""
    flat = w.input[0] == 1 and w.kernel[0] == 1 and w.dilation[1] == 1 and w.groups == 1
    return flat and w.stride[1] * w.channels[0] % 4 == 0


def _edges(w: WindowCounts) -> Counts:
    sides = _up(w.pad[1], w.stride[1]) * 2
    return {"edge": w.batch * sides, "edge_element": w.batch * sides * w.column}


def _times(counts: Counts, factor: int) -> Counts:
    return {name: value * factor for name, value in counts.items()}


def _columns(w: WindowCounts, family: KernelFamily) -> Counts:
    """arm_convolve_s8, arm_convolve_s16: columns of two (MVE: four) pixels, then a product."""
    pixels = w.pixels // max(1, w.batch)
    product = _gemm(pixels, w.channels[1] // w.groups, w.column, family)
    if family != "mve":
        # Weights are not summed here: the offset is added while columns are widened.
        product = {k: v for k, v in product.items() if k not in _WEIGHT_SUMS}
        widened = {"widen_4": w.pixels * (w.column // 4), "widen_1": w.pixels * (w.column % 4)}
        half = {"half": w.batch * (pixels // 2) * w.groups}
        product = {**_times(product, w.batch * w.groups), **widened, **half}
        product["two_4"] += 4 * product.pop("two_16")  # steps of 4 only
        return {**product, **_times(_column_counts(w, w.kernel_depth), w.groups)}
    return {
        **_times(product, w.batch * w.groups),
        **_times(_column_counts(w, w.kernel_depth), w.groups),
    }


def depthwise(case: Case, family: KernelFamily) -> Work:
    """DEPTHWISE_CONV_2D."""
    w, kind = window_counts(case), case.data.type
    if w is None:
        return Work("other", _sizes(case), 0)
    macs = w.pixels * w.taps * w.channels[1]
    if family == "reference" or kind != "int8":
        name = "depthwise" if kind != "int16" or family == "reference" else _depthwise_s16(w)
        return Work(name, _each_channel(w), macs)
    if family == "mve" and w.channels[0] == 1 and w.channels[1] > _SPREAD_ABOVE:
        spread = replace(w, kernel_depth=1)
        counts = {**_columns(spread, family), "turned": w.channels[1] * w.taps}
        return Work("depthwise_spread", counts, macs)
    if w.channels[0] == w.channels[1] and w.batch == 1 and w.undilated:
        if family == "mve":
            return Work("depthwise_fast", _mve_depthwise(w), macs)
        if w.kernel == (3, 3) and max(w.pad) <= 1:
            return Work("depthwise_3x3", _groups_of_four(w), macs)
        if family == "dsp":
            return Work("depthwise_fast", _dsp_depthwise(w), macs)
        return Work("depthwise", _each_channel(w), macs)
    multiplier = w.channels[1] // max(1, w.channels[0])
    if multiplier % 4 == 0 and w.batch == 1 and w.undilated:
        return Work("depthwise_by_4", _by_four(w), macs)
    return Work("depthwise", _each_channel(w), macs)


def _depthwise_s16(w: WindowCounts) -> str:
    """Name of the 16-bit path: fast for a multiplier of 1 without dilation."""
    fast = w.channels[0] == w.channels[1] and w.batch == 1 and w.undilated and w.taps < 512
    return "depthwise_fast" if fast else "depthwise"


def _each_channel(w: WindowCounts) -> Counts:
    fours = w.channels[1] // 4
    return {
        "mac": w.inside * w.channels[1], "place": w.pixels * w.taps * w.channels[1],
        "row": w.rows_inside * w.channels[1], "output": w.pixels * w.channels[1],
        "pixel": w.pixels, "channel": w.pixels * w.channels[0],
        "tap": w.inside, "tap_4": w.inside * fours, "output_4": w.pixels * fours,
        "place_4": w.pixels * (w.taps // 2) * fours,
    }  # fmt: skip


def _by_four(w: WindowCounts) -> Counts:
    tiles = w.channels[1] // 4
    return {
        "mac_4": w.inside * tiles, "row_4": w.rows_inside * tiles, "output_4": w.pixels * tiles,
        "channel": w.pixels * w.channels[0], "pixel": w.pixels, "line": w.batch * w.output[0],
    }  # fmt: skip


def _groups_of_four(w: WindowCounts) -> Counts:
    fours, rest = w.channels[0] // 4, w.channels[0] % 4
    return {
        "mac_4": w.inside * fours, "row_4": w.rows_inside * fours, "output_4": w.pixels * fours,
        "mac": w.inside * rest, "row": w.rows_inside * rest, "output": w.pixels * rest,
        "pixel": w.pixels,
    }  # fmt: skip


def _dsp_depthwise(w: WindowCounts) -> Counts:
    fours, rest = w.channels[0] // 4, w.channels[0] % 4
    return {
        **_column_counts(w, w.channels[0]),
        "two_taps_4": w.pixels * fours * (w.taps // 2),
        "one_tap_4": w.pixels * fours * (w.taps % 2),
        "output_4": w.pixels * fours, "mac": w.pixels * rest * w.taps, "output": w.pixels * rest,
    }  # fmt: skip


def _mve_depthwise(w: WindowCounts) -> Counts:
    blocks, padded_channels = _up(w.channels[0], _BLOCK), _up(w.channels[0], 4)
    fours, odd = w.pixels // 4, w.pixels % 4
    return {
        **_column_counts(w, w.channels[0]),
        "block": blocks * w.pixels, "block_tap": blocks * w.inside,
        "four_mac": fours * padded_channels * w.taps, "four": fours * padded_channels,
        "odd_mac": odd * padded_channels * w.taps, "odd": odd * padded_channels, "fours": fours,
    }  # fmt: skip


def dense(case: Case, family: KernelFamily) -> Work:
    """FULLY_CONNECTED: an input of any rank, by rows."""
    weights = case.operand(1)
    if weights is None or len(weights.shape) != 2:
        return Work("other", _sizes(case), 0)
    out, column = weights.shape
    rows = case.data.elements // max(1, column)
    macs, kind = rows * out * column, case.data.type
    suffix = "_channels" if weights.scales > 1 else ""
    if family == "reference" or kind not in ("int8", "int16"):
        return Work(f"dense{suffix}", {"mac": macs, "output": rows * out, "row": rows}, macs)
    if kind == "int8" and len(case.result.shape) > 2 and column % 4 == 0:
        # Runs as a 1x1 convolution; a single scale is first repeated for every channel.
        spread = {"spread_scale": out} if weights.scales <= 1 else {}
        return Work("dense_rows", {**_gemm(rows, out, column, family), **spread}, macs)
    return Work(f"dense{suffix}", {"row": rows, **_vector(rows, out, column, family)}, macs)


def _vector(rows: int, out: int, column: int, family: KernelFamily) -> Counts:
    """Vectors times a matrix, one by one."""
    if family == "mve":
        fours, odd, steps = out // 4, out % 4, _up(column, 16)
        return {"four_step": rows * fours * steps, "four": rows * fours,
                "odd_step": rows * odd * steps, "odd": rows * odd,
                "step_8": rows * out * _up(column, 8)}  # fmt: skip
    pairs, last = out // 2, out % 2
    return {"pair_4": rows * pairs * (column // 4), "pair_1": rows * pairs * (column % 4),
            "pair": rows * pairs, "last_4": rows * last * (column // 4),
            "last_1": rows * last * (column % 4), "last": rows * last,
            "third": rows * (out // 3), "third_1": rows * (out // 3) * column}  # fmt: skip


def matmul(case: Case, family: KernelFamily) -> Work:
    """BATCH_MATMUL: operands are transposed first if their layout is not that of the kernel."""
    x, y, result = case.operand(0), case.operand(1), case.result
    if x is None or y is None or len(result.shape) < 2 or len(x.shape) < 2:
        return Work("other", _sizes(case), 0)
    rows, out = result.shape[-2:]
    column = x.shape[-2] if case.option("adjX") else x.shape[-1]
    batch = result.elements // max(1, rows * out)
    straight = 1 - case.option("adjY")
    transposed_operands = {
        "turned_x": x.elements * case.option("adjX"), "turn_x": batch * case.option("adjX"),
        "turned_y": y.elements * straight, "turn_y": batch * straight,
    }  # fmt: skip
    counts = {"mac": result.elements * column, **transposed_operands, "batch": batch,
              "output": result.elements, "rows": batch * rows}  # fmt: skip
    if family != "reference" and case.data.type in ("int8", "int16"):
        product = _vector(batch * rows, out, column, family)
        sums = {"sum_4": batch * out * (column // 4), "sum_1": batch * out * (column % 4)}
        counts = {**product, **transposed_operands, "batch": batch, "rows": batch * rows, **sums}
    return Work("matmul", counts, result.elements * column)


def transpose_conv(case: Case, family: KernelFamily) -> Work:
    """TRANSPOSE_CONV: every input pixel is spread over outputs; deep int8 inputs under CMSIS-NN
    run as a convolution of the reversed filter."""
    weights, data, result = case.operand(1), case.data, case.result
    if weights is None or {len(t.shape) for t in (weights, data, result)} != {4}:
        return Work("other", _sizes(case), 0)
    out, kh, kw, depth = weights.shape
    pixels = data.elements // max(1, depth)
    stride = max(case.option("strideH", 1), case.option("strideW", 1))
    macs = pixels * kh * kw * depth * out
    inside = spread_inside(data.shape, result.shape, (kh, kw), case)
    counts: Counts = {
        "mac": inside * depth * out, "tap": inside * depth, "line": pixels * kh * kw * depth,
        "pixel": pixels,
        "element": pixels * depth, "output": result.elements, "place": pixels * kh * kw,
    }  # fmt: skip
    if family == "reference" or data.type != "int8":
        return Work("transpose_conv", counts, macs)
    if stride <= 2 and depth > _REVERSE_ABOVE:
        area = result.elements // max(1, out)
        taps = _up(kh, stride) * _up(kw, stride)
        product = _gemm(area, out, kh * kw * depth, family)
        counts = {"turned": kh * kw * depth * out, "tap": area * taps, "column": area,
                  "column_element": area * kh * kw * depth,
                  "tap_4": area * taps * (depth // 4)}  # fmt: skip
        return Work("transpose_conv_turned", {**product, **counts}, macs)
    return Work("transpose_conv", _spread(case, family), macs)


def _spread(case: Case, family: KernelFamily) -> Counts:
    """arm_transpose_conv_s8: rows of sums; four input pixels at a time, then two, then one."""
    out, kh, kw, depth = case.inputs[1].shape if case.inputs[1] is not None else (0, 0, 0, 0)
    batch, height, width, _ = case.data.shape
    stride_h, stride_w = case.option("strideH", 1), case.option("strideW", 1)
    rows = batch * kept_rows(case, kh)
    row_elements = (width - 1) * stride_w + max(kw, stride_w)
    counts = {
        "output": case.result.elements, "pixel": batch * height * width, "row": rows * out,
        "cleared": batch * row_elements * (height * stride_h + kh) * out, "line": batch * height,
    }  # fmt: skip
    for name, groups in (("four", width // 4), ("two", width % 4 // 2), ("one", width % 2)):
        taps = groups * rows * kw * out
        counts[name] = taps
        if family == "mve":
            counts[f"{name}_step"] = taps * _up(depth, 16)
        else:
            counts[f"{name}_4"], counts[f"{name}_1"] = taps * (depth // 4), taps * (depth % 4)
    return counts


def pool(case: Case, family: KernelFamily) -> Work:
    """AVERAGE_POOL_2D, MAX_POOL_2D."""
    w = window_counts(case)
    if w is None:
        return Work("other", _sizes(case), 0)
    name = "average" if case.kind.startswith("AVERAGE") else "max"
    depth, pixels = w.channels[0], w.pixels
    counts = {"tap": w.inside, "row": w.rows_inside, "pixel": pixels}
    if family == "mve" and case.data.type in ("int8", "int16"):
        padded_depth = _up(depth, 16)
        loops = {"tap_16": w.inside * padded_depth, "pixel_16": pixels * padded_depth,
                "tap_8": w.inside * _up(depth, 8), "pixel_8": pixels * _up(depth, 8),
                "output_16": _up(case.result.elements, 16)}  # fmt: skip
        return Work(name, {**counts, **loops}, w.inside * depth)
    loops = {
        "tap_4": w.inside * (depth // 4), "tap_1": w.inside * (depth % 4),
        "output": pixels * depth, "tap_each": w.inside * depth, "row_each": w.rows_inside * depth,
    }  # fmt: skip
    return Work(name, {**counts, **loops}, w.inside * depth)


def _sizes(case: Case) -> Counts:
    return {"output": case.result.elements, "input": case.data.elements}


PRODUCTS: dict[str, Callable[[Case, KernelFamily], Work]] = {
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "FULLY_CONNECTED": dense,
    "BATCH_MATMUL": matmul,
    "TRANSPOSE_CONV": transpose_conv,
    "AVERAGE_POOL_2D": pool,
    "MAX_POOL_2D": pool,
}
