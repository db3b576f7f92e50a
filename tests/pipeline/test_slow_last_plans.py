"""A file whose last plan is slower than allowed is left out; a faster plan comes first."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from tests.models.small import narrow_rows
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_plan import count_instructions, rank
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.pipeline.planning.tiling_job import TilingJob
from tflm_planner.tiling.spellings import SpellingPermission
from tflm_planner.tiling.tilings import Tiling


@pytest.mark.parametrize(
    ("respell", "slowdown", "too_slow"),
    [(1005, 1.0005, True), (1005, 0.9999, False), (1000, 1.0005, False), (None, 1.0005, False)],
)
def test_only_spellings_above_the_limit_can_make_a_file_too_slow(respell, slowdown, too_slow):
    job = SimpleNamespace(permission=SimpleNamespace(max_slowdown=1.0), instructions=1000)
    tiling = Tiling.unplanned(respell=respell)
    planned = SimpleNamespace(slowdown=slowdown)
    assert TilingJob.is_too_slow(cast(TilingJob, job), tiling, planned) is too_slow


def test_of_two_last_plans_the_one_within_what_is_preferred_comes_first():
    options = MemoryOptions()
    plan = plan_memory(read_model(narrow_rows(16)), options)
    taken = count_instructions(plan, options.kernels.target)

    def key(preferred: int | None) -> tuple[bool, int, int]:
        spellings = SpellingPermission(preferred=preferred)
        return rank(plan, replace(options, spellings=spellings))

    assert key(None) == key(taken) == (False, plan.head, taken) < key(taken - 1)
