"""What a report says to try next: what was not tried is offered before a smaller model is asked
for, alike in text, JSON and HTML."""

from __future__ import annotations

import html
from dataclasses import replace
from functools import cache

import pytest

from tests.models.small import small_network
from tests.report.report_samples import unbroken
from tests.short_searches import short_search
from tests.transforms.row_loops import chain
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import operators_named
from tflm_planner.pipeline.planning.by_hand import parse_regions
from tflm_planner.report.document import ParetoFront, ParetoPoint, Report, Rung
from tflm_planner.report.html import to_html
from tflm_planner.report.json.document import to_json
from tflm_planner.report.text.fit import ladder_rows, next_line
from tflm_planner.report.text.report import render_report
from tflm_planner.support.stopping import Stop

SMALLER = "a smaller model is needed"
SKEWED = chain((1, 1, 24), (3, 2, 8), size=32)
"""Tiles lower its arena for 3.6 % more instructions, and not for none."""
MORE_WITH_PAD = chain((3, 1, 24), (3, 2, 8), (3, 1, 24), (3, 1, 16), (3, 1, 16), size=64)
POINTWISE = chain((1, 1, 64), (1, 1, 64), (1, 1, 64), size=2)
GIVEN = ("tflm-plan", "in.tflite", "out.tflite", "--budget", "2000", "--force")


def planned(data: bytes, budget: int, tiles: api.TilePermission | None = None, **more) -> Report:
    target = api.load_target("cortex-m4/cmsis-nn", lean=more.pop("lean", False))
    memory = api.MemoryOptions(kernels=api.kernels_of(target))
    given = more.pop("command", GIVEN)
    options = api.PlanOptions(
        memory, tiles, given_arena_limit=budget, verify=None, command=given, **more
    )
    return api.plan(data, None, options).report


@cache
def unplanned() -> Report:
    """A report of a network that has no room in 2,000 bytes, without a search."""
    return planned(small_network(5), 2000)


def with_ladder(*rungs: Rung, **more) -> Report:
    return replace(unplanned(), ladder=(Rung("stock", 9000), *rungs), **more)


def test_tiles_that_were_not_tried_come_before_everything_else() -> None:
    """Text, JSON and HTML give the command of the default search."""
    report = unplanned()
    wanted = "tflm-plan in.tflite out.tflite --budget 2000 --force"
    rung = next(rung for rung in report.ladder if rung.kind == "tiles")
    assert (rung.command, rung.arena, rung.searched) == (wanted, None, False)
    written = to_json(report)
    assert written["fit"]["next_command"] == f"{wanted}   # not tried yet"
    text = render_report(report)
    assert f"  next         {wanted}   # not tried yet" in text.splitlines()
    assert any(
        line.split() == ["tiles,", "spellings", *wanted.split()] for line in text.splitlines()
    )
    page = html.unescape(unbroken(to_html(report)))
    assert f"<code>{wanted}   # not tried yet</code>" in page
    assert not any(SMALLER in said for said in (text, page, str(written)))


def test_what_fits_on_other_firmware_is_said_beside_what_was_not_tried() -> None:
    lean = next(rung for rung in planned(POINTWISE, 2000).ladder if rung.kind == "lean")
    assert lean.arena is not None
    following = next_line(planned(POINTWISE, lean.arena))
    assert following is not None
    command, said = following.split("   # ")
    assert "--firmware" not in command
    assert said == f"not tried yet; further below, lean library fits with {lean.arena:,} B"


LESS = (
    {"spellings_only": True},
    {"method": "motes"},
    {"max_slowdown": 1.0},
    {"objective": "head"},
)


def a_little(**tiles) -> api.TilePermission:
    budget = short_search(300)
    return api.TilePermission(workers=1, search_budget=budget, **tiles)


@pytest.mark.parametrize("tiles", LESS)
@pytest.mark.parametrize("budget", [2000, 10**6])
def test_less_than_the_default_search_is_not_the_whole_search(
    tiles: dict[str, object], budget: int
) -> None:
    """The default search is a rung of its own, which is tried for what does not fit."""
    given = (*GIVEN, "--max-slowdown", "1.0", "--objective", "head")
    report = planned(POINTWISE, budget, a_little(**tiles), command=given)
    labels = [label for label, _ in ladder_rows(report)]
    assert len({*labels}) == len(labels)
    own, default = (
        next(rung for rung in report.ladder if rung.kind == kind)
        for kind in ("given search", "tiles")
    )
    assert default.command == " ".join(GIVEN) and default.searched == (budget == 2000)
    assert not own.command and (own.taken or own.remark)


def test_fewer_instructions_than_by_default_do_not_ask_for_a_smaller_model() -> None:
    fast = a_little(max_slowdown=1.0)
    least = min(rung.arena for rung in planned(SKEWED, 2000, fast).ladder if rung.kind == "tiles")
    report = planned(SKEWED, least, fast, command=(*GIVEN, "--max-slowdown", "1.0"))
    assert not report.within_budget
    assert next_line(report) == f"{' '.join(GIVEN)}   # {least:,} B: fits"


def test_more_instructions_than_by_default_stay_allowed() -> None:
    slow = a_little(max_slowdown=1.5, spellings_only=True)
    report = planned(POINTWISE, 10**6, slow, command=(*GIVEN, "--max-slowdown", "1.5"))
    rung = next(rung for rung in report.ladder if rung.kind == "tiles")
    assert rung.command == f"{' '.join(GIVEN)} --max-slowdown 1.5"


def test_named_operators_are_not_all_operators() -> None:
    """What was made with named operators has another label than what all of them would reach."""
    named = a_little(operators=operators_named(["PAD", "SLICE"]))
    report = planned(MORE_WITH_PAD, 9000, named)
    kinds = [rung.kind for rung in report.ladder]
    assert kinds == ["stock", "plan", "given search", "more operators", "lean", "rows streamed"]
    assert next(rung for rung in report.ladder if rung.taken).kind == "given search"


def test_a_search_that_was_ended_does_not_say_that_there_is_nothing() -> None:
    stop = Stop()
    stop.interrupt()
    memory = api.MemoryOptions(kernels=api.kernels_of(api.load_target("cortex-m4/cmsis-nn")))
    options = api.PlanOptions(memory, a_little(), given_arena_limit=2000, verify=None)
    report = api.plan(POINTWISE, None, options, stop=stop).report
    rung = next(rung for rung in report.ladder if rung.kind == "tiles")
    assert rung.remark == "none was found before the search was ended"


def test_commands_keep_the_firmware_that_was_given() -> None:
    """A command line is handed on without --firmware, --ops and --io, which every rung adds."""
    lean = planned(POINTWISE, 2000, lean=True)
    assert [rung.command for rung in lean.ladder if rung.kind == "tiles"] == [
        f"{' '.join(GIVEN)} --firmware lean"
    ]
    named = api.TilePermission(
        operators=operators_named(["PAD"]), spellings_only=True, workers=1
    )  # fmt: skip
    rungs = planned(POINTWISE, 10**6, named).ladder
    assert [rung.command for rung in rungs if rung.kind == "tiles" and rung.command] == [
        f"{' '.join(GIVEN)} --ops PAD"
    ]
    assert [rung.command for rung in rungs if rung.kind == "more operators"] == [
        f"{' '.join(GIVEN)} --firmware more-ops"
    ]


def test_tiles_by_hand_leave_the_search_to_be_tried() -> None:
    patch = api.TilePermission(by_hand=parse_regions("2,1", (), ()))
    report = planned(POINTWISE, 2000, patch, command=(*GIVEN, "--patch", "2,1"))
    assert next_line(report) == f"{' '.join(GIVEN)}   # not tried yet"


def test_a_smaller_model_is_needed_once_all_was_tried() -> None:
    tried = Rung("lean", 5000, command="lean", searched=True)
    refused = Rung("more operators", command="more", remark="refused", searched=True)
    assert next_line(with_ladder(refused, tried)) == (
        f"no step below fits; the least is 5,000 B: {SMALLER}"
    )
    assert next_line(with_ladder(refused)) == (
        f"no further step is known that would fit: {SMALLER}"
    )
    hopeless = Rung("lean", 4000, command="lean", remark="cannot fit: the inputs", searched=True)
    streamed = Rung("rows streamed", 6000, command="stream", searched=True)
    assert next_line(with_ladder(hopeless, streamed)) == (
        f"no step below fits; the least is 6,000 B: {SMALLER}"
    ), "a figure that the ladder does not show"
    bound = replace(tried, searched=False, at_most=True)
    assert next_line(with_ladder(refused, bound)) == "lean   # not tried yet"


def test_a_step_for_the_arena_does_not_hide_a_file_that_is_too_large() -> None:
    board = api.load_target("nano33ble").board
    assert board is not None
    fitting = Rung("lean", 1000, command="lean", searched=True)
    assert next_line(with_ladder(fitting, board=board)) == "lean   # 1,000 B: fits"
    assert next_line(with_ladder(fitting, board=replace(board, flash=16))) == (
        "lean   # 1,000 B: fits (the arena; this file is larger than the flash)"
    )


def test_a_search_that_was_ended_proves_nothing() -> None:
    tried = Rung("lean", 5000, command="lean", searched=True)
    following = next_line(with_ladder(tried, stopped="time limit")) or ""
    assert SMALLER not in following and "let it run to its end" in following


def test_what_fits_more_slowly_is_offered() -> None:
    points = (
        ParetoPoint("stock", 9000, 1.0),
        ParetoPoint("slower", 1900, 1.4, command="slow"),
        ParetoPoint("slower", 1800, 1.6, command="slower"),
        ParetoPoint("slower", 2100, 1.2, command="too large"),
    )
    front = ParetoFront("arena", 1.1, points)
    tried = Rung("lean", 5000, command="lean", searched=True)
    assert next_line(with_ladder(tried, front=front)) == (
        "slow   # 1,900 B: fits, for +40.0 % instructions"
    )
