"""What the report says became of each operator: of plans made here, operator by operator."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.conftest import published
from tests.models.small import bottleneck
from tests.report.report_samples import unbroken
from tests.short_searches import short_search
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning.by_hand import parse_regions
from tflm_planner.report.document import (
    MapStep,
    MemoryMap,
    OperatorTrial,
    ParetoFront,
    ParetoPoint,
)
from tflm_planner.report.html import to_html
from tflm_planner.report.json.document import to_json
from tflm_planner.report.operator_changes import OperatorChange, changes_of, operator_changes
from tflm_planner.transforms.tile.boxes import whole_name

LEFT_OUT = "left out: its result is a view of what lies there, or known ahead"


def changes(
    splits: list[str], loops: list[str] | None = None, name: str = "vww_96_int8"
) -> list[OperatorChange]:
    by_hand = parse_regions(None, splits, loops or [])
    tiles = (
        api.TilePermission(by_hand=by_hand, operators=api.AllowedOperators.ALL) if by_hand else None
    )
    report = api.plan(published(name), None, api.PlanOptions(tiles=tiles, verify=None)).report
    return list(operator_changes(report.before.map, report.after.map))


def test_every_operator_is_listed_with_its_live_bytes() -> None:
    found = changes([])
    assert [change.before.index for change in found] == list(range(31))
    assert [change.done for change in found] == [""] * 28 + [LEFT_OUT] + [""] * 2
    found.pop(28)  # the RESHAPE of one row for FULLY_CONNECTED
    assert all(change.live_after == change.after[0].live_bytes for change in found)
    peak = max(change.live_after or 0 for change in found)
    kept = [change.why for change in found if change.live_after == peak]
    assert kept
    assert all(why.startswith("at the peak") for why in kept)
    below = [change.why for change in found if (change.live_after or 0) < peak]
    assert set(below) == {"below the peak"}


def test_what_stays_at_the_peak_has_the_reason_of_the_run() -> None:
    """Not needed, not searched, cut short, bound by the inputs, or not found: one of these."""
    report = api.plan(published("kws_ref_model"), None, api.PlanOptions(verify=None)).report
    front = ParetoFront("arena", 1.1, ())
    small = replace(report.limits, input_bytes=16)
    large = replace(report.limits, input_bytes=report.after.head - 16)

    def reasons(**more) -> set[str]:
        found = {c.why for c in changes_of(replace(report, **more))} - {"", "below the peak"}
        return {why.removeprefix("at the peak: ") for why in found}

    assert reasons() == {"no tiles were searched for"}
    assert reasons(budget=1 << 20) == {"lower was not needed, as it fits"}
    assert reasons(front=front, limits=small) == {"lower was not found within +10 % instructions"}
    assert reasons(front=front, limits=small, stopped="time limit") == {
        "lower was not found before the search was ended"
    }
    (inputs,) = reasons(front=front, limits=large)
    assert f"the model's inputs alone take {large.input_bytes:,} of " in inputs


def test_parts_are_named() -> None:
    done = {change.before.index: change for change in changes(["2-4:rows=3"])}
    for index in (2, 3, 4):
        assert done[index].done.startswith("runs in 3 parts: h0:")
        assert done[index].why == ""
    assert done[5].done == ""


def test_loops_are_named() -> None:
    done = [change.done for change in changes([], ["2-4:rows=2"])]
    assert done[2:5] == ["runs in a loop, some rows a turn"] * 3
    assert done[5:] == [""] * 23 + [LEFT_OUT] + [""] * 2


def test_the_page_lists_them_and_the_commands_of_points() -> None:
    options = api.PlanOptions(tiles=api.TilePermission(spellings_only=True), verify=None)
    report = api.plan(published("vww_96_int8"), None, options).report
    page = to_html(report)
    body = page[page.index("What became of each operator") :]
    rows = re.findall(r"<tr[ >].*?</tr>", body[: body.index("</table>")], re.DOTALL)
    assert len(rows) == 1 + 31
    spelled = [row for row in rows if "spelled otherwise" in row]
    assert spelled
    assert all('class="kept"' in row for row in spelled)
    command = "tflm-plan vww_96_int8.tflite --search none"
    points = ParetoPoint("plan", 99, 1.0, command=command), ParetoPoint("chosen", 88, 1.0)
    with_front = to_html(replace(report, front=ParetoFront("arena", 1.1, points)))
    assert f'<td class="command"><code>{command}</code></td>' in unbroken(with_front)


def _step(index: int, operator: str, name: str, live: int = 16) -> MapStep:
    return MapStep(index, operator, name, 0, live, 0, 0, 0, 0, ())


def _map(*steps: MapStep) -> MemoryMap:
    return MemoryMap(steps, (), 64)


def test_what_is_gone_moved_or_another_is_said() -> None:
    before = _map(
        _step(0, "CONV_2D", "a"),
        _step(1, "CONV_2D", "b"),
        _step(2, "CONCATENATION", "c"),
        _step(3, "PAD", "d"),
        _step(4, "CONV_2D", "e"),
        _step(5, "RELU", "f"),
        _step(6, "ASSIGN_VARIABLE", ""),
    )
    after = _map(
        _step(0, "CONV_2D", "b"),
        _step(1, "CONV_2D", "a"),
        _step(2, "SLICE", "d"),
        _step(3, "CONV_2D", "e/rows"),
    )
    done = {change.before.name: change.done for change in operator_changes(before, after)}
    assert done == {
        "a": "runs at another time",
        "b": "runs at another time",
        "c": LEFT_OUT,
        "d": "is a SLICE now",
        "e": "spelled otherwise: the same sums by a kernel whose result may trail its operand",
        "f": "no operator makes a result of this name any more",
        "": "",
    }


def test_of_a_model_in_parts_already_nothing_is_told() -> None:
    parts = _map(_step(0, "CONV_2D", "a/h0:2"), _step(1, "CONV_2D", "a/h2:4"))
    assert {change.done for change in operator_changes(parts, parts)} == {""}


def test_the_page_says_of_each_operator_something() -> None:
    """Also of those without a result, or with one whose name others have."""
    report = api.plan(published("okay_nabu"), None, api.PlanOptions(verify=None)).report
    page = to_html(report)
    body = page[page.index("What became of each operator") :]
    told = re.findall(r'<td class="words">(.*?)</td>', body[: body.index("</table>")])
    assert len(told) == 55 and "" not in told
    assert told.count("not followed: it has no result") == 7


def test_names_that_are_not_the_only_ones_tell_nothing() -> None:
    before = _map(_step(0, "CONV_2D", "a"), _step(1, "CONV_2D", "a"))
    after = _map(_step(0, "CONV_2D", "a/h0:2"), _step(1, "CONV_2D", "a/h2:4"))
    changes = [*operator_changes(before, after)]
    assert len(changes) == 2
    for change in changes:
        assert (change.after, change.live_after, change.done, change.why) == ((), None, "", "")


@pytest.mark.parametrize(
    ("name", "whole"),
    [("a/b/h0:10", "a/b"), ("a/h0:10/h2:5/padded", "a"), ("a/c0:8,h1:2", "a"), ("x:0", "x:0")],
)
def test_the_tensor_behind_a_part(name: str, whole: str) -> None:
    assert whole_name(name) == whole


TRIED = {
    OperatorTrial("a", 8000, 1.05, True, True, ""): ("best tried: 8,000 B of arena, +5.0 %"),
    OperatorTrial("a", 70, 1.3, False, True, ""): ("best tried: 70 B of arena, +30.0 %, too slow"),
    OperatorTrial("a", None, None, False, True, ""): ("promised too little"),
    OperatorTrial("a", None, None, False, False, ""): ("no gain estimated"),
    OperatorTrial("a", None, None, False, None, ""): "not tried",
    OperatorTrial("a", 70, 1.0, True, True, "it stays whole"): "it stays whole",
}


@pytest.mark.parametrize("trial", TRIED)
def test_what_was_kept_says_what_was_tried(trial: OperatorTrial) -> None:
    steps = _map(_step(0, "CONV_2D", "a"), _step(1, "CONV_2D", "b", 32))
    report = api.plan(published("kws_ref_model"), None, api.PlanOptions(verify=None)).report
    report = replace(
        report,
        before=replace(report.before, map=steps),
        after=replace(report.after, map=steps),
        trials=(trial,),
        front=ParetoFront("arena", 1.1, ()),
    )
    first, second = changes_of(report)
    assert first.why == f"below the peak; {TRIED[trial]}"
    assert second.why.startswith("at the peak: ") and "tiles" not in second.why
    twice, _ = changes_of(replace(report, trials=(trial, trial)))  # two operators of one name
    assert twice.why == "below the peak"
    unsearched, _ = changes_of(replace(report, front=None))
    assert unsearched.why == "below the peak"


def test_a_search_says_of_each_operator_what_it_tried() -> None:
    budget = short_search(2_000)
    tiles = api.TilePermission(workers=1, search_budget=budget)
    report = api.plan(bottleneck(), None, api.PlanOptions(tiles=tiles, verify=None)).report
    names = [step.name for step in report.before.map.steps]
    assert [trial.name for trial in report.trials] == names
    assert [trial["name"] for trial in to_json(report)["trials"]] == names
    assert all(change.done or "; " in change.why for change in changes_of(report))
    assert api.plan(bottleneck(), None, api.PlanOptions(verify=None)).report.trials == ()
