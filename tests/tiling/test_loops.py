"""Loops that the search finds by itself: proved, permitted, the same every time."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm, published
from tests.models.registry import add, conv, relu, start
from tests.short_searches import short_search
from tests.transforms.plans import dialect_plan
from tests.transforms.tiled import same_bits
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.tiling.estimate.interval import Interval, ScheduleInterval
from tflm_planner.tiling.estimate.loops import LoopEstimator, allows_loops
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.permissions import search_by_permission
from tflm_planner.tiling.segmentation import InLoop, InTiles, Segment, Segmenter, SegmentKey
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import band

pytestmark = pytest.mark.slow

SHAPE = (1, 32, 32, 16)
LOOP = {"WHILE", "LESS", "DYNAMIC_UPDATE_SLICE"}
FEW = short_search(800)
"""Searches go through all their steps, but not on and on."""


def blocks() -> bytes:
    """A residual block of convolutions: three tensors of 16 KiB live together."""
    net, graph, x = start(SHAPE)
    for i in range(1):
        inside = conv(graph, conv(graph, x, SHAPE, f"one{i}"), SHAPE, f"two{i}")
        x = add(graph, inside, x, SHAPE, f"sum{i}")
    graph.outputs(relu(graph, x, SHAPE))
    return net.finish()


def permitted(target: str = "cortex-m4/cmsis-nn", **more) -> TilingOptions:
    on = api.kernels_of(api.load_target(target))
    wanted = {"max_slowdown": 1.3, "operators": api.AllowedOperators.ALL, "search_budget": FEW}
    return TilingOptions(on, on.input_overlaps_of, **{**wanted, **more})


def kinds(data: bytes) -> set[str]:
    return {op.kind for op in read_model(data, dialect=True).ops()}


def planned(data: bytes, **permission) -> api.PlanResult:
    tiles = api.TilePermission(**{"max_slowdown": 1.3, "search_budget": FEW, **permission})
    options = api.PlanOptions(tiles=tiles)
    return api.plan(data, options=options)


@needs_tflm
def test_loops_are_found_and_proved():
    """With all operators the arena falls below what order, plan and tiles come to; the runtimes
    compute the same, and use what was said."""
    data = blocks()
    alone, everything = (
        planned(data, operators=api.AllowedOperators.NONE),
        planned(data, operators=api.AllowedOperators.ALL),
    )
    assert kinds(everything.data) >= LOOP and not kinds(alone.data) & LOOP
    report = everything.report
    assert report.verified and {c.status for c in report.checks} == {"equal"}
    assert report.after.arena.arena < alone.report.after.arena.arena < report.before.arena.arena
    assert report.after.host.measured_head == report.after.host.predicted_head
    assert report.after.host.measured_tail == report.after.host.predicted_tail
    assert any(note.startswith("streamed") for note in report.notes)
    assert any("more operators in the firmware" in note for note in report.notes)


def test_no_loop_without_permission():
    """One operator that may not be had rules loops out; so does a firmware that lacks them."""
    data = blocks()
    used = frozenset(kinds(data))
    listed = frozenset(LOOP | {"GATHER", "PAD", "CONCATENATION", "RESHAPE", "STRIDED_SLICE"})
    of = api.AllowedOperators.of
    assert allows_loops(permitted(), used) and allows_loops(permitted(operators=of(listed)), used)
    assert not allows_loops(permitted("arduino-2023"), used)
    for missing in LOOP | {"RESHAPE"}:
        assert not allows_loops(permitted(operators=of(listed - {missing})), used)
    for options in (permitted("arduino-2023"), permitted(operators=of(listed - {"WHILE"}))):
        found = search_by_permission(data, options).result
        assert not any(isinstance(s, LoopedRegion) for t in found.front for s in t.regions)


@pytest.mark.long
def test_only_listed_operators_are_added():
    """Without SLICE there are no masks; loops from the bottom up need none here."""
    data = blocks()
    listed = frozenset(LOOP | {"GATHER", "PAD", "CONCATENATION", "RESHAPE", "STRIDED_SLICE"})
    made = planned(data, operators=api.AllowedOperators.of(listed)).data
    assert kinds(made) <= kinds(data) | listed


@pytest.mark.long
def test_more_permission_is_never_worse():
    data = blocks()
    steps = search_by_permission(data, permitted())
    plain = search_by_permission(data, permitted(operators=api.AllowedOperators.NONE))
    assert steps.same_firmware == plain.same_firmware == plain.result.best
    assert steps.result.best.bytes <= steps.same_firmware.bytes
    assert min(t.bytes for t in steps.result.front) == steps.result.best.bytes


@pytest.mark.long  # tiles are in test_workers
@pytest.mark.usefixtures("four_cores")
def test_the_same_whatever_the_number_of_processes():
    data = blocks()
    one, four = (search_by_permission(data, permitted(workers=n)) for n in (1, 4))
    assert one.result == four.result
    assert any(isinstance(s, LoopedRegion) for s in one.result.best.regions)


def test_estimates_are_a_little_optimistic():
    """Much too low, and a search evaluates them in vain; too high, and it overlooks a loop."""
    options = permitted()
    workers = Workers(blocks(), options)
    schedule = workers.evaluator.linear_schedule(
        tuple(range(len(workers.evaluator.model.main.ops)))
    )
    known = 0
    for end in range(1, len(schedule) + 1):
        for estimate in LoopEstimator(schedule).estimates_ending_at(end, range(end)):
            ops = tuple(range(estimate.interval.size))
            candidate = Candidate(
                (LoopedRegion(ops, estimate.rows, estimate.border),), False, None, Effort.CLIMB
            )
            found = workers.evaluator.evaluate(
                EvaluationRequest(candidate, ScheduleInterval(schedule.order, estimate.interval))
            )
            assert found is not None
            assert 0.6 * found.head <= estimate.head <= 1.02 * found.head
            known += 1
    assert known > 20


@needs_tflm
def test_tiles_in_the_dialect_beside_a_loop():
    """A loop, and tiles whose views cost no operator, in one model: TFLM computes the same."""
    net, graph, x = start(SHAPE)
    for i in range(6):
        x = conv(graph, x, SHAPE, f"layer{i}")
    graph.outputs(relu(graph, x, SHAPE))
    data = net.finish()
    regions = (LoopedRegion((0, 1, 2), 2, "reverse"), band(3, 5, 3, border="waste"))
    made = dialect_plan(data, regions, MemoryOptions(time_limit=10.0))
    assert "WHILE" in made.new_kinds
    assert any(t.is_view for t in read_model(made.data, dialect=True).main.tensors)
    assert same_bits(data, made.data, runtimes=("TFLM",)) == []


def test_the_best_segmentation_without_a_segment():
    """It avoids banned segments, and what was solved before stays known."""
    forms = InTiles(Split(1, 2), "recompute"), InLoop(1, "reverse")
    keys = [SegmentKey(Interval(0, 2), form) for form in forms]
    segmenter = Segmenter([100, 100], 1000)
    for key, tail in zip(keys, (5, 9), strict=True):
        segmenter.add(Segment(key, 60, tail, 0))
    assert [s.keys for s in segmenter.best(70)] == [(keys[0],)]
    assert [s.keys for s in segmenter.best_without(70, frozenset(keys[:1]))] == [(keys[1],)]
    assert segmenter.best_without(70, frozenset(keys)) == []
    assert [s.keys for s in segmenter.best(70)] == [(keys[0],)]


@pytest.mark.parametrize(
    ("name", "arena"),
    [
        ("vww_96_int8", 58_900),
        pytest.param("pretrainedResnet_quant", 33_400, marks=pytest.mark.long),
    ],
)
def test_published_models_beat_loops_made_by_hand(name, arena):
    """By hand 58,908 and 33,096 bytes, the latter at 1.18 times the instructions."""
    data = published(name)
    best = search_by_permission(data, permitted(max_slowdown=1.10)).result.best
    assert best.arena <= arena and best.slowdown <= 1.10
