"""More freedom is never worse: the search over everything against every single way to save."""

from __future__ import annotations

import pytest

from tests.models.small import small_network
from tests.short_searches import short_search
from tflm_planner.pipeline import api
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.permissions import search_by_permission
from tflm_planner.tiling.search import search_tiles

pytestmark = pytest.mark.slow

LOOP = api.AllowedOperators.of(
    ("WHILE", "LESS", "ADD", "RESHAPE", "DYNAMIC_UPDATE_SLICE", "GATHER", "SLICE",
     "CONCATENATION", "PAD", "STRIDED_SLICE")
)  # fmt: skip
TILES = api.AllowedOperators.of(("SLICE", "CONCATENATION", "PAD"))


def permitted(**more: object) -> TilingOptions:
    on = api.kernels_of(api.load_target("cortex-m4/cmsis-nn"))
    budget = short_search(2_500, beam_steps=2)  # all steps, but not on and on
    wanted = {"max_slowdown": 1.3, "operators": api.AllowedOperators.ALL, "search_budget": budget}
    return TilingOptions(on, on.input_overlaps_of, **{**wanted, **more})


@pytest.mark.parametrize("seed", (0, 1, 5, 6, 20, 24))
@pytest.mark.mostly_long(short=3)
def test_never_worse_than_any_way_alone(seed):
    """Order, plan and overlaps alone; tiles of the firmware's own operators; tiles with more
    operators; loops without tiles' operators; the published beam search."""
    data = small_network(seed)
    steps = search_by_permission(data, permitted())
    best = steps.result.best.bytes
    memory = api.MemoryOptions(kernels=permitted().kernels)
    plain = api.plan(data, options=api.PlanOptions(memory, verify=None))
    alone = {
        "order and plan": plain.report.after.arena.arena,
        "own operators": steps.same_firmware.bytes,
        "tiles": search_tiles(data, permitted(operators=TILES)).best.bytes,
        "loops": search_tiles(data, permitted(operators=LOOP, dialect=False)).best.bytes,
        "MOTES": search_tiles(data, permitted(method="motes")).best.bytes,
    }
    assert {name: n for name, n in alone.items() if n < best} == {}
    assert steps.same_firmware.bytes >= best and not steps.same_firmware.new_kinds
    assert all(steps.same_firmware.bytes <= t.bytes for t in steps.result.front if not t.new_kinds)
