"""Writes SELECT, for which TFLM has no kernel, as SELECT_V2, for which it has one.

    ELU of PyTorch: (1, 8, 8, 4) bool, twice (1, 8, 8, 4) float32 --SELECT--> (1, 8, 8, 4) float32

Both choose element by element where the three operands have one shape. A test of whole rows, which
SELECT also takes and SELECT_V2 would broadcast otherwise, is left. This module must not know
memory.
"""

from __future__ import annotations

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.ops.choices import chooses_elements
from tflm_planner.support.words import count
from tflm_planner.transforms.substitutes.each import replace_each


def select_v2(model: Model) -> list[str]:
    """Replace every SELECT that can be; returns a note if there were any."""
    replaced = replace_each(model, _replace)
    if not replaced:
        return []
    selects = count(replaced, "SELECT", "SELECTs")
    return [f"{selects}, for which TFLM has no kernel, written as SELECT_V2"]


def _replace(model: Model, graph: Graph, op: Op) -> bool:
    """Write one; False if it is another operator, or chooses rows."""
    if op.kind != "SELECT" or not chooses_elements(op):
        return False
    draft = Draft(model, graph)
    draft.op("SELECT_V2", op.inputs, op.outputs)
    draft.commit([op])
    return True
