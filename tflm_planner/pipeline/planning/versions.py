"""Checks what the target's version of TFLM cannot run or plan in a model.

It must not know when TFLM learnt what: `tflm.versions` does.
"""

from __future__ import annotations

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.declared_shapes import misdeclaration
from tflm_planner.tflm.kernels.operator_allocations import lacks
from tflm_planner.tflm.refusals import message, refused_in
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import can, day_of, since
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize


def refuse_plan(model: Model, target: Target) -> None:
    """Raise ModelError if TFLM would misunderstand the plan or the model."""
    if (wrong := misdeclaration(model.ops())) is not None:
        raise ModelError(wrong)
    if len(model.graphs) > 1 and not can(target, "plans_of_subgraphs"):
        raise ModelError(
            f"the model has {len(model.graphs)} sub-graphs, and TFLM of {day_of(target)} confuses "
            "their offsets: a plan would corrupt memory. Newer TFLM (29 March 2023, #1195) can; "
            "--tflm names another one"
        )


def refuse_unrunnable(model: Model, target: Target, way_out: str) -> None:
    """Raise ModelError if the target's TFLM does not run the model, cleaned up or not. `way_out`:
    what the message says the user can do all the same."""
    reasons = reasons_against(model, target)
    if reasons:
        more = f" (and {len(reasons) - 1} more reasons: `tflm-plan arena`)" if reasons[1:] else ""
        raise ModelError(
            f"TFLM cannot run the model: {reasons[0]}{more}. Nothing was searched for; {way_out}"
        )


def reasons_against(model: Model, target: Target) -> list[str]:
    """What keeps the target's TFLM from running the model as it is, and still does once it is
    cleaned up, as far as is known: axes of a transposition may then be merged, for example, and
    arithmetic on shapes is gone."""
    places = refused_in(model, target)
    if not places:
        return []
    cleaned = clone(model)
    run(cleaned, Normalize())
    left = refused_in(cleaned, target)
    return [message(places.get(reason, at), reason) for reason, at in left.items()]


def version_notes(model: Model, target: Target) -> list[str]:
    """Notes on operators of this model that the target's TFLM lacks."""
    day = day_of(target)
    missing = sorted({op.kind for op in model.ops() if lacks(op.kind, target)})
    return [f"TFLM of {day} has no {kind}, which the model needs (since {since(kind)})" for kind in missing]  # noqa: E501  # fmt: skip
