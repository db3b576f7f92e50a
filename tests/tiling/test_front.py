"""The front that a search offers: what lies between the smallest tiling and the fastest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import published
from tests.tiling.small_searches import SMALL, search
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.tilings import Tiling, mean_bytes


def tiling(arena: int, slowdown: float) -> Tiling:
    return Tiling((), arena, slowdown, None, True)


def test_the_mean_weighs_each_tiling_by_the_slowdowns_at_which_it_is_the_smallest():
    # 10 B from 1.00 on, 6 B from 1.05 on, 4 B from 1.08 on; 9 B at 1.07 are never the smallest.
    tilings = [tiling(10, 1.0), tiling(9, 1.07), tiling(6, 1.05), tiling(4, 1.08)]
    thousand = [replace(t, arena=1000 * t.arena) for t in tilings]
    assert mean_bytes(thousand, 1.1) == pytest.approx(500 * 10 + 300 * 6 + 200 * 4, abs=1)


def test_a_faster_and_smaller_tiling_lowers_the_mean_to_its_own_bytes():
    assert mean_bytes([tiling(10, 1.0), tiling(6, 0.9)], 1.1) == 6


def test_without_slowdown_the_mean_is_the_fastest_tiling():
    assert mean_bytes([tiling(10, 1.0), tiling(6, 1.0)], 1.0) == 6


@pytest.mark.slow
def test_changed_regions_of_the_front_lower_its_mean():
    """The smallest tiling may stay; what is faster and larger gets smaller."""
    data, budget = published("kws_ref_model"), replace(SMALL, batch=36)
    plain, refined = (
        search(
            data, operators=AllowedOperators.NONE, search_budget=replace(budget, front_work=work)
        ).front
        for work in (0, SMALL.front_work)
    )
    assert mean_bytes(refined, 1.1) < mean_bytes(plain, 1.1)
