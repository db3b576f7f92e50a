"""What one report says does not disagree with itself, nor with what is tried afterwards.

Every figure is read from the report's own structure, over hand-made models, random ones, loops,
and plans in tiles; every sentence of advice is tried.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import pytest

from tests.conftest import CNN
from tests.fuzz.random_models import model_of
from tests.models.build import Net
from tests.models.handmade import MODELS
from tests.models.random_loops import random_loops_model
from tests.models.small import small_network
from tests.short_searches import short_search
from tests.transforms.row_loops import chain
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.inspection.advice import advice
from tflm_planner.pipeline.inspection.inspect_model import inspect_model
from tflm_planner.report.document import HeadLimits, MapBlock, MapStep, MemoryMap, Report, Rung
from tflm_planner.report.html import to_html
from tflm_planner.report.json.document import to_json
from tflm_planner.report.peak import covered_bytes, parts_of, peak_parts
from tflm_planner.report.text.fit import next_line, verdict_line
from tflm_planner.report.text.inspection import render_inspection
from tflm_planner.report.text.report import limit_sentence, render_report
from tflm_planner.support.errors import ModelError
from tflm_planner.tiling.options import METHODS

TARGETS = ("cortex-m4/cmsis-nn", "x86-64/reference", "xtensa-lx7/unknown", "cortex-m/any")
NETWORK = chain((3, 1, 8), (3, 2, 8), (1, 1, 16), (3, 2, 8), size=32)
SMALL = short_search(1_500)
"""A few tilings are enough."""


@cache
def models() -> dict[str, bytes]:
    made = {name: model.make() for name, model in MODELS.items() if name != "strings"}
    made |= {f"random {seed}": model_of(seed) for seed in range(8)}
    made |= {f"loops {seed}": random_loops_model(seed, choices=seed % 2 == 0) for seed in range(8)}
    return {**made, "cnn": CNN.read_bytes(), "network": NETWORK, "small": small_network(5)}


def search_for(target: str, **more: object) -> api.MemoryOptions:
    return api.MemoryOptions(
        kernels=api.kernels_of(api.load_target(target)), **more
    )  # fmt: skip


def planned(data: bytes, target: str, **more: object) -> Report:
    return api.plan(data, None, api.PlanOptions(search_for(target), verify=None, **more)).report


def faults_of_map(drawn: MemoryMap) -> list[str]:
    peak = drawn.peak_step
    if peak is None:
        return []
    faults = [
        f"{step.live_bytes} live at {step.index}, head {drawn.head}"
        for step in drawn.steps
        if step.live_bytes > drawn.head
    ]
    own = sum(part.own for part in peak_parts(drawn))
    if own + peak.workspace_bytes != peak.live_bytes:
        faults.append(f"{own} + {peak.workspace_bytes} at the peak, {peak.live_bytes} live")
    if max(b.offset + b.size for b in drawn.blocks) > drawn.head:
        faults.append("a block ends above the head")
    return faults


def faults_of_limits(limits: HeadLimits, head: int) -> list[str]:
    """L1 alone may lie above the head: nothing is shared there."""
    floors = {"L0": limits.input_bytes, "L2": limits.best_order_bytes, "L3": limits.overlap_bytes}
    return [f"{k} {v} above {head}" for k, v in floors.items() if v is not None and v > head]


def faults_of(report: Report) -> list[str]:
    solution, after = report.allocation.solution, report.after
    faults = faults_of_limits(report.limits, after.head)
    for side in (report.before, after):
        faults += faults_of_map(side.map)
        if side.map.head != side.arena.head:
            faults.append("two heads")
        if side.arena.arena + 16 < side.arena.head + side.arena.tail:
            faults.append("parts are more than the arena")
        if (side.arena.bound == "exact") != (side.arena.reserved == side.arena.arena):
            faults += ["margin"] * (side.arena.bound != "enough")
    if after.head < solution.lower_bound:
        faults.append(f"head {after.head} below its bound {solution.lower_bound}")
    if solution.optimal and solution.height != solution.lower_bound:
        faults.append("optimal above its bound")
    gap = re.search(r"gap ([\d,]+) B", limit_sentence(report))
    if gap and int(gap[1].replace(",", "")) != after.head - solution.lower_bound:
        faults.append(f"{limit_sentence(report)}, head {after.head}")
    return faults


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.slow
def test_plans_do_not_contradict_themselves(target: str) -> None:
    """Models take turns: each is planned for one of the targets, three of them for all."""
    turn, wrong = TARGETS.index(target), dict[str, list[str]]()
    for at, (name, data) in enumerate(models().items()):
        if at % len(TARGETS) != turn and name not in ("cnn", "network", "small"):
            continue
        try:
            report = planned(data, target)
            found = api.inspect(data, search_for(target).kernels)
        except ModelError:
            continue
        faults = faults_of(report) + faults_of_map(found.map)
        faults += faults_of_limits(found.limits, found.arena.head)
        if faults:
            wrong[name] = faults
    assert wrong == {}
    assert len(models()) > 45


@pytest.mark.parametrize("dialect", [True, False])
@pytest.mark.parametrize("operators", [api.AllowedOperators.NONE, api.AllowedOperators.ALL])
@pytest.mark.slow
def test_tiled_plans_do_not_contradict_themselves(dialect: bool, operators) -> None:
    for data in (NETWORK, small_network(5), small_network(20)):
        tiles = api.TilePermission(
            1.5, dialect=dialect, operators=operators, workers=1, search_budget=SMALL
        )
        report = planned(data, TARGETS[0], tiles=tiles)
        assert faults_of(report) == []
        assert report.front is not None
        chosen = next(p for p in report.front.points if p.role == "chosen")
        assert chosen.size == report.after.arena.arena
        assert report.front.points[0].size == report.before.arena.arena


# --- what is said to be impossible is tried -------------------------------------------------------


@pytest.mark.slow
def test_what_is_proved_optimal_nobody_beats() -> None:
    """Other allocators and seeds, for the same operators in the same order."""
    tried = 0
    for data in list(models().values())[::2]:
        try:
            report = planned(data, TARGETS[0])
        except ModelError:
            continue
        for allocator in ("greedy", "local") if report.allocation.solution.optimal else ():
            order = "best" if report.order.changed else "file"
            options = search_for(TARGETS[0], allocator=allocator, seed=3, order=order)
            made = api.plan(data, None, api.PlanOptions(options, verify=None)).report
            assert made.after.head >= report.allocation.solution.lower_bound
            tried += 1
    assert tried > 30


@pytest.mark.slow
def test_the_input_is_a_floor_for_everything() -> None:
    for data in (NETWORK, small_network(1)):
        for method in METHODS:
            tiles = api.TilePermission(
                3.0,
                operators=api.AllowedOperators.ALL,
                workers=1,
                method=method,
                search_budget=SMALL,
            )
            report = planned(data, TARGETS[0], tiles=tiles)
            assert report.after.head >= report.limits.input_bytes > 0


# --- advice ---------------------------------------------------------------------------------------


def told(data: bytes, target: str = TARGETS[0]) -> list[str]:
    on = api.kernels_of(api.load_target(target))
    return advice(inspect_model(read_model(data), on))


def numbers(text: str) -> list[int]:
    return [int(n.replace(",", "")) for n in re.findall(r"([\d,]*\d) B", text)]


@pytest.mark.slow
def test_the_sums_in_the_advice_add_up() -> None:
    for name, data in models().items():
        try:
            notes = told(data)
        except ModelError:
            continue
        arena, head, rest = numbers(notes[0])
        assert arena == head + rest, name
        if len(notes) > 1:
            whole, parts = notes[1].split(" while ")
            taken = re.search(r"(?:all )?([\d,]+)(?: of ([\d,]+))? B of the head", whole)
            assert taken is not None, whole
            figures = [int(n.replace(",", "")) for n in taken.groups() if n is not None]
            assert figures[-1] == head and (len(figures) == 1) == whole.startswith("all "), name
            assert sum(numbers(parts.partition(": ")[2])) == figures[0], notes[1]


def test_the_input_is_said_to_be_a_floor_where_it_is_large() -> None:
    wide = chain((1, 1, 1), size=64)
    notes = told(wide)
    assert any("goes below it" in note for note in notes)
    assert not any("only a smaller input" in note for note in notes)


# --- the ladder -----------------------------------------------------------------------------------


def rungs(data: bytes, target: str = TARGETS[0], **more: object) -> dict[str, Rung]:
    options = api.PlanOptions(search_for(target), verify=None, **more)  # type: ignore[arg-type]
    return {rung.kind: rung for rung in api.plan(data, None, options).report.ladder}


@pytest.mark.slow
def test_stream_input_is_offered_where_it_works() -> None:
    """Every model for which it is offered can be split, and is not one where it cannot."""
    offered = refused = 0
    names = ["network", *(n for n in models() if n.startswith("random"))]
    wide = {"wide": chain((1, 1, 1), (3, 1, 2), size=64)}
    for name in [*names, "wide"]:
        data = {**models(), **wide}[name]
        options = api.StreamOptions(search_for(TARGETS[0]), verify=None)
        if "rows streamed" in rungs(data):
            assert api.stream_input(data, None, options).pair.sram > 0
            offered += 1
        else:
            with pytest.raises(ModelError):
                api.stream_input(data, None, options)
            refused += 1
    assert offered >= 2 and refused >= 2


def test_lean_firmware_is_offered_with_the_arena_that_it_has() -> None:
    """The plan of the model with its pool takes no more than was said."""
    data = chain((1, 1, 64), (1, 1, 64), (1, 1, 64), size=2)
    found = rungs(data)
    rung = found["lean"]
    assert rung.arena is not None and rung.at_most and "--firmware lean" in rung.command
    assert rung.arena < (found["plan"].arena or 0)
    report = planned(data, f"{TARGETS[0]}+lean")
    assert report.after.arena.arena <= rung.arena
    assert "lean" not in rungs(data, "esp32s3")


def test_what_integers_at_the_ends_would_take_is_what_they_take() -> None:
    """A model that is made so needs the arena that the ladder says."""

    def network(ends: str) -> bytes:
        net = Net()
        graph = net.graph()
        x = graph.input("x", (1, 8, 8, 4), ends, **({"scale": 0.1} if ends == "int8" else {}))
        if ends == "float32":
            y = graph.tensor("q", (1, 8, 8, 4), scale=0.1)
            graph.op("QUANTIZE", [x], [y], "QuantizeOptions")
            x = y
        z = graph.tensor("z", (1, 8, 8, 4), scale=0.1)
        graph.op("RELU", [x], [z])
        graph.outputs(z)
        return net.finish()

    rung = rungs(network("float32"))["int8 ends"]
    assert rung.arena == planned(network("int8"), TARGETS[0]).after.arena.arena
    assert "--io int8" in rung.command
    assert "int8 ends" not in rungs(network("int8"))


def test_what_does_not_fit_is_searched_until_something_does() -> None:
    """Of a budget that lean firmware alone keeps, the rungs up to it are tried; the first line
    says that it does not fit, and the command says what does."""
    data = chain((1, 1, 64), (1, 1, 64), (1, 1, 64), size=2)
    lean = rungs(data)["lean"].arena
    assert lean is not None
    tiles = api.TilePermission(workers=1, search_budget=SMALL)
    options = api.PlanOptions(search_for(TARGETS[0]), tiles, given_arena_limit=lean, verify=None)
    report = api.plan(data, None, options).report
    found = {rung.kind: rung for rung in report.ladder}
    assert found["more operators"].arena is not None
    assert (found["lean"].arena or 0) <= lean and not found["lean"].at_most
    assert not report.fits and verdict_line(report).startswith("DOES NOT FIT in ")
    assert next_line(report) == f"{found['lean'].command}   # {found['lean'].arena:,} B: fits"
    fitting = api.plan(
        data, None, api.PlanOptions(search_for(TARGETS[0]), given_arena_limit=10**6)
    ).report
    assert fitting.fits and verdict_line(fitting).startswith("FITS in 1,000,000 B: arena ")
    assert next_line(fitting) is None


def test_a_file_that_is_too_large_is_stripped_where_that_helps() -> None:
    """The advice is what --strip makes of the very file, to the byte."""
    nano = api.load_target("nano33ble")
    assert nano.board is not None

    def planned_for(flash: int, strip="nothing") -> Report:
        target = replace(nano, board=replace(nano.board, flash=flash))
        memory = api.MemoryOptions(kernels=api.kernels_of(target), strip=strip)
        command = ("tflm-plan", "cnn.tflite", "--target", "nano33ble")
        options = api.PlanOptions(memory, verify=None, command=command)
        return api.plan(CNN, None, options).report

    stripped = planned_for(1 << 20, "unread by TFLM").after.file_bytes
    report = planned_for(stripped)
    assert not report.within_flash and report.within_budget
    wanted = "tflm-plan cnn.tflite --target nano33ble --search none --strip   # file"
    assert next_line(report) == f"{wanted} {stripped:,} B: fits"
    assert planned_for(stripped, "unread by TFLM").fits
    assert f"{stripped:,} B, 1 B more than the flash" in (
        next_line(planned_for(stripped - 1)) or ""
    )
    gone = next_line(planned_for(stripped - 1, "unread by TFLM"))
    assert gone is not None and "--strip" not in gone and "weights" in gone
    assert next_line(planned_for(1 << 20)) is None


# --- the parts ------------------------------------------------------------------------------------


def test_bytes_at_the_peak_are_counted_once() -> None:
    def block(offset: int, size: int) -> MapBlock:
        return MapBlock("b", "activation", size, offset, 0, 1)

    blocks = [block(0, 64), block(16, 16), block(48, 32), block(96, 16)]
    assert covered_bytes(blocks) == 96
    assert sorted(p.own for p in parts_of(blocks)) == [0, 16, 16, 64]
    assert covered_bytes([]) == 0


def test_what_shares_memory_is_said_to() -> None:
    """Tensors of 96 bytes are not listed below "64 B live" without a word."""
    blocks = MapBlock("whole", "input", 64, 0, 0, 1), MapBlock("view", "output", 32, 16, 0, 1)
    names = ("whole", "view")
    step = MapStep(0, "RESHAPE", "view", 0, 64, 32, 0, 0, 32, names)
    text = render_inspection("it", MemoryMap((step,), blocks, 64), HeadLimits(64, 96, 64, 64), [])
    lines = text[text.index("Peak:") :].splitlines()
    assert "64 B live" in lines[0] and "tensors share memory, bytes are counted once" in lines[0]
    assert [line.split()[0] for line in lines[1:3]] == ["64", "0"]
    assert "view (of 32 B)" in lines[2]


def test_figures_of_other_targets_are_marked(report: Report) -> None:
    """TFLM on this machine is another target: its tail is no tail of the report's."""
    for line in render_report(report).splitlines():
        if "35,048" in line:  # the wheel's tail
            assert "x86-64, before:" in line or "after:" in line
    assert "TFLM here    on x86-64, before:" in render_report(report)
    assert "TFLM here (x86-64), before" in to_html(report)


def test_limits_that_a_plan_is_below_say_so(report: Report) -> None:
    lower = replace(report, after=replace(report.after, arena=replace(report.after.arena, head=99)))
    page = to_html(lower)
    assert "No plan of the kind can have a lower head" not in page
    assert page.count("this plan is below it") == 4
    assert "this plan is below it" not in to_html(report)
    assert json.loads(json.dumps(to_json(lower)))["head"]["after"] == 99
