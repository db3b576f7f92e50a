"""Orders and plans that are found in tenths of a second, for models that are made by the hundred.

The search for tiles and the final planner share this module, so that both use the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from tflm_planner.memory.budgets import DEFAULT_PACK_BUDGET, OrderBudget
from tflm_planner.memory.order import OrderMethod, best_order
from tflm_planner.transforms.reorder import OrderSearch
from tflm_planner.transforms.spelling import Spelling

_STATES = 1_500
"""Limit of states of the search for an order of tiles: few searches need more, and an evaluation
takes milliseconds."""
ORDER_STATES = 20_000
"""Limit of states of the search for an order that is searched only once: that of a model before it
is tiled, and of one that was planned before. 60,000: the same orders of nine networks of the zoo
and of the ten graphs of `tests/memory/network_dags`, so that 4 of the 23 s of planning
MobileNetV2 1.0@224 in tiles are wasted; 5,000: the peaks of two random graphs are
9 and 14 % higher."""


class Effort(IntEnum):
    """How much effort to spend on a plan. Members compare by their rounds of packing."""

    FIRST_FITS = 0
    """Takes milliseconds."""
    CLIMB = DEFAULT_PACK_BUDGET.rounds
    """Takes tens of milliseconds."""
    CAREFUL = 12 * DEFAULT_PACK_BUDGET.rounds
    """Takes tenths of a second."""

    @property
    def rounds(self) -> int:
        """Rounds of packing, as a plain integer, which compiled code needs."""
        return int(self)


@dataclass(frozen=True)
class PlanRecipe:
    """How an evaluation planned a model. order: how the order of its operators was found.
    spellings: those of the ordered model's operators."""

    order: OrderMethod = "file"
    effort: Effort = Effort.FIRST_FITS
    spellings: tuple[Spelling, ...] = ()


def quick_order(method: OrderMethod, states: int = _STATES) -> OrderSearch:
    """A search for an order by this method."""
    return partial(best_order, method=method, budget=OrderBudget(segment_states=states))
