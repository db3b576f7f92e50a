"""The rule of every kind of operator that has one."""

from __future__ import annotations

from tflm_planner.ops.terms import (
    movement,
    one_hot,
    pointwise,
    products,
    reductions,
    resizing,
    windows,
)
from tflm_planner.ops.terms.calls import Rule

RULES: dict[str, Rule] = {
    **pointwise.RULES,
    **movement.RULES,
    **one_hot.RULES,
    **products.RULES,
    **reductions.RULES,
    **resizing.RULES,
    **windows.RULES,
}
"""By kind. Operators without a rule are hashed (`verification.terms.unknown`)."""
