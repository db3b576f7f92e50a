"""Solvers of the planning problem; `best_of` runs them in turn."""

from tflm_planner.memory.allocators.options import (
    ALLOCATORS,
    AllocatorOptions,
    Listener,
    PlanProgress,
)
from tflm_planner.memory.allocators.portfolio import Solution, best_of

__all__ = [
    "ALLOCATORS",
    "AllocatorOptions",
    "Listener",
    "PlanProgress",
    "Solution",
    "best_of",
]
