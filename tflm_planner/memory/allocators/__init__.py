"""Solvers of the planning problem; `best_of` runs them in turn."""

from tflm_planner.memory.allocators.portfolio import (
    DEFAULT,
    NAMES,
    AllocatorOptions,
    Listener,
    PlanProgress,
    Solution,
    best_of,
)

__all__ = [
    "DEFAULT",
    "NAMES",
    "AllocatorOptions",
    "Listener",
    "PlanProgress",
    "Solution",
    "best_of",
]
