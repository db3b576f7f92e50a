"""Searches that go through all their steps, and do little in each."""

from __future__ import annotations

from tflm_planner.tiling.budget import SearchBudget


def short_search(work: int, **more: int) -> SearchBudget:
    """A budget whose steps together plan a few times `work` operators. more: other constants."""
    short = {
        "search_work": work,
        "same_firmware_work": work,
        "neighboured_models": 1,
        "front_work": work // 2,
        "gap_work": work // 8,
        "careful_work": work // 4,
        "resizing_work": work // 4,
        "lower_limits": (0.2,),
        "lower_limit_work": work // 16,
        "free_parts_work": work // 4,
        "free_gap_work": work // 4,
        "finalists": 2,
        "spelled_models": 8,
        "spelled_fully": 3,
        "beam_steps": 1,
    }
    return SearchBudget(**{**short, **more})
