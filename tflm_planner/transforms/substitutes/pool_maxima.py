"""Writes REDUCE_MAX as MAX_POOL_2D where TFLM's kernel lacks its type: of int16.

    GlobalMaxPooling2D of int16: (1, 8, 8, 32) --REDUCE_MAX 1 2--> (1, 32)
    (1, 8, 8, 32) --RESHAPE--> (1, 1, 64, 32) --MAX_POOL_2D 1 x 64--> (1, 1, 1, 32) --RESHAPE-->

The axes that are reduced lie side by side, so that they are one. This module must not know memory.
"""

from __future__ import annotations

import math

from tflm_planner.model.constants import integers
from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.model.number_formats import same_values
from tflm_planner.model.operator_rules import MOST_SIZE
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.support.words import count
from tflm_planner.tflm.element_types import lacks_types
from tflm_planner.transforms.substitutes.each import replace_each


def pool_maxima(model: Model) -> list[str]:
    """Replace them; returns a note if there were any."""
    replaced = replace_each(model, _replace)
    if not replaced:
        return []
    operators = count(replaced, "REDUCE_MAX", "REDUCE_MAX")
    return [f"{operators} written as MAX_POOL_2D, whose kernel takes int16"]


def _replace(model: Model, graph: Graph, op: Op) -> bool:
    """Write one as MAX_POOL_2D; False if it is another operator, or that is impossible."""
    if op.kind != "REDUCE_MAX" or len(op.inputs) != 2 or not lacks_types(op):
        return False
    data, result = op.inputs[0], op.outputs[0]
    if data is None or data.type_name != "int16" or not same_values(data, result):
        return False
    axes = integers(op.inputs[1])
    image = as_image(data.shape or (), axes)
    if image is None or not _is_as_declared(op, axes or []) or data.is_constant:
        return False
    rows, window, channels = image
    draft = Draft(model, graph)
    if window == 1:
        draft.reshape(data, result)
        draft.commit([op])
        return True
    source = draft.tensor(data, f"{result.name}/image", (1, rows, window, channels))
    pooled = draft.tensor(result, f"{result.name}/pooled", (1, rows, 1, channels))
    draft.reshape(data, source)
    draft.op(
        "MAX_POOL_2D", [source], [pooled],
        padding=VALID_PADDING, stride_h=1, stride_w=window, filter_height=1, filter_width=window,
    )  # fmt: skip
    draft.reshape(pooled, result)
    draft.commit([op])
    return True


def _is_as_declared(op: Op, axes: list[int]) -> bool:
    """Whether the result has the shape that is left; not so in a damaged file."""
    data, result = op.operands()[0], op.outputs[0]
    shape = data.shape or ()
    over = {a % len(shape) for a in axes}
    keeps = op.options.keeps_dims
    left = [1 if a in over else n for a, n in enumerate(shape) if keeps or a not in over]
    return tuple(left) == (result.shape or ()) and not (data.is_variable or result.is_variable)


def as_image(shape: tuple[int, ...], axes: list[int] | None) -> tuple[int, int, int] | None:
    """Elements before the axes that are reduced, in them, and behind them; None if they do not lie
    side by side, are unknown, or too large for a window. Axes of one element are of no account."""
    if not axes or 0 in shape or not all(-len(shape) <= a < len(shape) for a in axes):
        return None
    wide = [a for a, n in enumerate(shape) if n > 1]
    reduced = [place for place, a in enumerate(wide) if a in {b % len(shape) for b in axes}]
    if not reduced:
        return math.prod(shape), 1, 1
    first, end = reduced[0], reduced[-1] + 1
    sizes = [shape[a] for a in wide]
    window = math.prod(sizes[first:end])
    if end - first != len(reduced) or window > MOST_SIZE:
        return None
    return math.prod(sizes[:first]), window, math.prod(sizes[end:])
