"""What the target's version of TFLM means for a model: what it cannot run, and cannot plan.

It must not know when TFLM learnt what: `tflm.history` does.
"""

from __future__ import annotations

from tflm_planner.model.ir import Model
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.kernels.operator_allocations import lacks
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import can, day_of, day_of_version, since


def refuse_plan(model: Model, target: Target) -> None:
    """Raise ModelError where TFLM would take the plan for another one."""
    if len(model.graphs) > 1 and not can(target, "plans_of_subgraphs"):
        raise ModelError(
            f"the model has {len(model.graphs)} sub-graphs, and TFLM of {day_of(target)} confuses "
            "their offsets: a plan would corrupt memory. Newer TFLM (29 March 2023, #1195) can; "
            "--tflm names another one"
        )


def version_notes(model: Model, target: Target) -> list[str]:
    """What to know about the target's TFLM and this model."""
    day = day_of(target)
    missing = sorted({op.kind for op in model.ops() if lacks(op.kind, target)})
    notes = [f"TFLM of {day} has no {kind}, which the model needs (since {since(kind)})" for kind in missing]  # noqa: E501  # fmt: skip
    built = day_of_version(target.version)
    if day != built:
        notes.append(
            f"operators are those of TFLM of {day}; sizes of its structures, and so the tail, are "
            f"those of {built}: measure the arena once"
        )
    return notes
