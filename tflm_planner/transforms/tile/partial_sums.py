"""Splits a sum: every tile computes a share of every element, and ADD adds up the shares.

    X --conv--dw--project-- Y     part of the channels of conv and dw -> project, a share of Y -+
                                  the other channels                  -> project, the other ----ADD

This is not exact: floats are added in another order, and no int8 kernel returns its accumulator. So
shares of int8 are computed by the 16x8 kernels, the most precise ones among stock operators:

    int8 --QUANTIZE--> int16 --CONV_2D 16x8--> int16, scale from the largest possible sum
    ADD int16 of equal scales is exact, then QUANTIZE to int8

The remaining error is the rounding of every share to that scale, which is a fraction of a step of
the result, and the last rounding to int8. Source: MOTES, section 4.3 (figures 5 and 6). It must not
know memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.quantization import Quantization
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Range
from tflm_planner.ops.roles import PRODUCTS
from tflm_planner.transforms.axis_graph import REDUCE, Axis, Vertex, axis_graph, schemes_along
from tflm_planner.transforms.tile.box_plan import Cutting
from tflm_planner.transforms.tile.boxes import Box, NotTileableError, along, cuts, full_box
from tflm_planner.transforms.tile.operator_tiles import TileRecipe
from tflm_planner.transforms.tile.parts import values_of
from tflm_planner.transforms.tile.tiler import Tiler

SUM = -1
"""Used as an axis in `splits`: the axis over which the region's results are summed."""
_OVER_CHANNELS = PRODUCTS.keys() - {"DEPTHWISE_CONV_2D"}
"""Products that sum over the channels of the data, so that their sums can be split into shares."""
_LARGEST = 32767


class PartialSums:
    """The drafted operators of a region whose sums are split."""

    def __init__(self, model: Model, graph: Graph, ops: Sequence[Op], cutting: Cutting) -> None:
        (split,) = cutting.splits
        self._parts = split.parts
        self._tiler = Tiler(model, graph, ops, cutting)
        self._draft = self._tiler.draft
        self._axis = _reduce_axis(graph, ops, self._tiler.results)
        self._wide: dict[Tensor, Tensor] = {}
        self._zeros: dict[Op, Tensor] = {}

    def build(self) -> Draft:
        """Draft all operators. Raises NotTileableError."""
        tiler, summed = self._tiler, list(dict.fromkeys(self._axis.reduces))
        lengths = {_length(op) for op in summed}
        if len(lengths) > 1:
            raise NotTileableError("its sums are made over axes of different lengths")
        ranges = cuts(lengths.pop(), self._parts)
        if len(ranges) < 2:
            raise NotTileableError("its sum cannot be split into two")
        boxes = {
            t: self._spatial(t) for t in tiler.results if t.producer not in summed
        }  # results along the axis that are not summed over it
        needs: list[dict[Tensor, list[Box]]] = []
        for k in range(len(ranges)):
            tile_needs = {key: [b[k]] for key, b in boxes.items() if k < len(b)}
            for op in summed:
                for operand, read in zip(op.inputs, _reads(op, ranges[k]), strict=True):
                    if operand is not None and read is not None:
                        tile_needs.setdefault(operand, []).append(read)
            needs.append(tile_needs)
            tiler.box_plan.plan_tile(k, tile_needs)
        self._compute(summed, ranges, boxes)
        return tiler.finish()

    def _compute(
        self, summed: list[Op], ranges: list[Range], boxes: dict[Tensor, list[Box]]
    ) -> None:
        """Draft tile by tile. Every share is added at once, so that at most two exist at any
        time."""
        tiler = self._tiler
        sums: dict[Op, Tensor] = {}
        parts: dict[Tensor, list[Tensor]] = {key: [] for key in boxes}
        for k in range(len(ranges)):
            for t in tiler.results:
                if t in boxes and k < len(boxes[t]):
                    parts[t].append(tiler.fetch(t, boxes[t][k], k))
            for op in summed:
                share = self._share(op, ranges, k)
                before = sums.get(op)
                last = k + 1 == len(ranges)
                sums[op] = share if before is None else self._add(op, before, share, last=last)
        for t in tiler.results:
            if t in boxes:
                tiler.parts.join(t, boxes[t], parts[t])

    def _spatial(self, tensor: Tensor) -> list[Box]:
        axes = [v.axis - 1 for v in self._axis.vertices if v.tensor is tensor]
        if len(axes) != 1:
            raise NotTileableError(f"{tensor.name!r} is cut along more than one axis")
        shape = tensor.shape or ()
        return along(full_box(tensor), axes[0], cuts(shape[axes[0]], self._parts))

    # --- shares ---

    def _share(self, op: Op, ranges: list[Range], k: int) -> Tensor:
        """Draft the share of a sum that comes from one range of its axis."""
        reads = _reads(op, ranges[k])
        operands = [
            None if t is None or r is None else self._tiler.fetch(t, r, k)
            for t, r in zip(op.inputs, reads, strict=True)
        ]
        (result,) = op.outputs
        if result.type_name == "float32":
            return self._float_share(op, operands, ranges, k)
        if result.type_name not in ("int8", "int16"):
            raise NotTileableError(f"sums of {result.type_name} are not split")
        if op.kind in ("MEAN", "SUM"):
            return self._narrow_mean(op, operands, ranges, k)
        return self._wide_product(op, operands, k)

    def _emit(self, op: Op, operands: list[Tensor | None], share: Tensor) -> Tensor:
        options = (("fused_activation_function", 0),) if op.options.may_have_activation else ()
        full = full_box(op.outputs[0])
        self._tiler.emit(op, TileRecipe(full, (None,) * len(operands), options), operands, share)
        return share

    def _float_share(
        self, op: Op, operands: list[Tensor | None], ranges: list[Range], k: int
    ) -> Tensor:
        result = op.outputs[0]
        share = self._draft.tensor(result, f"{result.name}/share{k}", result.shape or ())
        bias_at = PRODUCTS[op.kind].bias if op.kind in _OVER_CHANNELS else len(operands)
        if k and bias_at < len(operands) and operands[bias_at] is not None:
            zeros = np.zeros(_channels(op), "<f4")  # the bias is added once
            operands[bias_at] = self._draft.constant("no bias", zeros, "float32", result)
        self._emit(op, operands, share)
        if op.kind != "MEAN":
            return share
        weight = (ranges[k][1] - ranges[k][0]) / ranges[-1][1]
        factor = self._draft.constant(f"weight{k}", np.array(weight, "<f4"), "float32", result)
        scaled = self._draft.tensor(result, f"{share.name}/weighed", result.shape or ())
        self._draft.op("MUL", [share, factor], [scaled])
        return scaled

    def _wide_product(self, op: Op, operands: list[Tensor | None], k: int) -> Tensor:
        """A share by the 16x8 kernel, with a scale with which no sum of shares overflows."""
        if op.kind not in _OVER_CHANNELS:
            raise NotTileableError(f"{op.label}: a share of integers may overflow")
        data_at, weights_at, bias_at = PRODUCTS[op.kind]
        data, weights = operands[data_at], op.inputs[weights_at]
        if data is None or weights is None or not weights.is_constant:
            raise NotTileableError(f"{op.label} has weights that are no constants")
        if op.kind == "FULLY_CONNECTED" and len(_scales(weights)) > 1:
            raise NotTileableError(f"{op.label} has weights quantised per channel")
        if weights.type_name != "int8" or any(weights.quantization.zero_points):
            raise NotTileableError(f"{op.label} has weights that are not int8 around 0")
        operands = [*operands, *[None] * (bias_at + 1 - len(operands))]
        operands[data_at] = self._widen_to_int16(data)
        operands[bias_at] = self._bias(op, k)
        scale = largest_sum(op) / _LARGEST
        result = op.outputs[0]
        share = self._draft.rescaled_tensor(result, f"{result.name}/share{k}", "int16", scale)
        return self._emit(op, operands, share)

    def _narrow_mean(
        self, op: Op, operands: list[Tensor | None], ranges: list[Range], k: int
    ) -> Tensor:
        """The mean of a range, weighted by MUL with a constant that has the same value for all
        ranges; the weight is in its scale."""
        if op.kind == "SUM":
            raise NotTileableError(f"{op.label}: no runtime but TFLM sums up int16")
        data, result = operands[0], op.outputs[0]
        assert data is not None, "a mean of nothing"
        scale = _reach(data) / _LARGEST
        weight = (ranges[k][1] - ranges[k][0]) / ranges[-1][1]
        mean = self._draft.rescaled_tensor(result, f"{result.name}/mean{k}", "int16", scale)
        self._emit(op, [self._widen_to_int16(data), *operands[1:]], mean)
        factor = self._draft.constant(
            f"weight{k}",
            np.array([_LARGEST], "<i2"),
            "int16",
            result,
            Quantization.of([weight / _LARGEST]),
        )
        share = self._draft.rescaled_tensor(
            result, f"{result.name}/share{k}", "int16", scale * weight
        )
        self._draft.op("MUL", [mean, factor], [share])
        return share

    def _widen_to_int16(self, tensor: Tensor) -> Tensor:
        """The same numbers in int16, with zero point 0."""
        if tensor.type_name == "int16":
            return tensor
        if tensor not in self._wide:
            wide = self._draft.rescaled_tensor(
                tensor, f"{tensor.name}/int16", "int16", float(_scales(tensor)[0])
            )
            self._draft.op("QUANTIZE", [tensor], [wide])
            self._wide[tensor] = wide
        return self._wide[tensor]

    def _bias(self, op: Op, k: int) -> Tensor:
        """The bias in 64 bits for the first share, zeros for the others."""
        data_at, weights_at, bias_at = PRODUCTS[op.kind]
        data, weights = op.inputs[data_at], op.inputs[weights_at]
        assert data is not None and weights is not None
        bias = op.inputs[bias_at] if len(op.inputs) > bias_at else None
        if k and op in self._zeros:
            return self._zeros[op]
        values = np.zeros(_channels(op), "<i8")
        if bias is not None and not k:
            values = values_of(bias).reshape(-1).astype("<i8")
        scale = _scales(weights) * _scales(data)[0]
        name = f"{op.outputs[0].name}/bias{k}"
        bias_share = self._draft.constant(name, values, "int64", bias, Quantization.of(scale))
        if k:
            self._zeros[op] = bias_share
        return bias_share

    # --- adding the shares ---

    def _add(self, op: Op, a: Tensor, b: Tensor, *, last: bool) -> Tensor:
        (result,) = op.outputs
        code = op.options.activation if last else 0
        wide = result.type_name == "int8"
        if not last or wide:
            scale = _sum_scale(op, a)
            if scale is None:
                into = self._draft.tensor(result, f"{b.name}/sum", result.shape or ())
            else:
                into = self._draft.rescaled_tensor(result, f"{b.name}/sum", "int16", scale)
        else:
            into = result
        fields = {"fused_activation_function": code, "pot_scale_int16": False}
        self._draft.op("ADD", [a, b], [into], **fields)
        if last and wide:
            self._draft.op("QUANTIZE", [into], [result])
            return result
        return into


def _reduce_axis(graph: Graph, ops: Sequence[Op], results: Sequence[Tensor]) -> Axis:
    """The axis over which the last sum among the results is computed. Raises NotTileableError if
    the scheme is invalid (MOTES, 4.3)."""
    ends = {t.producer for t in results}
    sums = [op for op in ops if op in ends and axis_map(op).reduces]
    if not sums:
        raise NotTileableError("no result of the region is a sum")
    axis = axis_graph(ops).axis_of(Vertex(sums[-1].outputs[0], REDUCE))
    if axis is None:
        raise NotTileableError(f"{sums[-1].label} sums up constants")
    faults = schemes_along(graph, ops, axis, 2).faults()
    if faults:
        raise NotTileableError(faults[0])
    return axis


def _summed_axis(op: Op) -> tuple[Tensor, int]:
    """The operand and its axis that are cut into shares: the longest reduced axis of an operand
    that is not constant."""
    pairs = [(op.inputs[i], axis) for i, axis in axis_map(op).reduces]
    open_ones = [(t, a) for t, a in pairs if t is not None and not t.is_constant]
    return max(open_ones, key=lambda p: (p[0].shape or ())[p[1]])


def _length(op: Op) -> int:
    tensor, axis = _summed_axis(op)
    return (tensor.shape or ())[axis]


def _channels(op: Op) -> int:
    """Number of channels of the result; it has at least one axis because it is a product."""
    return [*(op.outputs[0].shape or ())][-1]


def _reads(op: Op, indices: Range) -> list[Box | None]:
    """The box of every operand that a share reads."""
    reads: list[Box | None] = [None if t is None else full_box(t) for t in op.inputs]
    size, chosen = _length(op), _summed_axis(op)[1]
    for i, axis in axis_map(op).reduces:
        box = reads[i]
        if box is None or (op.kind in ("MEAN", "SUM") and axis != chosen):
            continue
        if box[axis] != (0, size):
            raise NotTileableError(f"{op.label} sums up operands of different lengths")
        (reads[i],) = along(box, axis, [indices])
    return reads


def _scales(tensor: Tensor) -> npt.NDArray[np.float64]:
    if not tensor.quantization.scales:
        raise NotTileableError(f"{tensor.name!r} has no scale")
    return np.array(tensor.quantization.scales)


def _reach(tensor: Tensor) -> float:
    """The largest magnitude that a tensor can represent."""
    limits = np.iinfo(np.int8 if tensor.type_name == "int8" else np.int16)
    point, scale = tensor.quantization.zero_point, float(_scales(tensor)[0])
    return max(limits.max - point, point - limits.min) * scale


def largest_sum(op: Op) -> float:
    """A bound on the magnitude of any sum of shares of a product with constant weights."""
    data_at, weights_at, bias_at = PRODUCTS[op.kind]
    data, weights = op.inputs[data_at], op.inputs[weights_at]
    assert data is not None and weights is not None
    limits = np.iinfo(np.int8 if data.type_name == "int8" else np.int16)
    point = data.quantization.zero_point
    low, high = limits.min - point, limits.max - point
    values = values_of(weights).astype(np.float64).reshape(_channels(op), -1)
    ends = np.stack([values * low, values * high])
    above = np.maximum(ends.max(axis=0), 0).sum(axis=1)
    below = np.maximum(-ends.min(axis=0), 0).sum(axis=1)
    most = np.maximum(above, below)
    if len(op.inputs) > bias_at and (bias := op.inputs[bias_at]) is not None:
        most = most + np.abs(values_of(bias).astype(np.float64).reshape(-1))
    largest = most * _scales(weights) * _scales(data)[0]
    return max(float(largest.max()), 1e-30)


def _sum_scale(op: Op, share: Tensor) -> float | None:
    """The scale of sums of shares; None for float."""
    if share.type_name == "float32":
        return None
    if op.kind in _OVER_CHANNELS:
        return largest_sum(op) / _LARGEST
    data = op.inputs[0]
    return None if data is None else _reach(data) / _LARGEST
