"""Refuses models that another planner has compiled, because no tensor in them may be moved."""

from __future__ import annotations

from tflm_planner.model.ir import ETHOS_U, Model
from tflm_planner.support.errors import ModelError


def refuse_compiled(model: Model) -> None:
    """Raise ModelError for a model whose memory offsets are part of a compiled command stream."""
    for op in model.ops():
        if op.kind == ETHOS_U:
            raise ModelError(
                f"operator {op.label} was compiled for an Ethos-U by Vela: its command stream "
                "holds the arena offsets that Vela chose, and moving a tensor would corrupt it; "
                "plan the model before Vela, or keep Vela's plan"
            )
