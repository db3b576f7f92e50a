"""Which operators are spelled otherwise: prices, levels, and what plans come to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.conftest import PUBLISHED, needs_tflm
from tests.models.build import Net
from tests.transforms.test_tile_odd_graphs import Chain
from tflm_planner.cost import instructions_of
from tflm_planner.memory.allocators.packing import pack
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning.model_planner import ModelPlanner
from tflm_planner.pipeline.planning.planning_result import (
    PlanningResult,
    ProveModel,
    leave_unproved,
)
from tflm_planner.pipeline.planning.refusals import Proof, Refusal
from tflm_planner.support.stopping import Stop
from tflm_planner.support.units import align_up
from tflm_planner.tflm.liveness import planning_problem, timeline_of, view_aliases
from tflm_planner.tflm.placement import tensor_offsets
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.tiling.spellings import (
    PlanFigures,
    Respelling,
    SpellingChoice,
    SpellingPermission,
    best_spellings,
)
from tflm_planner.transforms.base import run
from tflm_planner.transforms.spelling import Respell, Spelling

VWW = PUBLISHED / "vww_96_int8.tflite"


def widening(*, reader: bool = False) -> bytes:
    """Two expansions of a large image, and a pool; with another reader of what the second reads."""
    net = Chain((1, 16, 16, 8))
    net.conv(16, 1)
    if reader:
        other = net.pool(net.x)
    net.conv(32, 1)
    net.pool()
    return net.finish(other, net.x) if reader else net.finish()


def choice_of(data: bytes, target: str = "cortex-m4/cmsis-nn", **more: bool) -> SpellingChoice:
    model, kernels = read_model(data), kernels_of(load_target(target))
    line = timeline_of(model, kernels.scratch_of)
    problem = planning_problem(line, kernels.input_overlaps_of)
    return SpellingChoice(model, line, problem, kernels, **more)


def test_an_outline_promises_what_written_spellings_need() -> None:
    """Its plan needs as many bytes but for scratch, which counts in distances, and as many
    instructions as there are without the RESHAPEs, which move nothing."""
    for data in (widening(), widening(reader=True)):
        kernels = kernels_of(load_target("cortex-m4/cmsis-nn"))
        before, choice = instructions_of(read_model(data), kernels.target), choice_of(data)
        for rate in choice.rates:
            spellings = choice.at(rate, 0)
            outlined, more = choice.outlined(spellings)
            written = read_model(data)
            Respell(spellings).apply(written)
            timeline = timeline_of(written, kernels.scratch_of)
            problem = planning_problem(timeline, kernels.input_overlaps_of)
            plan = pack(problem, view_aliases(timeline, written.main))
            scratch = sum(sum(map(align_up, kernels.scratch_of(op))) for op in written.main.ops)
            more_bytes = pack(outlined, ()).height(outlined) - plan.height(problem)
            assert 0 <= more_bytes <= scratch < 300
            offsets = tensor_offsets(timeline, plan)
            views = [op for op in written.main.ops if op.kind == "RESHAPE"]
            written.main.ops = [op for op in written.main.ops if op not in views]
            assert before + more == instructions_of(written, kernels.target, offsets)
            assert len(views) == 2 * sum(s.kind == "rows" for s in spellings)


@pytest.mark.parametrize(("channels", "most"), [(3, 5), (4, 32)])
def test_the_floor_counts_scratch_as_the_leanest_spelling_has_it(channels: int, most: int) -> None:
    """On an ESP32-S3 a 1x1 convolution copies its filter to scratch, in rows of one pixel less."""
    net = Chain((1, 24, 24, channels))
    net.conv(channels, 3)
    net.conv(most, 1)
    net.pool()
    data, target = net.finish(), "esp32s3/esp-nn"
    model, kernels = read_model(data), kernels_of(load_target(target))
    assert run(model, Respell((Spelling(1, "rows", 1),))) is not None
    line = timeline_of(model, kernels.scratch_of)
    problem = planning_problem(line, kernels.input_overlaps_of)
    choice = choice_of(data, target)
    assert choice.floor <= pack(problem, ()).height(problem) and choice.levels
    outlined, _ = choice.outlined(choice.at(choice.rates[-1], choice.levels[0]))
    assert len(outlined.buffers) <= len(problem.buffers)


def test_more_is_paid_for_less_distance() -> None:
    choice = choice_of(widening())
    assert choice.rates == sorted(choice.rates) and min(choice.rates) > 0
    prices = [choice.price(rate, 0) for rate in (0, *choice.rates)]
    assert prices == sorted(prices) and prices[0] == 0 < prices[-1]
    freest, cheapest = choice.at(choice.rates[-1], 0), choice.at(choice.rates[0], 0)
    assert all(s.kind == "rows" and 256 % s.pixels == 0 for s in freest)
    assert max(s.pixels for s in freest) < min(s.pixels for s in cheapest)


def test_operators_below_a_level_stay_as_they_are() -> None:
    choice = choice_of(widening())
    assert choice.floor == 8192 + 32  # the second result, and two of its pixels
    assert [s.op for s in choice.at(choice.rates[-1], choice.floor)] == [1]
    assert not choice.at(choice.rates[-1], 256 * (16 + 32))


def test_what_gains_nothing_is_not_offered() -> None:
    """Kernels that go pixel by pixel already; an operand that is read again; dilation alone where
    there may be no RESHAPE."""
    assert not choice_of(widening(), "x86-64/reference").levels
    read_again = choice_of(widening(reader=True))
    assert 1 not in {s.op for s in read_again.at(1e9, 0)}
    choice = choice_of(widening(), rows=False)
    assert choice.at(1e9, 0) == (Spelling(1, "dilated"),)


@dataclass
class Packer:
    """Plans by formula: each operator's result behind its operand, all behind one another. A plan
    is its spellings."""

    calls: int = 0

    def respell(self, spellings: tuple[Spelling, ...]) -> tuple[Spelling, ...]:
        self.calls += 1
        return spellings

    def measure(self, spellings: tuple[Spelling, ...]) -> PlanFigures:
        rows = {s.op: 16 * s.pixels for s in spellings}
        head = 8192 + rows.get(1, 4096)
        spent = sum(600_000 // s.pixels for s in spellings)
        return PlanFigures(head, head, 10_000_000 + spent)


@pytest.mark.parametrize("max_slowdown", [1.0, 1.001, 1.01, 1.1, 2.0])
def test_what_is_taken_is_allowed_and_cheap(max_slowdown: float) -> None:
    packer = Packer()
    before = packer.measure(())
    permission = SpellingPermission(max_slowdown)
    respelling = Respelling(packer.respell, packer.measure)
    spellings = best_spellings(choice_of(widening()), (), permission, respelling)
    found = packer.measure(spellings)
    assert found.instructions <= permission.limit(before.instructions)
    assert packer.calls <= 14
    assert (not spellings) == (max_slowdown == 1.0)
    if max_slowdown >= 1.1:  # not for the last few bytes
        assert (found.bytes, found.instructions) == (8192 + 16 * 2, 10_300_000)


@needs_tflm
@pytest.mark.parametrize("dialect", [True, False])
def test_vww_in_rows(dialect: bool) -> None:
    """One convolution in rows of many pixels: 22 % less than order and plan for 1 % at most. In the
    dialect its views cost no operator; a portable file has two RESHAPEs, which the firmware has."""
    tiles = api.TilePermission(1.01, dialect=dialect, spellings_only=True)
    result = api.plan(VWW, options=api.PlanOptions(tiles=tiles))
    report = result.report
    assert report.verified and report.after.arena.arena <= 64_500
    assert report.after.host.measured_head == report.after.host.predicted_head
    assert report.after.host.measured_tail == report.after.host.predicted_tail
    assert any("in rows of" in note for note in report.notes)
    kinds = [op.kind for op in read_model(result.data, dialect=dialect).main.ops]
    assert kinds.count("RESHAPE") == (0 if dialect else 2)


def test_spellings_that_cost_next_to_nothing_end_the_search() -> None:
    """vww fits 64 KB with one convolution in rows, for 0.1 %: no tile is looked for. One is where
    that is too little, or where the proof refuses it, which is said."""
    model = VWW.read_bytes()

    def plan(limit: int, prove: ProveModel) -> tuple[PlanningResult, bool]:
        stop, said = Stop(), list[str]()

        def listen(line: str) -> None:
            said.append(line)
            if line.startswith("looking for tiles"):
                stop.interrupt()

        permission = api.TilePermission(workers=1)
        planner = ModelPlanner(api.MemoryOptions(), stop, permission, limit, listen)
        return planner.plan(model, read_model(model), prove), stop.is_over

    planned, searched = plan(65_536, leave_unproved)
    assert planned.file.inspection.arena.arena <= 65_536 and not planned.file.tiled
    assert 1 < planned.file.slowdown <= 1.001 and planned.search.front is not None
    assert not searched

    _, searched = plan(60_000, leave_unproved)
    assert searched

    refused, searched = plan(65_536, lambda _: Proof(refusal=Refusal("in this test")))
    assert searched and "operators spelled otherwise: in this test" in refused.search.refused[0]


@needs_tflm
def test_a_portable_file_gets_no_reshape_that_the_firmware_lacks() -> None:
    for new_kinds, expected in (((), False), (("RESHAPE",), True)):
        operators = api.AllowedOperators.of(new_kinds)
        tiles = api.TilePermission(1.02, dialect=False, spellings_only=True, operators=operators)
        result = api.plan(widening(), options=api.PlanOptions(tiles=tiles))
        kinds = {op.kind for op in read_model(result.data).main.ops}
        assert ("RESHAPE" in kinds) == expected and result.report.verified
        assert any("in rows of" in note for note in result.report.notes) == expected


def layers(rows: int = 64, width: int = 32) -> bytes:
    """Three FULLY_CONNECTED of the same rows, with results of three axes, and a mean of all."""
    rng, net = np.random.default_rng(0), Net()
    graph = net.graph()
    x = graph.input("x", (1, rows, width), scale=0.1)
    for i in range(3):
        weights = rng.integers(-127, 128, (width, width))
        features = graph.constant(f"w{i}", weights, "int8", scale=0.003)
        y = graph.tensor(f"y{i}", (1, rows, width), scale=0.1)
        graph.op("FULLY_CONNECTED", [x, features], [y], "FullyConnectedOptions", keepNumDims=True)  # type: ignore[arg-type]
        x = y
    mean = graph.tensor("mean", (1, width), scale=0.1)
    graph.op("MEAN", [x, graph.constant("axis", [1])], [mean], "ReducerOptions")
    graph.outputs(mean)
    return net.finish()


@needs_tflm
def test_rows_as_matrices_lie_over_each_other() -> None:
    """Half the head, where CMSIS-NN would read each row again; on the reference kernels rows trail
    as they are."""
    tiles = api.TilePermission(1.5, spellings_only=True)
    plain, spelled = (api.plan(layers(), options=api.PlanOptions(tiles=t)) for t in (None, tiles))
    report = spelled.report
    assert report.verified and any("with its rows as a matrix" in n for n in report.notes)
    assert plain.report.after.arena.head == 2 * 64 * 32 + 8 * 32  # one scale for every channel
    assert report.after.arena.head <= 64 * 32 + 6 * 32
    assert report.after.host.measured_head == report.after.host.predicted_head
    assert "RESHAPE" not in {op.kind for op in read_model(spelled.data, dialect=True).main.ops}
    memory = api.MemoryOptions(kernels=kernels_of(load_target("cortex-m4/reference")))
    reference = api.plan(layers(), options=api.PlanOptions(memory))
    assert reference.report.after.arena.head <= 64 * 32 + 6 * 32


@needs_tflm
def test_nothing_is_spelled_where_nothing_is_gained() -> None:
    tiles = api.TilePermission(1.0, spellings_only=True)
    plain, result = (api.plan(widening(), options=api.PlanOptions(tiles=t)) for t in (None, tiles))
    assert result.data == plain.data
