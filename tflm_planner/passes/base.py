"""What a pass is: a frozen dataclass whose fields are its options.

A pass decides what is legal; which pass runs where is the search's choice. It changes the model
through `rewriter` alone and returns notes: what it did, or why it did not.
"""

from __future__ import annotations

from typing import Protocol

from tflm_planner.ir import Model


class Pass(Protocol):
    """One transformation of a model."""

    def apply(self, model: Model) -> list[str]:
        """Change `model` in place; notes for the report, empty when nothing was worth a word."""
        ...


def run(model: Model, *passes: Pass) -> list[str]:
    """Apply passes in order, with the model checked before the first and after each."""
    model.check()
    notes: list[str] = []
    for one in passes:
        notes += one.apply(model)
        model.check()
    return notes
