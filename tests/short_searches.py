"""Searches that go through all their steps but one, and do little in each.

Lower limits are left out: parts of the model are estimated once more within them, which takes a
quarter of the time, and they have tests of their own (tiling/test_lower_limits).
"""

from __future__ import annotations

from typing import Any

from tflm_planner.tiling.budget import SearchBudget


def short_search(work: int, **more: Any) -> SearchBudget:
    """A budget whose steps together plan a few times `work` operators. more: other constants."""
    short: dict[str, Any] = {
        "search_work": work,
        "same_firmware_work": work,
        "neighboured_models": 1,
        "front_work": work // 4,
        "gap_work": work // 16,
        "careful_work": work // 4,
        "resizing_work": work // 8,
        "batch": 9,
        "gap_batch": 6,
        "resized_batch": 4,
        "lower_limits": (),
        "free_parts_work": work // 4,
        "free_gap_work": work // 4,
        "finalists": 2,
        "spelled_models": 8,
        "spelled_fully": 3,
        "beam_steps": 1,
    }
    return SearchBudget(**{**short, **more})
