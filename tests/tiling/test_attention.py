"""Attention in tiles of queries: what all tiles need whole is computed once, before them."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.models.attention import attention
from tests.transforms.tiled import quick_differences, tiled
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.units import ALIGNMENT
from tflm_planner.tiling.estimate.tiles import EstimateLimits, estimate_tiles
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluation import evaluate
from tflm_planner.tiling.evaluate.evaluator import Evaluator
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import HALOS, Split
from tflm_planner.transforms.tile.tile import TiledRegion

FAR = 1 << 60
ROWS, HEADS, DEPTH = 64, 2, 8
X = ROWS * HEADS * DEPTH
"""Bytes of the input, of keys and of values."""
LAYER = 16
"""Operators of a layer."""


def options(**more) -> TilingOptions:
    on = api.kernels_of(api.load_target("x86-64/reference"))
    return TilingOptions(
        on, on.input_overlaps_of, objective="head", operators=api.AllowedOperators.ALL, **more
    )


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("halo", HALOS)
@pytest.mark.mostly_slow(fast=2)
def test_keys_and_values_are_computed_before_the_first_tile(halo, dtype):
    data = attention(ROWS, HEADS, DEPTH, dtype=dtype)
    made, (note, *_) = tiled(data, TiledRegion(tuple(range(LAYER + 1)), (Split(1, 4),), halo))
    assert note.startswith("tiled"), note
    assert quick_differences(data, made) == []
    kinds = [op.kind for op in read_model(made).main.ops]
    assert kinds.count("BATCH_MATMUL") == 2 * 4
    before = kinds[: kinds.index("BATCH_MATMUL")]
    # Keys, values and the queries of the first tile; keys and values once for all tiles.
    assert before.count("FULLY_CONNECTED") == 3
    assert kinds.count("FULLY_CONNECTED") == 2 + 2 * 4


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_estimates_know_what_is_computed_once(parts):
    evaluator = Evaluator(attention(ROWS, HEADS, DEPTH), options())
    schedule = evaluator.linear_schedule(tuple(range(LAYER + 1)))
    (estimate,) = estimate_tiles(schedule, LAYER, 1, [parts], [0], EstimateLimits(FAR, FAR))
    region = TiledRegion(tuple(range(LAYER)), (Split(1, parts),))
    evaluation = evaluate(
        evaluator.model, Candidate((region,), True, effort=Effort.CLIMB), options()
    )
    assert evaluation is not None
    assert abs(evaluation.head - estimate.head) <= ALIGNMENT


@needs_tflm
@pytest.mark.long
def test_the_search_tiles_attention_so_that_no_scores_are_kept():
    data = attention(ROWS, HEADS, DEPTH, layers=2)
    tiles = api.TilePermission(
        objective="head", operators=api.AllowedOperators.ALL, max_slowdown=2.0
    )
    memory = api.MemoryOptions(kernels=api.kernels_of(api.load_target("x86-64/reference")))
    report = api.plan(data, options=api.PlanOptions(memory, tiles=tiles)).report
    # All scores are 8 inputs large; keys, values, input and what makes the values are four.
    assert report.after.arena.head <= 4 * X + 512
    assert report.before.arena.head > 16 * X
    width = HEADS * DEPTH
    products = 2 * (4 * ROWS * width * width + 2 * HEADS * ROWS * ROWS * DEPTH)
    assert report.before.macs == report.after.macs == products
