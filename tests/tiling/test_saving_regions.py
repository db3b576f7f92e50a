"""Regions that take fewer instructions than the operators that they replace."""

from __future__ import annotations

from tests.models.small import Chain
from tests.tiling.small_searches import search
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.moves.saving_regions import with_saving_regions
from tflm_planner.tiling.tilings import Region
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import band

A, B, C = band(0, 2, 4), band(3, 5, 4), band(6, 8, 4)
MODEL = Candidate((A, C), True)


def regions(*saving: Region) -> tuple[Region, ...]:
    return with_saving_regions(MODEL, saving).regions


def test_a_region_of_other_operators_is_added():
    assert regions(B) == (A, B, C)


def test_it_takes_the_place_of_one_region_but_not_of_two():
    longer, over_both = band(2, 4, 2), band(1, 7, 2)
    assert regions(longer) == (longer, C)
    assert regions(over_both) == (A, C)


def test_what_saves_most_comes_first_and_stays():
    first, second = band(3, 4, 2), band(4, 5, 2)
    assert regions(first, second) == (A, first, C)
    within = band(0, 1, 2)
    assert regions(A, within) == (A, C)


def joined_then_pooled() -> bytes:
    """Twice two convolutions side by side, whose joined results a pool shrinks: parts of the
    channels are pooled before they are copied."""
    chain = Chain((1, 24, 24, 8))
    for _ in range(2):
        chain.conv(8, 1)
        sides = [chain.conv(16, size, keep=False) for size in (1, 3)]
        chain.shape = (*chain.shape[:3], 32)
        chain.x = chain.tensor(chain.shape)
        chain.graph.op("CONCATENATION", sides, [chain.x], "ConcatenationOptions", axis=3)
        chain.pool()
    return chain.finish()


def test_what_saves_is_found_and_put_into_a_model_of_the_front():
    found = search(joined_then_pooled(), operators=AllowedOperators.NONE)
    smaller, fastest = found.front[-2:]
    (first,) = smaller.regions
    assert fastest.regions[0] == first and len(fastest.regions) == 2
    assert all(r.splits == (Split(3, 2),) for r in fastest.regions)
    assert fastest.slowdown < smaller.slowdown < 1


def test_where_nothing_more_is_allowed_nothing_slower_is_offered():
    found = search(joined_then_pooled(), operators=AllowedOperators.NONE, max_slowdown=1.0)
    assert found.best.regions and all(t.slowdown <= 1 for t in (found.best, *found.front))
    assert all(t.slowdown > 1 and t.bytes < found.best.bytes for t in found.slower)
