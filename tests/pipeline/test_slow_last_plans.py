"""A file whose last plan is slower than allowed is left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from tflm_planner.pipeline.planning.tiling_job import TilingJob
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
