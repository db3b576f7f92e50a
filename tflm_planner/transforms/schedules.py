"""Orders that are found in tenths of a second, for models that are made by the hundred.

Trials and the final search share them, so that the same model has the same order in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from tflm_planner.memory.limits import OrderBudget
from tflm_planner.memory.order import best_order
from tflm_planner.transforms.reorder import OrderSearch

Schedule = Literal["file", "rpo", "best"]
"""The order that the file has, reverse post-order, or that of a short search."""
_STATES = 1_500
"""States of the search for an order of tiles: those that end later are rare, and a trial takes
milliseconds."""


@dataclass(frozen=True)
class PlanRecipe:
    """How a trial planned a model. schedule: the order of its operators. rounds: of packing."""

    schedule: Schedule = "file"
    rounds: int = 0


def quick_order(schedule: Schedule, states: int = _STATES) -> OrderSearch:
    """The search for such an order."""
    return partial(best_order, method=schedule, budget=OrderBudget(segment_states=states))
