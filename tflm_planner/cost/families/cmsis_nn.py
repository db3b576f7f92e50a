"""Which loops CMSIS-NN runs, where it does not leave an operator to the reference kernels.

    plain, dsp   columns copied, two rows x two channels at a time, steps of 16, 4, 1
    mve          see `cmsis_nn_mve`

Read from CMSIS-NN 4ab83cc and TFLM 90b983c. A count is a number of times that a piece of code
runs; what the piece costs is a constant that the fit finds. This module must not know constants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from tflm_planner.cost.case import Case
from tflm_planner.cost.families.base import KernelFamily, Loops
from tflm_planner.cost.families.reference import REFERENCE, each_channel, matmul
from tflm_planner.cost.kinds import Counts, Work, ceil_div, times
from tflm_planner.cost.moves import pad_by_runs
from tflm_planner.cost.windows import WindowCounts, kept_rows, window_counts

_REVERSE_ABOVE = 16
"""Input channels above which TRANSPOSE_CONV of a small stride is a convolution by reversed
weights."""
_LONG = 512
"""16-bit columns above this sum up in 64 bits, by parts."""
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
_WEIGHT_SUMS = ("pair", "pair_weight")
"""Counts of a product that stand for sums of its weights."""
SERVED = ("int8", "int16")
"""Types of elements; others are left to the reference kernels."""


class CmsisNnKernels(ABC):
    """The kernels as built for one kind of core: those that multiply differ by core."""

    def loops(self) -> dict[str, Loops]:
        """What the kernels do, by kind of operator."""
        return {
            "CONV_2D": self.conv,
            "DEPTHWISE_CONV_2D": self.depthwise,
            "FULLY_CONNECTED": self.dense,
            "BATCH_MATMUL": self.matmul,
            "TRANSPOSE_CONV": self.transpose_conv,
            "PAD": pad_by_runs,
        }

    @abstractmethod
    def product(self, rows: int, out: int, column: int) -> Counts:
        """A product [rows x column] by [out x column], transposed."""

    @abstractmethod
    def vectors(self, rows: int, out: int, column: int) -> Counts:
        """Vectors times a matrix, one by one."""

    @abstractmethod
    def columns(self, w: WindowCounts) -> Counts:
        """arm_convolve_s8, arm_convolve_s16: columns of several pixels, then a product."""

    @abstractmethod
    def steps(self, name: str, taps: int, depth: int) -> Counts:
        """Sums over the channels of `taps` pixels of a transposed convolution."""

    def conv(self, case: Case) -> Work | None:
        """CONV_2D."""
        w, kind = window_counts(case), case.data.type
        if w is None or kind not in SERVED:
            return None
        macs = w.pixels * w.column * w.channels[1]
        if kind == "int8" and w.groups == 1 and _is_pointwise(w):
            if w.stride == (1, 1):
                return Work("conv_1x1", self.product(w.pixels, w.channels[1], w.channels[0]), macs)
            strided = self.product(w.output[1], w.channels[1], w.channels[0])
            lines = w.batch * w.output[0]
            return Work("conv_1x1_strided", {"line": lines, **times(strided, lines)}, macs)
        if kind == "int8" and _is_row(w):
            return self.conv_of_row(w, macs)
        if kind == "int16" and w.column > _LONG:
            outputs = w.pixels * w.channels[1]
            counts = {"mac": macs, "slow": outputs * (w.column - _LONG), "output": outputs}
            counts = {**counts, **self.columns(w)}
            return Work("conv_long", {k: v for k, v in counts.items() if k in _LONG_COUNTS}, macs)
        return Work("conv", self.columns(w), macs)

    def conv_of_row(self, w: WindowCounts, macs: int) -> Work:
        """A convolution of int8 over images of one row."""
        return Work("conv", self.columns(w), macs)

    def depthwise(self, case: Case) -> Work | None:
        """DEPTHWISE_CONV_2D."""
        w, kind = window_counts(case), case.data.type
        if w is None or kind not in SERVED:
            return None
        path, counts = _depthwise_s16(w) if kind == "int16" else self.depthwise_s8(w)
        return Work(path, counts, w.pixels * w.taps * w.channels[1])

    def depthwise_s8(self, w: WindowCounts) -> tuple[str, Counts]:
        """Path and counts for int8."""
        if w.channels[0] == w.channels[1] and w.batch == 1 and w.undilated:
            return self.depthwise_simple(w)
        multiplier = w.channels[1] // max(1, w.channels[0])
        if multiplier % 4 == 0 and w.batch == 1 and w.undilated:
            return "depthwise_by_4", _by_four(w)
        return "depthwise", each_channel(w)

    @abstractmethod
    def depthwise_simple(self, w: WindowCounts) -> tuple[str, Counts]:
        """Path and counts where each channel has one result: one image, no dilation."""

    def dense(self, case: Case) -> Work | None:
        """FULLY_CONNECTED: an input of any rank, by rows."""
        weights, kind = case.operand(1), case.data.type
        if weights is None or len(weights.shape) != 2 or kind not in SERVED:
            return None
        out, column = weights.shape
        rows = case.data.elements // max(1, column)
        macs = rows * out * column
        if kind == "int8" and len(case.result.shape) > 2 and column % 4 == 0:
            # As a convolution of 1x1; the one scale, if so, is repeated for every channel.
            spread = {"spread_scale": out} if weights.scales <= 1 else {}
            return Work("dense_rows", {**self.product(rows, out, column), **spread}, macs)
        path = "dense_channels" if weights.scales > 1 else "dense"
        return Work(path, {"row": rows, **self.vectors(rows, out, column)}, macs)

    def matmul(self, case: Case) -> Work | None:
        """BATCH_MATMUL: operands are transposed as by the reference kernel."""
        by_reference = matmul(case)
        if case.data.type not in SERVED or by_reference.path != "matmul":
            return None
        x, out = case.inputs[0], case.result.shape[-1]
        assert x is not None
        column = x.shape[-2] if case.option("adjX") else x.shape[-1]
        batch, rows = by_reference.counts["batch"], by_reference.counts["rows"]
        counts = {k: v for k, v in by_reference.counts.items() if k not in ("mac", "output")}
        sums = {"sum_4": batch * out * (column // 4), "sum_1": batch * out * (column % 4)}
        product = self.vectors(rows, out, column)
        return Work("matmul", {**product, **counts, **sums}, by_reference.macs)

    def transpose_conv(self, case: Case) -> Work | None:
        """TRANSPOSE_CONV: deep inputs run as a convolution of the reversed filter."""
        weights, data, result = case.operand(1), case.data, case.result
        if weights is None or {len(t.shape) for t in (weights, data, result)} != {4}:
            return None
        if data.type != "int8":
            return None
        out, kh, kw, depth = weights.shape
        stride = max(case.option("strideH", 1), case.option("strideW", 1))
        macs = data.elements // max(1, depth) * kh * kw * depth * out
        if stride > 2 or depth <= _REVERSE_ABOVE:
            return Work("transpose_conv", self.spread(case, weights.shape), macs)
        area = result.elements // max(1, out)
        taps = ceil_div(kh, stride) * ceil_div(kw, stride)
        counts = {
            **self.product(area, out, kh * kw * depth),
            "turned": kh * kw * depth * out, "tap": area * taps, "column": area,
            "column_element": area * kh * kw * depth, "tap_4": area * taps * (depth // 4),
        }  # fmt: skip
        return Work("transpose_conv_turned", counts, macs)

    def spread(self, case: Case, weights: tuple[int, ...]) -> Counts:
        """arm_transpose_conv_s8: rows of sums; four input pixels, then two, then one, at a time."""
        out, kh, kw, depth = weights
        batch, height, width, _ = case.data.shape
        stride_h, stride_w = case.option("strideH", 1), case.option("strideW", 1)
        rows = batch * kept_rows(case, kh)
        row_elements = (width - 1) * stride_w + max(kw, stride_w)
        counts = {
            "output": case.result.elements, "pixel": batch * height * width, "row": rows * out,
            "cleared": batch * row_elements * (height * stride_h + kh) * out,
            "line": batch * height,
        }  # fmt: skip
        for name, groups in (("four", width // 4), ("two", width % 4 // 2), ("one", width % 2)):
            taps = groups * rows * kw * out
            counts |= {name: taps, **self.steps(name, taps, depth)}
        return counts


class _PairKernels(CmsisNnKernels):
    """Two rows x two channels at a time: cores without vectors."""

    def product(self, rows: int, out: int, column: int) -> Counts:
        """Steps of 16, 4 and 1."""
        pairs, twos, odd, last = out // 2, rows // 2, rows % 2, out % 2
        return {
            "two_16": pairs * twos * (column // 16), "two_4": pairs * twos * (column % 16 // 4),
            "two_1": pairs * twos * (column % 4), "two": pairs * twos,
            "odd_4": pairs * odd * (column // 4), "odd_1": pairs * odd * (column % 4),
            "odd": pairs * odd, "pair_weight": pairs * column, "pair": pairs,
            "last_element": last * rows * column, "last": last * rows,
        }  # fmt: skip

    def vectors(self, rows: int, out: int, column: int) -> Counts:
        """Two or three rows of weights at a time, by type of element."""
        pairs, last = out // 2, out % 2
        return {"pair_4": rows * pairs * (column // 4), "pair_1": rows * pairs * (column % 4),
                "pair": rows * pairs, "last_4": rows * last * (column // 4),
                "last_1": rows * last * (column % 4), "last": rows * last,
                "third": rows * (out // 3), "third_1": rows * (out // 3) * column}  # fmt: skip

    def columns(self, w: WindowCounts) -> Counts:
        """Of two pixels.

        Weights are not summed here: the offset is added while columns are widened.
        """
        pixels = w.pixels // max(1, w.batch)
        product = self.product(pixels, w.channels[1] // w.groups, w.column)
        product = {k: v for k, v in product.items() if k not in _WEIGHT_SUMS}
        widened = {"widen_4": w.pixels * (w.column // 4), "widen_1": w.pixels * (w.column % 4)}
        half = {"half": w.batch * (pixels // 2) * w.groups}
        product = {**times(product, w.batch * w.groups), **widened, **half}
        product["two_4"] += 4 * product.pop("two_16")  # steps of 4 only
        return {**product, **times(column_counts(w, w.kernel_depth), w.groups)}

    def steps(self, name: str, taps: int, depth: int) -> Counts:
        """Four channels, then one, at a time."""
        return {f"{name}_4": taps * (depth // 4), f"{name}_1": taps * (depth % 4)}

    def depthwise_simple(self, w: WindowCounts) -> tuple[str, Counts]:
        """3x3 has a kernel of its own."""
        if w.kernel == (3, 3) and max(w.pad) <= 1:
            return "depthwise_3x3", _groups_of_four(w)
        return self.depthwise_of_any_kernel(w)

    def depthwise_of_any_kernel(self, w: WindowCounts) -> tuple[str, Counts]:
        """Path and counts of other sizes."""
        return "depthwise", each_channel(w)


class _DspKernels(_PairKernels):
    """As without vectors, but for depthwise convolutions."""

    def depthwise_of_any_kernel(self, w: WindowCounts) -> tuple[str, Counts]:
        """Columns, then two taps of four channels at a time."""
        fours, rest = w.channels[0] // 4, w.channels[0] % 4
        return "depthwise_fast", {
            **column_counts(w, w.channels[0]),
            "two_taps_4": w.pixels * fours * (w.taps // 2),
            "one_tap_4": w.pixels * fours * (w.taps % 2), "output_4": w.pixels * fours,
            "mac": w.pixels * rest * w.taps, "output": w.pixels * rest,
        }  # fmt: skip


def column_counts(w: WindowCounts, depth: int) -> Counts:
    """Columns gathered tap by tap."""
    outside = w.pixels * w.taps - w.inside
    return {
        "column": w.pixels, "column_row": w.pixels * w.kernel[0], "tap": w.inside,
        "tap_4": w.inside * (depth // 4), "tap_16": w.inside * ceil_div(depth, 16),
        "tap_1": w.inside * (depth % 4), "tap_short": w.inside * (depth < 4),
        "outside": outside, "outside_4": outside * ceil_div(depth, 4),
    }  # fmt: skip


def _is_pointwise(w: WindowCounts) -> bool:
    return w.taps == 1 and w.pad == (0, 0) and w.undilated


def _is_row(w: WindowCounts) -> bool:
    """arm_nn_is_convolve_1_x_n."""
    flat = w.input[0] == 1 and w.kernel[0] == 1 and w.dilation[1] == 1 and w.groups == 1
    return flat and w.stride[1] * w.channels[0] % 4 == 0


def _depthwise_s16(w: WindowCounts) -> tuple[str, Counts]:
    """Fast for a multiplier of 1 without dilation."""
    fast = w.channels[0] == w.channels[1] and w.batch == 1 and w.undilated and w.taps < 512
    return "depthwise_fast" if fast else "depthwise", each_channel(w)


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


PLAIN = KernelFamily("plain", _PairKernels().loops(), REFERENCE)
"""For a core without vector instructions (Cortex-M0+, M3)."""
DSP = KernelFamily("dsp", _DspKernels().loops(), REFERENCE)
"""With the DSP extension (M4, M7, M33)."""
