"""The search of what to tile: its parts against brute force, and all of it end to end."""

from __future__ import annotations

import itertools
import os
import random
import re
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.conftest import needs_tflm, published
from tests.models.generator import random_model
from tests.models.registry import SCALE, add, conv, noise, relu, start
from tests.models.small import Chain, narrow_rows, wide
from tests.processes import kill_children, posix_only, started_children  # noqa: F401 (a fixture)
from tflm_planner.model import schema
from tflm_planner.model.clone import clone
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import UsageError
from tflm_planner.support.stopping import Stop, StoppedError
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.estimate.tiles import EstimateLimits, estimate_tiles
from tflm_planner.tiling.evaluate import workers as workers_module
from tflm_planner.tiling.evaluate.candidate import (
    CLIMB,
    Candidate,
    evaluate,
    evaluate_family,
    if_permitted,
)
from tflm_planner.tiling.evaluate.equivalence import IntervalSignatures
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import Tiling, TilingOptions, TilingResult, pareto_front
from tflm_planner.tiling.search import search_tiles
from tflm_planner.tiling.segmentation import Segment, Segmenter, SegmentKey
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion, band

FAR = 1 << 60


SMALL = SearchBudget(search_work=2_500, branches=0, beam_steps=1)
"""Searches go through all their steps, but not on and on."""


ALL_BUT_LOOPS = frozenset(schema.operator_names().values()) - {"WHILE"}
"""Searches for loops have tests of their own."""


def options(target: str = "cortex-m4/cmsis-nn", **more) -> TilingOptions:
    on = api.kernels_of(api.load_target(target))
    return TilingOptions(on, on.input_overlaps_of, **{"search_budget": SMALL, **more})


def search(data: bytes, **more) -> TilingResult:
    """The result of a search that may use any operator but loops."""
    given = {"new_kinds": ALL_BUT_LOOPS, "overhead": 1.1, **more}
    return search_tiles(data, options(**given))


# --- the best segmentation, against every segmentation there is ---


def every_segmentation(count, segments, cap, live_bytes, allowed):
    """All segmentations, by brute force: (tail, instructions)."""

    def from_position(position):
        if position == count:
            yield 0, 0
            return
        if live_bytes[position] <= cap:
            yield from from_position(position + 1)
        for segment in segments:
            if segment.first == position and segment.head <= cap:
                for tail, instructions in from_position(segment.end):
                    yield tail + segment.tail, instructions + segment.instructions

    return [(tail, cost) for tail, cost in from_position(0) if cost <= allowed]


@pytest.mark.parametrize("seed", range(30))
def test_a_segmentation_is_the_best_there_is(seed):
    chance = random.Random(seed)
    count, allowed = 7, 200
    live_bytes = [chance.randint(10, 100) for _ in range(count)]
    segments = []
    for k in range(12):
        first = chance.randrange(count)
        end = chance.randint(first + 1, count)
        cost = chance.randrange(0, 120)  # whole units: nothing is lost to rounding
        figures = chance.randint(5, 90), chance.randint(0, 50), cost
        segments.append(Segment(first, end, *figures, SegmentKey(first, end, (1, k + 2))))
    segmenter = Segmenter(live_bytes, allowed)
    for segment in segments:
        segmenter.add(segment)
    for cap in (*segmenter.head_caps(), 9):
        truth = every_segmentation(count, segments, cap, live_bytes, allowed)
        solved = segmenter.best(cap)
        assert bool(solved) == bool(truth)
        for one in solved:
            assert one.head <= cap and (one.tail, one.instructions) in truth
            assert one.tail == min(t for t, c in truth if c <= one.instructions)
        if truth:
            assert solved[0].tail == min(t for t, _ in truth)


def test_a_segment_that_needs_more_than_estimated_is_not_chosen_again():
    segmenter = Segmenter([90, 90], 100)
    cheap = Segment(0, 2, 20, 5, 0, SegmentKey(0, 2, (1, 2)))
    other = Segment(0, 2, 20, 9, 0, SegmentKey(0, 2, (1, 3)))
    for segment in (cheap, other):
        segmenter.add(segment)
    assert [s.segments for s in segmenter.best(20)] == [(cheap,)]
    evaluated = Segment(0, 2, 60, 5, 0, cheap.key, is_evaluated=True)
    segmenter.add(evaluated)
    assert [s.segments for s in segmenter.best(20)] == [(other,)]
    assert [s.segments for s in segmenter.best(60)] == [(evaluated,)]
    segmenter.remove(other)
    assert segmenter.best(20) == []


# --- estimates and evaluations ---


@pytest.mark.parametrize(("first", "end", "parts"), [(0, 4, 2), (2, 4, 4), (1, 3, 3), (4, 7, 6)])
def test_estimates_come_close_to_evaluations(first, end, parts):
    """The tail to a few bytes an operator, the head to a few per cent."""
    evaluator = Evaluator(published("vww_96_int8"), options())
    order = tuple(range(len(evaluator.model.main.ops)))
    limits = EstimateLimits(FAR, FAR)
    found = estimate_tiles(evaluator.linear_schedule(order), end, 1, [parts], [first], limits)
    estimate = next(s for s in found if s.first == first)
    region = TiledRegion(tuple(range(end - first)), ((1, parts),), border="waste")
    candidate = Candidate((region,), True, effort=CLIMB)
    real = evaluator.evaluate(EvaluationRequest(candidate, (first, end), order))
    assert real is not None
    assert 0.9 * real.head <= estimate.head <= real.head
    assert abs(real.tail - estimate.tail) <= 16 * (end - first) * parts
    assert estimate.instructions <= real.instructions


@pytest.mark.parametrize("policy", ["recompute", "blocks"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.mostly_slow(fast=2)
def test_part_counts_that_are_estimated_together_equal_each_alone(seed, policy):
    """Over branches, odd windows and operands that tiles need whole."""
    evaluator = Evaluator(random_model(seed, steps=14), options(new_kinds=ALL_BUT_LOOPS))
    order = tuple(range(len(evaluator.model.main.ops)))
    schedule, part_counts, many = evaluator.linear_schedule(order), [2, 3, 5, 8], 0
    for end in range(1, len(order) + 1):
        axes = [len(t.shape or ()) for t in schedule.ops[end - 1].outputs[:1]]
        for axis in range(sum(axes)):
            limits = EstimateLimits(FAR, 1 << 20)
            together = list(
                estimate_tiles(schedule, end, axis, part_counts, order[:end], limits, policy)
            )
            alone = [
                estimate
                for n in part_counts
                for estimate in estimate_tiles(
                    schedule, end, axis, [n], order[:end], limits, policy
                )
            ]
            many += len(alone)
            assert sorted(together, key=str) == sorted(alone, key=str)
    assert many > 20


def taken_apart(kind: str, shape=(1, 24, 16, 16)) -> bytes:
    """A convolution whose channels go different ways, and meet again before the next one."""
    net, graph, x = start(shape)
    x = conv(graph, x, shape, "before")
    count = 2 if kind != "UNPACK" else shape[3]
    small = (*shape[:3], shape[3] // 2) if kind != "UNPACK" else shape[:3]
    parts = [graph.tensor(f"part{k}", small, scale=SCALE, zero=3) for k in range(count)]
    axis = graph.constant("axis", 3)
    if kind == "SPLIT":
        graph.op("SPLIT", [axis, x], parts, "SplitOptions", numSplits=2)
    elif kind == "SPLIT_V":
        sizes = graph.constant("sizes", [small[3], small[3]])
        graph.op("SPLIT_V", [x, sizes, axis], parts, "SplitVOptions", numSplits=2)
    else:
        graph.op("UNPACK", [x], parts, "UnpackOptions", num=count, axis=3)
    for k in range(0, count, 2):
        again = graph.tensor(f"again{k}", small, scale=SCALE, zero=3)
        graph.op("RELU", [parts[k]], [again], version=2)
        parts[k] = again
    y = graph.tensor("together", shape, scale=SCALE, zero=3)
    if kind == "UNPACK":
        graph.op("PACK", parts, [y], "PackOptions", valuesCount=count, axis=3)
    else:
        graph.op("CONCATENATION", parts, [y], "ConcatenationOptions", axis=3)
    graph.outputs(conv(graph, y, shape, "after"))
    return net.finish()


@pytest.mark.parametrize("kind", ["SPLIT", "SPLIT_V", "UNPACK"])
@pytest.mark.parametrize("parts", [2, 3, 6])
@pytest.mark.mostly_slow(fast=3)
def test_operators_with_several_results_are_estimated(kind, parts):
    """As close to evaluations as others; estimates know that the parts are copies."""
    data = taken_apart(kind, (1, 24, 16, 4 if kind == "UNPACK" else 16))
    evaluator = Evaluator(data, options(new_kinds=ALL_BUT_LOOPS))
    order = tuple(range(len(evaluator.model.main.ops)))
    schedule, end = evaluator.linear_schedule(order), len(order)
    found = estimate_tiles(schedule, end, 1, [parts], order, EstimateLimits(FAR, FAR))
    estimate = next(s for s in found if s.first == 0)
    region = TiledRegion(order, ((1, parts),), border="waste")
    evaluations = [
        evaluator.evaluate(
            EvaluationRequest(Candidate((region,), bind_views, None, CLIMB), (0, end), order)
        )
        for bind_views in (True, False)
    ]
    heads = [real.head for real in evaluations if real is not None]
    assert len(heads) == 2 and 0.9 * min(heads) <= estimate.head <= min(heads)
    assert estimate.needs_slice and all("SLICE" in real.new_kinds for real in evaluations)


@needs_tflm
@pytest.mark.slow
def test_tiles_go_through_operators_with_several_results():
    """The large tensor lies between two convolutions: regions that lower the head hold both."""
    chain = Chain((1, 24, 24, 4))
    chain.conv(64, 3)
    halves = [chain.tensor((1, 24, 24, 32)) for _ in range(2)]
    axis = chain.graph.constant("axis", 3)
    chain.graph.op("SPLIT", [axis, chain.x], halves, "SplitOptions", numSplits=2)
    again = chain.tensor((1, 24, 24, 32))
    chain.graph.op("RELU", [halves[0]], [again], version=2)
    y = chain.tensor(chain.shape)
    chain.graph.op("CONCATENATION", [halves[1], again], [y], "ConcatenationOptions", axis=3)
    chain.x = y
    chain.conv(4, 1)
    tiles = api.TilePermission(
        overhead=2.0, new_kinds=ALL_BUT_LOOPS, objective="head", workers=1, search_budget=SMALL
    )
    options = api.PlanOptions(api.MemoryOptions(time_limit=120.0), tiles=tiles)
    report = api.plan(chain.finish(), options=options).report
    assert report.verified and report.after.head < report.before.head // 3


def test_a_copy_is_written_as_the_original(cnn):
    model = read_model(cnn)
    assert write_model(clone(model)) == write_model(read_model(cnn))
    before = write_model(model)
    evaluate(model, Candidate((band(0, 1, 2, border="waste"),), True), options())
    assert write_model(model) == before


def test_an_evaluation_names_new_operators_and_permission_is_asked_later(cnn):
    model = read_model(cnn)
    used = frozenset(op.kind for op in model.ops())
    found = evaluate(
        model, Candidate((band(0, 1, 2),), False, effort=CLIMB), options(dialect=False)
    )
    assert found is not None and "SLICE" in found.new_kinds and not found.new_kinds & used
    assert if_permitted(found, options(), used) is None
    assert if_permitted(found, options(new_kinds=found.new_kinds - {"SLICE"}), used) is None
    for given in (None, found.new_kinds):
        assert if_permitted(found, options(new_kinds=given), used) == found


# --- equivalent intervals ---

SHAPE = (1, 16, 8, 8)


def repeated(*, add_at: int = -1) -> bytes:
    """Six equal blocks of a convolution and a RELU; weights differ."""
    net, graph, x = start(SHAPE)
    for i in range(6):
        x = conv(graph, x, SHAPE, f"layer{i}")
        x = add(graph, x, x, SHAPE, f"sum{i}") if i == add_at else relu(graph, x, SHAPE)
    graph.outputs(x)
    return net.finish()


def signatures(data: bytes) -> IntervalSignatures:
    evaluator = Evaluator(data, options(new_kinds=ALL_BUT_LOOPS))
    return IntervalSignatures(
        evaluator.linear_schedule(tuple(range(len(evaluator.model.main.ops))))
    )


def test_repeated_blocks_are_equivalent_and_others_are_not():
    same = signatures(repeated())
    assert len({same.of(k, k + 4) for k in (2, 4, 6)}) == 1  # the input is scaled otherwise
    assert len({same.of(k, k + 4) for k in (2, 3)}) == 2  # they begin with other operators
    assert same.of(8, 12) != same.of(6, 10)  # its result is the model's
    assert len({same.of(2, end) for end in range(3, 8)}) == 5
    other = signatures(repeated(add_at=2))
    assert other.of(2, 6) != same.of(2, 6)


@pytest.mark.parametrize("target", ["cortex-m4/cmsis-nn", "cortex-m4/cmsis-nn+lean"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.mostly_slow(fast=2)
@pytest.mark.mostly_long(short=4)
def test_equivalent_intervals_have_equal_evaluations(seed, target):
    """Over all intervals of a model with repeated blocks, in tiles and in loops."""
    data = repeated(add_at=seed)
    asked = options(target, new_kinds=ALL_BUT_LOOPS)
    evaluator = Evaluator(data, asked)
    order = tuple(range(len(evaluator.model.main.ops)))
    known = {}
    pairs = [(first, first + n) for n in (2, 3, 4) for first in range(len(order) - n)]
    for first, end in pairs:
        ops = tuple(range(end - first))
        for region in (
            TiledRegion(ops, ((1, 2),), border="waste"),
            LoopedRegion(ops, 2, "reverse"),
        ):
            request = EvaluationRequest(
                Candidate((region,), True, None, CLIMB), (first, end), order
            )
            evaluation, key = evaluator.evaluate(request), evaluator.key(request)
            assert known.setdefault(key, evaluation) == evaluation
    assert len(known) < 2 * len(pairs)


def quantized_at_random(seed: int) -> bytes:
    """Ten convolutions, of 8 and of 16 channels. Their multipliers and shifts are equal, or parts
    of each other, or not at all, whatever the scales say; so are their zero points."""
    chance = random.Random(seed)
    net, graph, x = start((*SHAPE[:3], 16))
    before, depth = SCALE, 16
    for i in range(10):
        channels = 8 if i % 2 == 0 else 16
        half = np.repeat([0.5, 1.0], channels // 2)
        spread = chance.choice((np.ones(channels), half, np.linspace(0.6, 1.4, channels)))
        after = SCALE * chance.choice((1, 2))  # made up for by the filter
        scales = np.asarray(spread * after / before, np.float32) / 1024
        kernel = noise((channels, 1, 1, depth), seed=i)
        weights = graph.constant(f"layer{i}/filter", kernel, "int8", scale=scales)
        shape = (*SHAPE[:3], channels)
        out = graph.tensor(f"layer{i}", shape, scale=after, zero=chance.choice((2, 3)))
        ones = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
        graph.op("CONV_2D", [x, weights, -1], [out], "Conv2DOptions", version=3, **ones)
        x, before, depth = out, after, channels
    graph.outputs(x)
    return net.finish()


@pytest.mark.parametrize("seed", (0, 3, 24, 42))
def test_equivalent_intervals_keep_as_much_in_lean_firmware(seed):
    """Where parameters lie is a matter of their values: seed 3 has equal arrays, 24 and 42 some
    that lie in others."""
    asked = options("cortex-m4/cmsis-nn+lean", new_kinds=ALL_BUT_LOOPS)
    evaluator = Evaluator(quantized_at_random(seed), asked)
    order = tuple(range(10))
    known, asked_twice = {}, 0
    for first, end in ((first, first + n) for n in (1, 2, 3, 4) for first in range(10 - n)):
        for parts in (2, 3):
            region = TiledRegion(tuple(range(end - first)), ((1, parts),), border="waste")
            request = EvaluationRequest(
                Candidate((region,), True, None, CLIMB), (first, end), order
            )
            evaluation, key = evaluator.evaluate(request), evaluator.key(request)
            asked_twice += key in known
            assert known.setdefault(key, evaluation) == evaluation
    assert asked_twice > 5


# --- processes ---


AT_ONCE = replace(SMALL, jobs_before_processes=0, child_poll_seconds=60, search_work=300)
"""Children start with the first job, and jobs wait for those that are starting."""


def test_the_number_of_processes_changes_nothing():
    asked = {"overhead": 1.2, "new_kinds": frozenset(), "search_budget": AT_ONCE}
    results = [search(narrow_rows(), workers=n, **asked) for n in (1, 2)]
    assert results[0].best.regions and results[0] == results[1]


@posix_only
@pytest.mark.usefixtures("started_children")
def test_jobs_of_a_dead_child_are_run_here():
    workers = Workers(wide(), options(workers=2, new_kinds=ALL_BUT_LOOPS, search_budget=AT_ONCE))
    try:
        requests = [EvaluationRequest(Candidate((band(0, k, 2),), False)) for k in range(4)]
        truth = [workers.evaluator.evaluate(q) for q in requests]
        assert None not in truth
        assert workers.evaluate(requests[:2]) == truth[:2]  # ends when the child is up
        assert kill_children("-m tflm_planner.tiling.evaluate.worker") == 1
        assert workers.evaluate(requests) == truth
    finally:
        workers.close()


@dataclass(frozen=True)
class Squared:
    """A job."""

    number: int

    def run(self, evaluator):
        return self.number**2


class Dividing:
    """A job that fails."""

    def run(self, evaluator):
        return 1 // 0


@posix_only
def test_nobody_waits_for_a_child_that_never_comes_up(monkeypatch, tmp_path):
    idle = tmp_path / "idle"
    idle.write_text("#!/bin/sh\nexec sleep 600\n")
    idle.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(idle))
    budget = replace(SMALL, jobs_before_processes=0)
    workers = Workers(wide(), options(workers=2, search_budget=budget))
    try:
        assert workers.run([Squared(n) for n in range(5)]) == [0, 1, 4, 9, 16]
        with pytest.raises(ZeroDivisionError):
            workers.run([Squared(1), Dividing()])
        assert workers.run([Squared(4)]) == [16]
    finally:
        workers.close()


@dataclass
class Interrupting:
    """A job that ends the search when it is run for the third time."""

    stop: Stop
    runs: int = 0

    def run(self, evaluator):
        self.runs += 1
        if self.runs == 3:
            self.stop.interrupt()
        return self.runs


def test_jobs_are_run_once_each_until_the_search_is_stopped():
    workers = Workers(wide(), options())
    job = Interrupting(workers.stop)
    for _ in range(2):
        with pytest.raises(StoppedError):
            workers.run([job] * 5)
        assert job.runs == 3
    workers.stop = Stop()
    assert workers.run([Squared(n) for n in range(5)]) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_a_family_is_evaluated_as_each_candidate_alone(seed):
    """Candidates that share tiles do not change each other's."""
    data = repeated(add_at=seed)
    evaluator = Evaluator(data, options(new_kinds=ALL_BUT_LOOPS))
    count = len(evaluator.model.main.ops)
    seen = set()
    for regions in (
        (TiledRegion(tuple(range(seed, seed + 3)), ((1, 4),), "merge", "waste"),),
        (
            TiledRegion((seed, seed + 1), ((1, 3),), border="pad"),
            LoopedRegion((seed + 4, seed + 5), 2, "reverse"),
        ),
        (TiledRegion((count - 1,), ((1, 2),), border="waste"), TiledRegion((0, 1), ((1, 99),))),
    ):
        family = [
            Candidate(regions, bind_views, None, effort, tile_order)
            for effort in (0, CLIMB)
            for tile_order in ("best", "file", "rpo")
            for bind_views in (True, False)
        ]
        for k in (0, 6):
            together = evaluate_family(evaluator.model, family[k : k + 6], evaluator.options)
            alone = [evaluate(evaluator.model, t, evaluator.options) for t in family[k : k + 6]]
            assert together == alone
            seen |= {o for o in together if o is not None}
    assert len(seen) > 2


# --- all of the search ---


@pytest.mark.parametrize("method", ["regions", "motes"])
@pytest.mark.slow
def test_searches_lower_the_arena(cnn, method):
    found = search(cnn, method=method)
    plain = search(cnn, method=method, overhead=1.0).best
    assert found.evaluated > 10 and found.best.arena <= plain.arena
    assert found.best.overhead <= 1.1
    assert method == "motes" or found.best.arena < 80_000
    rising = [t.bytes for t in found.front]
    assert rising == sorted(rising)
    assert all(a.overhead > b.overhead for a, b in itertools.pairwise(found.front))


@pytest.mark.slow
def test_the_whole_arena_counts_by_default():
    """Every tile has a tail: what lowers the head most is not what lowers the arena most. Both
    searches end by counting, whatever the machine has to do besides."""
    chain = Chain((1, 24, 24, 4))
    chain.conv(64, 3)
    chain.conv(4, 1)
    data = chain.finish()
    arena, head = (search(data, objective=o, overhead=2.0).best for o in ("arena", "head"))
    assert arena.arena < head.arena and head.head < arena.head


def test_parts_of_the_input_are_views_where_they_can_be():
    """With the firmware's own operators: 15 tiles of four rows each, though the list of usual
    numbers does not hold 15."""
    assert 15 not in SMALL.part_counts
    own = search(narrow_rows(), new_kinds=frozenset(), overhead=1.2).best
    assert own.regions and own.regions[0].splits == ((1, 15),) and not own.new_kinds


@pytest.mark.slow
def test_unbound_views_may_cost_no_operator_either(monkeypatch):
    """The search without new operators evaluates them too, after bound ones."""
    evaluated = []
    add = ModelEvaluations.add

    def record(self, candidates, **how):
        tilings = add(self, candidates, **how)
        evaluated.extend((c.bind_views, t) for c in candidates for t in tilings if c.regions)
        return tilings

    monkeypatch.setattr("tflm_planner.tiling.model_evaluations.ModelEvaluations.add", record)
    found = search(wide(), new_kinds=frozenset())
    assert {bind_views for bind_views, _ in evaluated} == {True, False}
    assert all(not tiling.new_kinds for _, tiling in evaluated)
    assert found.best.bytes <= min(tiling.bytes for _, tiling in evaluated)


@pytest.mark.slow
def test_a_budget_takes_the_fastest_that_fits(cnn):
    smallest = search(cnn)
    assert len(smallest.front) > 2
    budget = smallest.front[1].bytes  # a point that the search is known to reach
    found = search(cnn, budget=budget).best
    assert found.bytes <= budget
    assert found.overhead < smallest.best.overhead


def test_an_interrupt_keeps_the_best_so_far():
    """Before neighbours of a tiling are looked at."""
    stop, said = Stop(), []

    def interrupt(message):
        said.append(message)
        if re.search(r" B so far, .* parts of the model tried", message):
            stop.interrupt()

    asked = options(new_kinds=frozenset(), overhead=1.2)
    assert search_tiles(narrow_rows(), asked, interrupt, stop=stop).best.regions
    assert stop.is_over and not any("planned" in message for message in said)


def test_the_front_holds_tilings_that_none_beats():
    made = [Tiling((), a, o, None, False) for a, o in ((9, 1.0), (5, 1.2), (7, 1.1), (8, 1.3))]
    assert [t.arena for t in pareto_front(made)] == [5, 7, 9]


@pytest.mark.parametrize("wrong", [{"method": "luck"}, {"objective": "fame"}])
def test_unknown_choices_are_refused(wrong):
    with pytest.raises(UsageError, match="choose from"):
        options(**wrong)


@needs_tflm
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dialect", [True, False])
@pytest.mark.slow
def test_the_best_tiling_is_proved(seed, dialect):
    data = random_model(seed + 40, steps=8)
    tiles = api.TilePermission(
        overhead=2.0,
        dialect=dialect,
        new_kinds=ALL_BUT_LOOPS,
        objective="head",
        search_budget=SMALL,
    )
    memory = api.MemoryOptions(time_limit=20.0)
    report = api.plan(data, options=api.PlanOptions(memory, tiles=tiles)).report
    assert report.verified
    plain = api.plan(data, options=api.PlanOptions(memory, verify=None)).report
    assert report.after.head <= plain.after.head


def test_no_more_processes_than_the_machine_has_use_for(monkeypatch):
    """As many as are asked for would take all memory; results are the same."""
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    started: list[object] = []

    def refuse(*_: object) -> None:
        started.append(_)
        raise OSError("no process in a test")

    monkeypatch.setattr(workers_module, "start_module", refuse)
    asked = options(workers=100_000, new_kinds=None, search_budget=AT_ONCE)
    pool = Workers(wide(), asked)
    assert len(pool.evaluate([EvaluationRequest(Candidate((band(0, 1, 2),), False))])) == 1
    assert len(started) == 5
