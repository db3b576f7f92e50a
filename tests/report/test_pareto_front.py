"""Memory against instructions: which points there are, and how they are shown."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from tests.models.small import narrow_rows
from tests.report.report_samples import HOSTILE
from tests.short_searches import short_search
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning.pareto import front_of_search, with_stock
from tflm_planner.report.csv_document import to_csv
from tflm_planner.report.document import ParetoFront, ParetoPoint, Report
from tflm_planner.report.html import to_html
from tflm_planner.report.json.document import to_json
from tflm_planner.report.svg.pareto import pareto_svg
from tflm_planner.report.text.pareto import front_rows, point_words, shown_points
from tflm_planner.report.text.report import render_report
from tflm_planner.tiling.tilings import Tiling, TilingResult, pareto_fronts, slower_front
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

pytestmark = pytest.mark.slow

SCHEMA = json.loads((Path(__file__).parents[2] / "schema" / "report.schema.json").read_text())


def tiling(size: int, slowdown: float, *added: str) -> Tiling:
    return Tiling(
        (TiledRegion((0,), (Split(1, size),)),),
        size,
        slowdown,
        None,
        bind_views=True,
        new_kinds=added,
    )


@pytest.fixture
def front() -> ParetoFront:
    points = (
        ParetoPoint("stock", 100_712, 1.0),
        ParetoPoint("plan", 82_280, 1.0),
        ParetoPoint("tiled", 60_772, 1.007, (), 2),
        ParetoPoint("tiled", 57_864, 1.009, ("GATHER", "WHILE"), 1, 1),
        ParetoPoint("chosen", 57_032, 1.043, (HOSTILE,), 0, 1),
        ParetoPoint("slower", 52_100, 1.21, ("WHILE",), 0, 2),
    )
    return ParetoFront("arena", 1.10, points)


# --- which points -------------------------------------------------------------------------------


def test_more_operators_never_hide_what_the_firmware_can_do() -> None:
    own, more = tiling(58, 1.02), tiling(57, 1.01, "WHILE")
    beaten, worse = tiling(59, 1.03), tiling(60, 1.04, "WHILE")
    assert pareto_fronts([worse, beaten, own, more]) == (more, own)


def test_slower_ones_are_smaller_and_not_absurd() -> None:
    front = (tiling(50, 1.05),)
    kept = tiling(40, 1.3)
    others = [tiling(60, 1.2), tiling(30, 1.6), tiling(41, 1.4)]
    assert slower_front(front, [kept, *others]) == (kept,)


def test_the_final_plan_beats_trials_that_it_is_better_than() -> None:
    chosen, small, fast = tiling(57, 1.04), tiling(56, 1.06), tiling(70, 1.01)
    found = TilingResult(chosen, (small, chosen, fast), 9, (tiling(40, 1.3),))
    front = with_stock(front_of_search(found, "arena", 1.1, 82, chosen, 55, 1.04), 100, "exact")
    assert [(p.role, p.size) for p in front.points] == [
        ("stock", 100), ("plan", 82), ("tiled", 70), ("chosen", 55), ("slower", 40),
    ]  # fmt: skip


def test_without_tiles_the_plan_is_what_was_chosen() -> None:
    found = TilingResult(tiling(90, 1.0), (), 3)
    (only,) = front_of_search(found, "head", 1.1, 82, None, 82).points
    assert (only.role, only.size, only.slowdown) == ("chosen", 82, 1.0)


def test_a_search_fills_it_in() -> None:
    few = short_search(1_500)
    tiles = api.TilePermission(
        max_slowdown=1.05, operators=api.AllowedOperators.ALL, workers=1, search_budget=few
    )
    memory = api.MemoryOptions()
    report = api.plan(narrow_rows(), None, api.PlanOptions(memory, tiles, verify=None)).report
    assert report.front is not None
    points = report.front.points
    by_role = {p.role: p for p in points}
    assert by_role.keys() == {"stock", "plan", "tiled", "chosen", "slower"}
    assert by_role["stock"].size == report.before.arena.arena
    assert by_role["chosen"].size == report.after.arena.arena
    assert [p.size for p in points] == sorted((p.size for p in points), reverse=True)
    for p in points:
        assert (p.slowdown > 1.05) == (p.role == "slower")
        assert (p.tiles + p.loops > 0) == (p.role in ("tiled", "slower") or p.slowdown > 1)
    jsonschema.Draft202012Validator(SCHEMA).validate(to_json(report))


# --- how they are shown -------------------------------------------------------------------------


def test_a_picture_is_sound_and_tells_all(front: ParetoFront) -> None:
    text = pareto_svg(front, inputs=27_648, arena_limit=62_000, title=HOSTILE)
    tree = ElementTree.fromstring(text)
    circles = tree.findall(
        ".//{http://www.w3.org/2000/svg}circle[{http://www.w3.org/2000/svg}title]"
    )
    assert len(circles) == len(front.points)
    for words in (
        "57,032 B",
        "budget 62,000 B",
        "27,648 B",
        "allowed: +10 %",
        "slower than allowed",
    ):
        assert words in text
    assert "<img" not in text and "\x1b" not in text
    heights = [float(c.attrib["cy"]) for c in circles]
    lefts = [float(c.attrib["cx"]) for c in circles]
    by_size = sorted(zip(front.points, heights, lefts, strict=False), key=lambda r: -r[1])
    assert len(by_size) == len(front.points)
    assert max(heights) < 420 - 62 and min(heights) > 58
    assert all(66 <= x <= 960 for x in lefts)


@pytest.mark.parametrize("budget", range(50_000, 104_000, 500))
def test_the_words_of_the_budget_lie_on_no_others(front: ParetoFront, budget: int) -> None:
    tree = ElementTree.fromstring(
        pareto_svg(front, inputs=27_648, arena_limit=budget, title="Arena")
    )
    (words,) = (text for text in tree.iter(SVG_TEXT) if text.attrib.get("class") == "cap")
    for other in tree.iter(SVG_TEXT):
        if other.attrib.get("class") in ("lab", "was", "now", "far"):
            (a, b, y), (c, d, z) = _span(words), _span(other)
            assert abs(y - z) > 12 or b < c or d < a, other.text


@pytest.mark.parametrize("budget", [20_000, 26_000, 28_000, 30_720, *range(50_000, 104_000, 3_000)])
def test_a_phone_sees_all_words_and_none_on_others(front: ParetoFront, budget: int) -> None:
    drawn = pareto_svg(front, inputs=27_648, arena_limit=budget, title="Arena", width=360)
    tree = ElementTree.fromstring(drawn)
    assert tree.attrib["width"] == "360"
    words = [text for text in tree.iter(SVG_TEXT) if text.text]
    for text in words:
        left, right, base = _span(text)
        assert left >= 0 and right <= 360 and base < float(tree.attrib["height"]), text.text
    for one, other in combinations(words, 2):
        (a, b, y), (c, d, z) = _span(one), _span(other)
        assert abs(y - z) > 10 or b < c or d < a, (one.text, other.text)


SVG_TEXT = "{http://www.w3.org/2000/svg}text"


def _span(text: ElementTree.Element) -> tuple[float, float, float]:
    """From where to where words reach, and their base line; characters of 6.5 pixels."""
    x, wide = float(text.attrib["x"]), 6.5 * len(text.text or "")
    left = x - wide * {"end": 1, "middle": 0.5}.get(text.attrib.get("text-anchor", ""), 0)
    return left, left + wide, float(text.attrib["y"])


@pytest.mark.parametrize("kept", [1, 2, 3, 6])
def test_any_part_of_it_can_be_drawn(front: ParetoFront, kept: int) -> None:
    for allowed in (1.0, 1.1, 40.0):
        part = ParetoFront("head", allowed, front.points[:kept])
        ElementTree.fromstring(pareto_svg(part, inputs=0, arena_limit=None, title="t"))


def test_the_terminal_shows_a_line_each(report: Report, front: ParetoFront) -> None:
    text = render_report(replace(report, front=front))
    (line,) = [x for x in text.splitlines() if "this file" in x]
    assert "57,032 B" in line and "+4.3 %" in line and "1 in a loop" in line
    assert all(len(x) <= 100 for x in text.splitlines())
    assert "#####" in "".join(t for _, t in front_rows(front, "ascii"))
    assert list(front_rows(None, "utf-8")) == []


def test_points_without_tiles_are_plans_or_spellings() -> None:
    assert point_words(ParetoPoint("plan", 9, 1.0)) == "order and plan"
    assert point_words(ParetoPoint("chosen", 9, 1.0)) == "this file: order and plan"
    assert point_words(ParetoPoint("tiled", 9, 0.98)) == "other spellings"
    assert point_words(ParetoPoint("chosen", 9, 1.02)) == "this file: other spellings"


def test_long_fronts_are_thinned_but_keep_their_names(front: ParetoFront) -> None:
    many = tuple(ParetoPoint("tiled", 80_000 - i, 1 + i / 1e4) for i in range(50))
    shown = shown_points(replace(front, points=(*front.points[:2], *many, front.points[4])), 9)
    assert len(shown) == 9
    assert {"stock", "plan", "chosen"} <= {p.role for p in shown}
    assert many[0] in shown and many[-1] in shown


def test_json_html_and_csv_have_it(report: Report, front: ParetoFront) -> None:
    full = replace(report, front=front)
    document = to_json(full)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert [p["bytes"] for p in document["front"]["points"]] == [p.size for p in front.points]
    page = to_html(full)
    assert "Memory against instructions" in page and "<img" not in page
    assert "Memory against instructions" not in to_html(report)
    rows = [r for r in csv.DictReader(io.StringIO(to_csv(full))) if r["side"] == "front"]
    assert [int(r["live_bytes"]) for r in rows] == [p.size for p in front.points]
    assert [r["peak"] for r in rows] == list("000010")
    assert rows[3]["name"] == "GATHER WHILE" and rows[3]["slowdown"] == "1.0090"
