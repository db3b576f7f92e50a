"""Writes STRIDED_SLICE with fewer axes where it has more than TFLM's kernel takes.

    anchors of a detector: (1, 8, 8, 3, 7) --STRIDED_SLICE ..., 0:2--> (1, 8, 8, 3, 2)
    (1, 8, 8, 3, 7) --RESHAPE--> (192, 7) --STRIDED_SLICE :, 0:2--> (192, 2) --RESHAPE-->

Axes that lie side by side and are taken whole are one. This module must not know memory.
"""

from __future__ import annotations

import math

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.ops.axes import strides_of
from tflm_planner.support.words import count
from tflm_planner.tflm.refusals import MOST_AXES
from tflm_planner.transforms.substitutes.each import replace_each

_KIND = "STRIDED_SLICE"
_MOST = MOST_AXES[_KIND]

Taken = tuple[int, int, int, int]
"""Elements of an axis, the first that is taken, the stride, and how many are taken."""


def merge_sliced_axes(model: Model) -> list[str]:
    """Merge the axes of every STRIDED_SLICE that has too many; returns a note if there were any."""
    merged = replace_each(model, _merge)
    if not merged:
        return []
    operators = count(merged, _KIND, _KIND)
    return [f"{operators} of more than {_MOST} axes written with fewer: TFLM takes no more"]


def merged_axes(taken: list[Taken]) -> list[Taken]:
    """The axes with those merged that lie side by side and are taken whole. One of a single element
    goes with whatever is before it."""
    merged: list[Taken] = []
    for size, first, stride, many in taken:
        is_whole = many == size and first == 0 and stride == 1
        before = merged[-1] if merged else None
        if before is not None and is_whole and (size == 1 or _is_whole(before)):
            if _is_whole(before):
                merged[-1] = (before[0] * size, 0, 1, before[0] * size)
            continue
        merged.append((size, first, stride, many))
    return merged


def _is_whole(taken: Taken) -> bool:
    size, first, stride, many = taken
    return many == size and first == 0 and stride == 1


def _end(taken: Taken) -> int:
    """The index behind the last one that is taken."""
    _, first, stride, many = taken
    return first + (many - 1) * stride + 1


def _merge(model: Model, graph: Graph, op: Op) -> bool:
    """Write one STRIDED_SLICE with fewer axes; False if it has few, or if that is impossible."""
    if op.kind != _KIND:
        return False
    data, result = op.inputs[0] if op.inputs else None, op.outputs[0]
    strides = strides_of(op)
    if data is None or data.shape is None or strides is None or len(data.shape) <= _MOST:
        return False
    if data.is_constant or not same_values(data, result) or 0 in (data.elements, result.elements):
        return False
    kept = iter(result.shape or ())
    taken = [
        (size, first, stride, 1 if vanishes else next(kept, 0))
        for size, (first, stride, vanishes) in zip(data.shape, strides, strict=True)
    ]
    axes = merged_axes(taken)
    if len(axes) > _MOST or math.prod(many for *_, many in axes) != result.elements:
        return False
    if any(axis[2] < 1 or _end(axis) > axis[0] for axis in axes):  # a damaged file
        return False
    _write(Draft(model, graph), op, data, axes)
    return True


def _write(draft: Draft, op: Op, data: Tensor, axes: list[Taken]) -> None:
    """Put the operator with these axes, between RESHAPEs, in its place."""
    result = op.outputs[0]
    whole = draft.tensor(data, f"{result.name}/whole", [size for size, *_ in axes])
    part = draft.tensor(result, f"{result.name}/part", [many for *_, many in axes])
    numbers = (
        [first for _, first, _, _ in axes],
        [_end(axis) for axis in axes],
        [stride for _, _, stride, _ in axes],
    )
    limits = [draft.integers("limit", values) for values in numbers]
    draft.reshape(data, whole)
    draft.op(_KIND, [whole, *limits], [part])
    draft.reshape(part, result)
    draft.commit([op])
