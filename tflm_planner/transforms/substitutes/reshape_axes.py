"""Writes EXPAND_DIMS and SQUEEZE as RESHAPE where TFLM's kernels lack their type.

    the mask of words that are none, in Keras: (1, 8) bool --EXPAND_DIMS--> (1, 8, 1) bool

RESHAPE takes every type. This module must not know memory.
"""

from __future__ import annotations

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.ops.layout import shape_with_other_axes
from tflm_planner.ops.roles import RESHAPES
from tflm_planner.support.words import count
from tflm_planner.tflm.element_types import lacks_types
from tflm_planner.transforms.substitutes.each import replace_each


def reshape_axes(model: Model) -> list[str]:
    """Replace them; returns a note if there were any."""
    replaced = replace_each(model, _replace)
    if not replaced:
        return []
    operators = count(replaced, "operator", "operators")
    return [f"{operators} written as RESHAPE, which takes every type"]


def _replace(model: Model, graph: Graph, op: Op) -> bool:
    """Write one as RESHAPE; False if it is another operator, or is taken as it is."""
    if op.kind not in RESHAPES - {"RESHAPE"} or not op.inputs or not lacks_types(op):
        return False
    data, result = op.inputs[0], op.outputs[0]
    if data is None or data.type != result.type or result.is_variable:
        return False
    if shape_with_other_axes(op) != (result.shape or ()):  # a damaged file
        return False
    draft = Draft(model, graph)
    draft.reshape(data, result)
    draft.commit([op])
    return True
