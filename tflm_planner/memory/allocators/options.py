"""Options of the allocators, and callbacks for their plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflm_planner.memory.budgets import DEFAULT_ALLOCATOR_BUDGET, AllocatorBudget

PlanProgress = Callable[[str, int, int], None]
"""Called with (allocator, height, lower bound) at each improvement."""

DEFAULT_ALLOCATORS = ("greedy", "local", "exact")
ALLOCATORS = (*DEFAULT_ALLOCATORS, "cpsat", "best")
"""The names that `best_of` accepts; "best" stands for the default ones, and "greedy" always runs
first."""


@dataclass(frozen=True)
class AllocatorOptions:
    """How to look for a plan."""

    allocators: tuple[str, ...] = ("best",)
    """Names of allocators: see ALLOCATORS."""
    exact_effort: float = 1.0
    """Effort of the exact search, relative to the usual one."""
    climb_effort: float = 1.0
    """Effort of local search, relative to the usual one."""
    seed: int = 0
    """Seed of all random choices."""
    budget: AllocatorBudget = DEFAULT_ALLOCATOR_BUDGET
    """The limits of each allocator."""

    @property
    def patient(self) -> bool:
        """Whether to search for long even if there is little to gain."""
        return "exact" in self.allocators


def _hear_nothing(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Listener:
    """Callbacks of a search. on_plan: called for each better plan. on_progress: called when the
    search waits for kernels to be compiled."""

    on_plan: PlanProgress = _hear_nothing
    on_progress: Callable[[str], None] = _hear_nothing


DEFAULT_OPTIONS = AllocatorOptions()
NOBODY = Listener()
