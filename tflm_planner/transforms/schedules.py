"""Orders and plans that are found in tenths of a second, for models that are made by the hundred.

The search for tiles and the final planner share them, so that both give a model the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Literal

from tflm_planner.memory.budgets import DEFAULT_PACK_BUDGET, OrderBudget
from tflm_planner.memory.order import best_order
from tflm_planner.transforms.reorder import OrderSearch

Schedule = Literal["file", "rpo", "best"]
"""The order that the file has, reverse post-order, or that of a short search."""
_STATES = 1_500
"""States of the search for an order of tiles: few searches end later, and an evaluation takes
milliseconds."""
SCHEDULE_STATES = 20_000
"""States of the search for an order that is looked for once: of the model before it is tiled, and
of one that was planned before. 60,000: the same orders of nine networks of the zoo and of the ten
graphs of `tests/memory/network_dags`, and 4 of the 23 s of planning MobileNetV2 1.0@224 in tiles
for nothing; 5,000: the peaks of two random graphs +9 and +14 %."""


class Effort(IntEnum):
    """How long to look for a plan. Members compare by their rounds of packing."""

    FIRST_FITS = 0
    """Milliseconds."""
    CLIMB = DEFAULT_PACK_BUDGET.rounds
    """Tens of milliseconds."""
    CAREFUL = 12 * DEFAULT_PACK_BUDGET.rounds
    """Tenths of a second."""

    @property
    def rounds(self) -> int:
        """Rounds of packing, as compiled code takes them."""
        return int(self)


@dataclass(frozen=True)
class PlanRecipe:
    """How an evaluation planned a model. schedule: the order of its operators."""

    schedule: Schedule = "file"
    effort: Effort = Effort.FIRST_FITS


def quick_order(schedule: Schedule, states: int = _STATES) -> OrderSearch:
    """The search for such an order."""
    return partial(best_order, method=schedule, budget=OrderBudget(segment_states=states))
