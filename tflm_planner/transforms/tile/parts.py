"""Makes parts of tensors into separate tensors: cuts them out, pads them, and joins them again.

    X --SLICE--> X/h0:12 ... CONCATENATION --> Y       each part is made once for all its readers

It drafts operators that only move bytes, and constants; it must not know what is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflm_planner.model.constants import unpack_int4
from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.quantization import Quantization
from tflm_planner.transforms.tile.boxes import (
    Box,
    NotTileableError,
    box_name,
    extents,
    full_box,
    is_run,
)

MOST_PIECES = 10
"""Largest number of operands of one CONCATENATION in TFLM (kMaxInputNum)."""
_DTYPES = {
    "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "float32": np.float32, "float16": np.float16, "bool": np.bool_, "uint32": np.uint32,
}  # fmt: skip


@dataclass(frozen=True)
class TensorPart:
    """A tensor that contains a box of another. valid: the box in which it equals the whole tensor.
    actual: the box of all its elements, including rows that are computed only to be dropped."""

    valid: Box
    actual: Box
    tensor: Tensor


class PartBuilder:
    """The parts of one draft. views: SLICEs of tensors from outside the region that can be views;
    they run first, so that the whole tensor dies row by row."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._slices: dict[tuple[Tensor, Box], Tensor] = {}
        self._padded: dict[tuple[Tensor, object], Tensor] = {}
        self.views: list[Op] = []

    def cut(self, part: TensorPart, box: Box, *, of_outside: bool = False) -> Tensor:
        """SLICE `box` out of a part; the part's tensor itself if `box` is all of it."""
        if box == part.actual:
            return part.tensor
        key = (part.tensor, box)
        if key not in self._slices:
            begin = [r[0] - p[0] for r, p in zip(box, part.actual, strict=True)]
            cut = self._draft.tensor(part.tensor, box_name(part.tensor, box), extents(box))
            self._slice(part.tensor, begin, cut)
            if of_outside and is_run(part.actual, box):
                self.views.append(self._draft.ops.pop())
            self._slices[key] = cut
        return self._slices[key]

    def _slice(self, source: Tensor, begin: Sequence[int], into: Tensor) -> None:
        constants = [self._draft.integers("begin", begin)]
        constants.append(self._draft.integers("size", into.shape or ()))
        self._draft.op("SLICE", [source, *constants], [into])

    def copy(self, source: Tensor, into: Tensor) -> None:
        """Copy `source` into the tensor `into`."""
        self._slice(source, [0] * len(into.shape or ()), into)

    def pad(self, tensor: Tensor, pads: tuple[tuple[int, int], ...]) -> Tensor:
        """`tensor` with a border of zeros."""
        key = (tensor, pads)
        if key not in self._padded:
            shape = [n + sum(p) for n, p in zip(tensor.shape or (), pads, strict=True)]
            padded = self._draft.tensor(tensor, f"{tensor.name}/padded", shape)
            paddings = self._draft.integers("paddings", pads)
            self._draft.op("PAD", [tensor, paddings], [padded])
            self._padded[key] = padded
        return self._padded[key]

    def constant(self, tensor: Tensor, box: Box) -> Tensor:
        """The part of a constant in a box, with the scales of its channels."""
        if box == full_box(tensor):
            return tensor
        key = (tensor, box)
        if key in self._slices:
            return self._slices[key]
        values = _unpack(tensor) if tensor.type_name == "int4" else values_of(tensor)
        values = np.ascontiguousarray(values[tuple(slice(*r) for r in box)])
        scales = _cut_scales(tensor.quantization, box)
        name = box_name(tensor, box)
        part = self._draft.constant(name, values, tensor.type_name, tensor, scales)
        self._slices[key] = part
        return part

    def halo(self, tensor: Tensor, box: Box, parts: Sequence[Tensor], axis: int) -> Tensor:
        """`box` of `tensor`, joined from blocks; made once for all readers."""
        key = (tensor, box)
        if key not in self._slices:
            joined = self._draft.tensor(tensor, box_name(tensor, box, "halo"), extents(box))
            self.concatenate(parts, joined, axis)
            self._slices[key] = joined
        return self._slices[key]

    def join(self, tensor: Tensor, boxes: Sequence[Box], parts: Sequence[Tensor]) -> None:
        """CONCATENATION along every axis that was cut, the innermost one first. `boxes`: those of
        the parts, in raster order."""
        starts = [(axis, len({b[axis] for b in boxes})) for axis in range(len(boxes[0]))]
        order = [(axis, count) for axis, count in starts if count > 1]
        if not order:
            self.copy(parts[0], tensor)
            return
        while len(order) > 1:
            axis, count = order.pop()
            groups = [parts[i : i + count] for i in range(0, len(parts), count)]
            parts = [self._group(tensor, group, axis, f"row{i}") for i, group in enumerate(groups)]
        self.concatenate(parts, tensor, order[0][0])

    def concatenate(self, parts: Sequence[Tensor], into: Tensor, axis: int) -> None:
        """CONCATENATION of the parts, in several steps if there are more than TFLM accepts."""
        while len(parts) > MOST_PIECES:
            width = max(-(-len(parts) // MOST_PIECES), 2)
            parts = [
                self._group(into, parts[i : i + width], axis, f"join{i}")
                for i in range(0, len(parts), width)
            ]
        self._draft.op("CONCATENATION", list[Tensor | None](parts), [into], axis=axis)

    def _group(self, like: Tensor, group: Sequence[Tensor], axis: int, name: str) -> Tensor:
        """Some parts joined into one tensor; a single part is returned as it is."""
        if len(group) == 1:
            return group[0]
        sizes = list(group[0].shape or ())
        sizes[axis] = sum((p.shape or ())[axis] for p in group)
        joined = self._draft.tensor(like, f"{like.name}/{name}", sizes)
        self.concatenate(group, joined, axis)
        return joined


def values_of(tensor: Tensor) -> Any:
    """The values of a constant. Raises NotTileableError for types whose elements share bytes."""
    data, dtype = tensor.buffer.data, _DTYPES.get(tensor.type_name)
    if data is None or dtype is None or tensor.is_sparse:
        raise NotTileableError(f"constant {tensor.name!r} of {tensor.type_name} cannot be cut")
    return data[: tensor.nbytes].copy().view(dtype).reshape(tensor.shape or ())


def _unpack(tensor: Tensor) -> Any:
    """The values of an int4 constant, one byte each; those of `values_of` if its data are
    incomplete or sparse."""
    data = tensor.buffer.data
    if data is None or tensor.is_sparse or data.size < tensor.nbytes:
        return values_of(tensor)
    return unpack_int4(data[: tensor.nbytes], tensor.shape or ())


def _cut_scales(quantization: Quantization, box: Box) -> Quantization:
    """The scales of the channels in a box. Raises NotTileableError."""
    if not quantization.is_per_channel:
        return quantization
    # Old converters gave biases the channel axis of their weights; a vector has one axis.
    axis = 0 if len(box) == 1 else quantization.axis
    if not 0 <= axis < len(box) or not box[axis][1] <= len(quantization.scales):
        raise NotTileableError(f"a constant has no scale for every index of its axis {axis}")
    return quantization.channels(*box[axis])
