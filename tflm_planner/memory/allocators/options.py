"""What is asked of the allocators, and who hears of their plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflm_planner.memory.budgets import DEFAULT_ALLOCATOR_BUDGET, AllocatorBudget

PlanProgress = Callable[[str, int, int], None]
"""Called with (allocator, height, lower bound) at each improvement."""

DEFAULT_ALLOCATORS = ("greedy", "local", "exact")
ALLOCATORS = (*DEFAULT_ALLOCATORS, "cpsat", "best")
"""What `best_of` understands; "best" stands for the default ones, and "greedy" always goes
first."""


@dataclass(frozen=True)
class AllocatorOptions:
    """How to look for a plan."""

    allocators: tuple[str, ...] = ("best",)
    """By their names: see ALLOCATORS."""
    effort: float = 1.0
    """Of the exact search, relative to the usual one."""
    seed: int = 0
    """Of all random choices."""
    budget: AllocatorBudget = DEFAULT_ALLOCATOR_BUDGET
    """What each allocator may spend."""

    @property
    def patient(self) -> bool:
        """Whether to search for long, however little there is to gain."""
        return "exact" in self.allocators


def _hear_nothing(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Listener:
    """Who hears of a search. on_plan: of each better plan. on_progress: that the search waits
    for kernels to be compiled."""

    on_plan: PlanProgress = _hear_nothing
    on_progress: Callable[[str], None] = _hear_nothing


DEFAULT_OPTIONS = AllocatorOptions()
NOBODY = Listener()
