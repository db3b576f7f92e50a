"""Tiles are looked for once more within fewer instructions than may be added."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.models.small import Chain
from tests.tiling.small_searches import SMALL, search
from tflm_planner.pipeline import api
from tflm_planner.tiling.tilings import Tiling, TilingResult


def some_convolutions() -> bytes:
    """Five of them, from narrow to wide and back."""
    random = np.random.default_rng(1)
    chain = Chain((1, 32, 24, 5))
    for _ in range(5):
        chain.conv(int(random.choice([4, 8, 16, 32])), int(random.choice([1, 3])))
    return chain.finish()


def found(*limits: float) -> TilingResult:
    """What a search finds that changes nothing of the front but by these limits."""
    budget = replace(SMALL, lower_limits=limits, front_work=0, gap_work=0, resizing_work=0)
    own = api.AllowedOperators.NONE
    return search(some_convolutions(), operators=own, max_slowdown=1.3, search_budget=budget)


def beaten(tiling: Tiling, by: TilingResult) -> bool:
    """Whether one is as small and as fast."""
    return any(t.bytes <= tiling.bytes and t.slowdown <= tiling.slowdown for t in by.front)


@pytest.mark.slow
def test_what_is_smaller_no_longer_hides_what_is_faster() -> None:
    without, within = found(), found(0.2, 0.05)
    assert within.best.bytes == without.best.bytes and within.evaluated > without.evaluated
    assert all(beaten(tiling, by=within) for tiling in without.front)
    faster = [tiling for tiling in within.front if not beaten(tiling, by=without)]
    assert faster and all(tiling.bytes > within.best.bytes for tiling in faster)
