"""The search of what to tile: its parts against plain truth, and the whole of it end to end."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import numpy as np
import pytest

from tests.conftest import SHARED, needs_shared, needs_tflm
from tests.models.generator import random_model
from tests.models.registry import SCALE, add, conv, noise, relu, start
from tests.pipeline.test_tiles_end_to_end import wide
from tests.transforms.test_tile_odd_graphs import Chain
from tflm_planner.model.clone import clone
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import UsageError
from tflm_planner.support.stopping import StoppedError
from tflm_planner.tiling.estimate.tiles import EstimateLimits, estimate_tiles
from tflm_planner.tiling.evaluate.candidate import (
    CLIMB,
    Candidate,
    evaluate,
    evaluate_family,
    if_permitted,
)
from tflm_planner.tiling.evaluate.equivalence import IntervalSignatures
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator
from tflm_planner.tiling.evaluate.workers import Workers, _Child
from tflm_planner.tiling.intervals import PARTS
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import Tiling, TilingOptions, pareto_front
from tflm_planner.tiling.search import search_tiles
from tflm_planner.tiling.segmentation import Segment, Segmenter, SegmentKey
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion, band

FAR = 1 << 60


def options(target: str = "cortex-m4/cmsis-nn", **more) -> TilingOptions:
    on = api.machine(api.load_target(target))
    return TilingOptions(on, on.trails_of, **more)


def found_in(data: bytes, **more):
    """What a search finds that may use any operator."""
    given = {"new_kinds": None, "overhead": 1.1, **more}
    return search_tiles(data, options(**given))


@pytest.fixture(autouse=True)
def a_small_budget(monkeypatch):
    """Searches go through all their steps, but not on and on. They are for tiles: those for loops
    have tests of their own."""
    for module in ("intervals", "segment_search"):
        monkeypatch.setattr(f"tflm_planner.tiling.{module}.loops_allowed", lambda *_: False)
    monkeypatch.setattr("tflm_planner.tiling.segment_search.MOST_WORK", 10_000)
    monkeypatch.setattr("tflm_planner.tiling.candidates.MOST_WHOLE", 4)
    monkeypatch.setattr("tflm_planner.tiling.candidates._MOST_BANS", 0)
    monkeypatch.setattr("tflm_planner.tiling.beam_search.MOST_STEPS", 1)


# --- the partition, against every partition there is ---


def every_cover(count, items, cap, needs, allowed):
    """All ways through, by brute force: (tail, cost)."""

    def ways(at):
        if at == count:
            yield 0, 0
            return
        if needs[at] <= cap:
            yield from ways(at + 1)
        for item in items:
            if item.first == at and item.head <= cap:
                for tail, cost in ways(item.end):
                    yield tail + item.tail, cost + item.cost

    return [(tail, cost) for tail, cost in ways(0) if cost <= allowed]


@pytest.mark.parametrize("seed", range(30))
def test_a_partition_is_the_best_there_is(seed):
    chance = random.Random(seed)
    count, allowed = 7, 200
    needs = [chance.randint(10, 100) for _ in range(count)]
    items = []
    for k in range(12):
        first = chance.randrange(count)
        end = chance.randint(first + 1, count)
        cost = chance.randrange(0, 120)  # whole units: nothing is lost to rounding
        figures = chance.randint(5, 90), chance.randint(0, 50), cost
        items.append(Segment(first, end, *figures, SegmentKey(first, end, (1, k + 2))))
    partition = Segmenter(needs, allowed)
    for item in items:
        partition.add(item)
    for cap in (*partition.caps(), 9):
        truth = every_cover(count, items, cap, needs, allowed)
        found = partition.covers(cap)
        assert bool(found) == bool(truth)
        for cover in found:
            assert cover.head <= cap and (cover.tail, cover.cost) in truth
            assert cover.tail == min(t for t, c in truth if c <= cover.cost)
        if truth:
            assert found[0].tail == min(t for t, _ in truth)


def test_what_gets_dearer_is_chosen_no_more():
    partition = Segmenter([90, 90], 100)
    cheap = Segment(0, 2, 20, 5, 0, SegmentKey(0, 2, (1, 2)))
    other = Segment(0, 2, 20, 9, 0, SegmentKey(0, 2, (1, 3)))
    for item in (cheap, other):
        partition.add(item)
    assert [c.items for c in partition.covers(20)] == [(cheap,)]
    dearer = Segment(0, 2, 60, 5, 0, cheap.key, tried=True)
    partition.add(dearer)
    assert [c.items for c in partition.covers(20)] == [(other,)]
    assert [c.items for c in partition.covers(60)] == [(dearer,)]
    partition.drop(other)
    assert partition.covers(20) == []


# --- sketches and trials ---


@needs_shared
@pytest.mark.parametrize(("first", "end", "parts"), [(0, 4, 2), (2, 4, 4), (1, 3, 3), (4, 7, 6)])
def test_sketches_come_close_to_trials(first, end, parts):
    """The tail to a few bytes an operator, the head to a few per cent."""
    bench = Evaluator((SHARED / "models" / "vww_96_int8.tflite").read_bytes(), options())
    order = tuple(range(len(bench.model.main.ops)))
    limits = EstimateLimits(FAR, FAR)
    found = estimate_tiles(bench.line(order), end, 1, [parts], [first], limits)
    sketch = next(s for s in found if s.first == first)
    scheme = TiledRegion(tuple(range(end - first)), ((1, parts),), border="waste")
    trial = Candidate((scheme,), True, effort=CLIMB)
    real = bench.answer(EvaluationRequest(trial, (first, end), order))
    assert real is not None
    assert 0.9 * real.head <= sketch.head <= real.head
    assert abs(real.tail - sketch.tail) <= 16 * (end - first) * parts
    assert sketch.instructions <= real.instructions


@pytest.mark.parametrize("kept", ["no", "blocks"])
@pytest.mark.parametrize("seed", range(6))
def test_numbers_of_parts_that_are_sketched_together_do_not_meet(seed, kept):
    """As if each had been sketched alone, over branches, odd windows and what is needed whole."""
    bench = Evaluator(random_model(seed, steps=14), options(new_kinds=None))
    order = tuple(range(len(bench.model.main.ops)))
    line, numbers, many = bench.line(order), [2, 3, 5, 8], 0
    for end in range(1, len(order) + 1):
        axes = [len(t.shape or ()) for t in line.ops[end - 1].outputs[:1]]
        for axis in range(sum(axes)):
            limits = EstimateLimits(FAR, 1 << 20)
            together = list(estimate_tiles(line, end, axis, numbers, order[:end], limits, kept))
            alone = [
                sketch
                for n in numbers
                for sketch in estimate_tiles(line, end, axis, [n], order[:end], limits, kept)
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
def test_what_takes_an_operand_apart_is_sketched(kind, parts):
    """As close to trials as others; that what is cut out is a copy is known before any."""
    data = taken_apart(kind, (1, 24, 16, 4 if kind == "UNPACK" else 16))
    bench = Evaluator(data, options(new_kinds=None))
    order = tuple(range(len(bench.model.main.ops)))
    line, end = bench.line(order), len(order)
    found = estimate_tiles(line, end, 1, [parts], order, EstimateLimits(FAR, FAR))
    sketch = next(s for s in found if s.first == 0)
    scheme = TiledRegion(order, ((1, parts),), border="waste")
    answers = [
        bench.answer(EvaluationRequest(Candidate((scheme,), bound, None, CLIMB), (0, end), order))
        for bound in (True, False)
    ]
    heads = [real.head for real in answers if real is not None]
    assert len(heads) == 2 and 0.9 * min(heads) <= sketch.head <= min(heads)
    assert sketch.slices and all("SLICE" in real.kinds for real in answers)


@needs_tflm
def test_tiles_go_through_what_takes_an_operand_apart():
    """Large between two convolutions: what lowers the head holds both, and all between them."""
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
    tiles = api.TilePermission(overhead=2.0, new_kinds=None, objective="head", workers=1)
    options = api.PlanOptions(api.MemoryOptions(time_limit=120.0), tiles=tiles)
    report = api.plan(chain.finish(), options=options).report
    assert report.verified and report.after.head < report.before.head // 3


def test_a_copy_is_written_as_the_original(cnn):
    model = read_model(cnn)
    assert write_model(clone(model)) == write_model(read_model(cnn))
    before = write_model(model)
    evaluate(model, Candidate((band(0, 1, 2, border="waste"),), True), options())
    assert write_model(model) == before


def test_a_trial_says_what_it_needs_and_permission_is_another_question(cnn):
    model = read_model(cnn)
    used = frozenset(op.kind for op in model.ops())
    found = evaluate(
        model, Candidate((band(0, 1, 2),), False, effort=CLIMB), options(dialect=False)
    )
    assert found is not None and "SLICE" in found.kinds and not found.kinds & used
    assert if_permitted(found, options(), used) is None
    assert if_permitted(found, options(new_kinds=found.kinds - {"SLICE"}), used) is None
    for given in (None, found.kinds):
        assert if_permitted(found, options(new_kinds=given), used) == found


# --- intervals that are alike ---

SHAPE = (1, 16, 8, 8)


def repeated(*, add_at: int = -1) -> bytes:
    """Six equal blocks of a convolution and a RELU; weights differ."""
    net, graph, x = start(SHAPE)
    for i in range(6):
        x = conv(graph, x, SHAPE, f"layer{i}")
        x = add(graph, x, x, SHAPE, f"sum{i}") if i == add_at else relu(graph, x, SHAPE)
    graph.outputs(x)
    return net.finish()


def likeness(data: bytes) -> IntervalSignatures:
    bench = Evaluator(data, options(new_kinds=None))
    return IntervalSignatures(bench.line(tuple(range(len(bench.model.main.ops)))))


def test_repeated_blocks_are_alike_and_others_are_not():
    same = likeness(repeated())
    assert len({same.of(k, k + 4) for k in (2, 4, 6)}) == 1  # the input is scaled otherwise
    assert len({same.of(k, k + 4) for k in (2, 3)}) == 2  # they begin with other operators
    assert same.of(8, 12) != same.of(6, 10)  # its result is the model's
    assert len({same.of(2, end) for end in range(3, 8)}) == 5
    other = likeness(repeated(add_at=2))
    assert other.of(2, 6) != same.of(2, 6)


@pytest.mark.parametrize("target", ["cortex-m4/cmsis-nn", "cortex-m4/cmsis-nn+lean"])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_alike_has_one_answer(seed, target):
    """Over all intervals of a model with repeated blocks, in tiles and in loops."""
    data = repeated(add_at=seed)
    asked = options(target, new_kinds=None)
    bench = Evaluator(data, asked)
    order = tuple(range(len(bench.model.main.ops)))
    known = {}
    pairs = [(first, first + n) for n in (2, 3, 4) for first in range(len(order) - n)]
    for first, end in pairs:
        ops = tuple(range(end - first))
        for scheme in (
            TiledRegion(ops, ((1, 2),), border="waste"),
            LoopedRegion(ops, 2, "reverse"),
        ):
            question = EvaluationRequest(
                Candidate((scheme,), True, None, CLIMB), (first, end), order
            )
            answer, key = bench.answer(question), bench.key(question)
            assert known.setdefault(key, answer) == answer
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
def test_lean_firmware_keeps_as_much_of_what_is_alike(seed):
    """Where parameters lie is a matter of their values: seed 3 has equal arrays, 24 and 42 some
    that lie in others."""
    asked = options("cortex-m4/cmsis-nn+lean", new_kinds=None)
    bench = Evaluator(quantized_at_random(seed), asked)
    order = tuple(range(10))
    known, asked_twice = {}, 0
    for first, end in ((first, first + n) for n in (1, 2, 3, 4) for first in range(10 - n)):
        for parts in (2, 3):
            scheme = TiledRegion(tuple(range(end - first)), ((1, parts),), border="waste")
            question = EvaluationRequest(
                Candidate((scheme,), True, None, CLIMB), (first, end), order
            )
            answer, key = bench.answer(question), bench.key(question)
            asked_twice += key in known
            assert known.setdefault(key, answer) == answer
    assert asked_twice > 5


# --- processes ---


def test_the_number_of_processes_changes_nothing(cnn, monkeypatch):
    monkeypatch.setattr("tflm_planner.tiling.evaluate.workers._WORTH_STARTING", 0)
    monkeypatch.setattr(
        "tflm_planner.tiling.evaluate.workers._MOMENT", 60
    )  # wait for those that start
    monkeypatch.setattr("tflm_planner.tiling.segment_search.MOST_WORK", 300)
    found = [found_in(cnn, workers=n) for n in (1, 2)]
    assert found[0].best.schemes and found[0] == found[1]


def test_a_dead_child_is_done_without(monkeypatch):
    monkeypatch.setattr("tflm_planner.tiling.evaluate.workers._WORTH_STARTING", 0)
    workers = Workers(wide(), options(workers=2, new_kinds=None))
    try:
        questions = [EvaluationRequest(Candidate((band(0, k, 2),), False)) for k in range(4)]
        truth = [workers.bench.answer(q) for q in questions]
        assert None not in truth
        workers._start()
        assert all(child.ready.wait(60) for child in workers._children)
        assert workers.answers(questions[:2]) == truth[:2]
        for child in workers._children:
            child.process.kill()
            child.process.wait()
        assert workers.answers(questions) == truth
    finally:
        workers.close()


@dataclass(frozen=True)
class Squared:
    """A job."""

    number: int

    def on(self, bench):
        return self.number**2


class Dividing:
    """A job that fails."""

    def on(self, bench):
        return 1 // 0


def test_nobody_waits_for_a_child_that_never_comes(monkeypatch):
    monkeypatch.setattr("tflm_planner.tiling.evaluate.workers._WORTH_STARTING", 0)
    monkeypatch.setattr("tflm_planner.tiling.evaluate.workers.sys.executable", "sleep")
    monkeypatch.setattr(_Child, "greet", lambda self: None)
    workers = Workers(wide(), options(workers=2))
    try:
        assert workers.done([Squared(n) for n in range(5)]) == [0, 1, 4, 9, 16]
        assert workers.done([Squared(3)], lambda: True) == [None]
        with pytest.raises(ZeroDivisionError):
            workers.done([Squared(1), Dividing()])
        assert workers.done([Squared(4)]) == [16]
    finally:
        workers.close()


def test_jobs_are_done_once_each_until_it_is_over():
    workers = Workers(wide(), options())
    left = iter([False, False, False, True])
    assert workers.done([Squared(n) for n in range(5)], lambda: next(left)) == [0, 1, 4, None, None]
    assert workers.done([Squared(n) for n in range(5)]) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("seed", range(3))
def test_a_family_is_answered_as_each_alone(seed):
    """What trials share is made once, and they do not get into each other's way."""
    data = repeated(add_at=seed)
    bench = Evaluator(data, options(new_kinds=None))
    count = len(bench.model.main.ops)
    seen = set()
    for schemes in (
        (TiledRegion(tuple(range(seed, seed + 3)), ((1, 4),), "merge", "waste"),),
        (
            TiledRegion((seed, seed + 1), ((1, 3),), border="pad"),
            LoopedRegion((seed + 4, seed + 5), 2, "reverse"),
        ),
        (TiledRegion((count - 1,), ((1, 2),), border="waste"), TiledRegion((0, 1), ((1, 99),))),
    ):
        family = [
            Candidate(schemes, bound, None, effort, how)
            for effort in (0, CLIMB)
            for how in ("best", "file", "rpo")
            for bound in (True, False)
        ]
        for k in (0, 6):
            together = evaluate_family(bench.model, family[k : k + 6], bench.options)
            alone = [evaluate(bench.model, t, bench.options) for t in family[k : k + 6]]
            assert together == alone
            seen |= {o for o in together if o is not None}
    assert len(seen) > 2


# --- the whole search ---


@pytest.mark.parametrize("method", ["regions", "motes"])
def test_searches_lower_the_arena(cnn, method):
    found = found_in(cnn, method=method)
    plain = found_in(cnn, method=method, overhead=1.0).best
    assert found.tried > 10 and found.best.arena <= plain.arena
    assert found.best.overhead <= 1.1
    assert method == "motes" or found.best.arena < 80_000
    rising = [t.bytes for t in found.front]
    assert rising == sorted(rising)
    assert all(a.overhead > b.overhead for a, b in itertools.pairwise(found.front))


def test_the_whole_arena_counts_by_default():
    """Every tile has a tail: what lowers the head most is not what lowers the arena most. Both
    searches end by counting, whatever the machine has to do besides."""
    chain = Chain((1, 24, 24, 4))
    chain.conv(64, 3)
    chain.conv(4, 1)
    data = chain.finish()
    arena, head = (found_in(data, objective=o, overhead=2.0).best for o in ("arena", "head"))
    assert arena.arena < head.arena and head.head < arena.head


def narrow_rows() -> bytes:
    """Rows of 60 bytes enter a row of the result: four of these are a multiple of 16 bytes."""
    chain = Chain((1, 120, 30, 1))
    chain.conv(32, 1)
    chain.pool()
    return chain.finish()


def test_parts_of_the_input_are_views_where_they_can_be(monkeypatch):
    """With the firmware's own operators: 15 tiles of four rows each, which no list of usual
    numbers holds."""
    own = found_in(narrow_rows(), new_kinds=frozenset(), overhead=1.2).best
    assert own.schemes and own.schemes[0].splits == ((1, 15),) and not own.added
    monkeypatch.setattr("tflm_planner.tiling.intervals._part_counts", lambda _: PARTS)
    assert found_in(narrow_rows(), new_kinds=frozenset(), overhead=1.2).best.bytes > own.bytes


def test_views_that_are_not_bound_may_cost_no_operator_either(monkeypatch):
    """The search with the firmware's own operators tries them too, after those that are bound."""
    tried = []
    add = ModelEvaluations.add

    def noted(self, trials):
        made = add(self, trials)
        tried.extend((trial.bound, tiling) for trial in trials for tiling in made if trial.schemes)
        return made

    monkeypatch.setattr("tflm_planner.tiling.model_evaluations.ModelEvaluations.add", noted)
    found = found_in(wide(), new_kinds=frozenset())
    assert {bound for bound, _ in tried} == {True, False}
    assert all(not tiling.added for _, tiling in tried)
    assert found.best.bytes <= min(tiling.bytes for _, tiling in tried)


def test_a_budget_takes_the_fastest_that_fits(cnn):
    smallest = found_in(cnn)
    assert len(smallest.front) > 2
    budget = smallest.front[1].bytes  # a point that the search is known to reach
    found = found_in(cnn, budget=budget).best
    assert found.bytes <= budget
    assert found.overhead < smallest.best.overhead


def test_an_interrupt_keeps_the_best_so_far(cnn, monkeypatch):
    def interrupted(*_):
        raise StoppedError

    monkeypatch.setattr("tflm_planner.tiling.segment_search.SegmentSearch._improve", interrupted)
    assert found_in(cnn).best.schemes


def test_the_front_holds_what_nothing_beats():
    made = [Tiling((), a, o, None, False) for a, o in ((9, 1.0), (5, 1.2), (7, 1.1), (8, 1.3))]
    assert [t.arena for t in pareto_front(made)] == [5, 7, 9]


@pytest.mark.parametrize("wrong", [{"method": "luck"}, {"objective": "fame"}])
def test_unknown_choices_are_refused(wrong):
    with pytest.raises(UsageError, match="choose from"):
        options(**wrong)


@needs_tflm
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dialect", [True, False])
def test_what_is_found_is_proved(seed, dialect):
    data = random_model(seed + 40, steps=8)
    tiles = api.TilePermission(overhead=2.0, dialect=dialect, new_kinds=None, objective="head")
    search = api.MemoryOptions(time_limit=20.0)
    report = api.plan(data, options=api.PlanOptions(search, tiles=tiles)).report
    assert report.verified
    plain = api.plan(data, options=api.PlanOptions(search, verify=None)).report
    assert report.after.head <= plain.after.head
