"""Chains of overlapping tensors, kept in place by a few tiles that run backward."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.models.registry import SCALE, conv, relu
from tflm_planner.pipeline import api
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluation import evaluate
from tflm_planner.tiling.evaluate.evaluator import Evaluator
from tflm_planner.tiling.moves.backward_tiles import backward_candidates, with_backward_tiles
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

SHAPE = (1, 24, 8, 16)
LENGTH = 6
REACH = 9 * 16
"""Bytes by which the result of a 3 x 3 window lies below its operand, about: a row and a pixel."""


def chain(length: int = LENGTH) -> bytes:
    """Windows of stride 1 in a row: each result may overlap its operand."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", SHAPE, scale=SCALE)
    for i in range(length):
        x = conv(graph, x, SHAPE, "c" * (i + 1))
    graph.outputs(relu(graph, x, SHAPE))
    return net.finish()


def options(**more) -> TilingOptions:
    on = api.kernels_of(api.load_target("x86-64/reference"))
    return TilingOptions(on, on.input_overlaps_of, objective="head", **more)


def test_tiles_backward_keep_a_chain_in_its_place():
    evaluator = Evaluator(chain(), options())
    order = tuple(range(LENGTH + 1))
    schedule = evaluator.linear_schedule(order)
    plain = evaluate(evaluator.model, Candidate((), False, effort=Effort.CLIMB), options())
    assert plain is not None and plain.head >= 24 * 8 * 16 + LENGTH * REACH
    moves = list(backward_candidates(schedule, order, plain.head, "waste"))
    assert moves and all(s.backward for t in moves for s in t.regions)  # type: ignore[union-attr]
    found = [made for t in moves if (made := evaluate(evaluator.model, t, options())) is not None]
    assert min(o.head for o in found) <= plain.head - 2 * REACH
    forward = [
        replace(t, regions=tuple(replace(s, backward=False) for s in t.regions))  # type: ignore[call-arg]
        for t in moves
    ]
    every = [evaluate(evaluator.model, t, options()) for t in forward]
    others = [one for one in every if one is not None]
    assert min((o.head for o in others), default=plain.head) > min(o.head for o in found)


def test_no_tiles_run_backward_where_no_chain_overlaps():
    evaluator = Evaluator(chain(1), options())
    schedule = evaluator.linear_schedule((0, 1))
    assert not list(backward_candidates(schedule, (0, 1), max(schedule.live_bytes), "waste"))


def test_every_second_region_runs_backward():
    regions = (
        *(TiledRegion((i,), (Split(1, 2),)) for i in range(3)),
        LoopedRegion((4, 5), 1, "reverse"),
    )
    backward = [
        [getattr(s, "backward", None) for s in t.regions]
        for t in with_backward_tiles(Candidate(regions, True))
    ]
    assert backward == [
        [False, False, False, None],
        [True, False, True, None],
        [False, True, False, None],
    ]
    assert len(with_backward_tiles(Candidate((), True))) == 1


@needs_tflm
@pytest.mark.slow
def test_the_search_finds_backward_tiles_and_the_file_is_proved():
    data = chain()
    memory = api.MemoryOptions(kernels=api.kernels_of(api.load_target("x86-64/reference")))
    tiles = api.TilePermission(objective="head", max_slowdown=1.3)
    report = api.plan(data, options=api.PlanOptions(memory, tiles=tiles)).report
    plain = api.plan(data, options=api.PlanOptions(memory)).report
    assert report.verified
    assert report.after.head <= plain.after.head - 2 * REACH
    assert report.after.host.measured_head == report.after.host.predicted_head
