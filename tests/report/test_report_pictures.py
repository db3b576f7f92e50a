from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from jinja2 import UndefinedError

from tests.report.report_samples import HOSTILE, chain, with_solution
from tflm_planner.report.document import MapBlock, MemoryMap, Report
from tflm_planner.report.html import to_html
from tflm_planner.report.page import SCRIPTS, render
from tflm_planner.report.svg.arena import ArenaBar, Limit, arena_parts, arena_svg
from tflm_planner.report.svg.map_panel import NAMED_BLOCKS
from tflm_planner.report.svg.memory_map import (
    before_above_after_svg,
    before_after_svg,
    memory_map_svg,
)
from tflm_planner.tflm.arena.predict import Arena

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "img", "br", "link", "input"}
SCRIPT = "".join(
    files("tflm_planner.report").joinpath("templates", name).read_text("utf-8") for name in SCRIPTS
)


def rectangles(svg: str) -> dict[str, tuple[float, float, float, float]]:
    """First line of the hover text -> left, top, width, height."""
    found = {}
    for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None and title.text:
            x, y, w, h = (float(rect.attrib[k]) for k in ("x", "y", "width", "height"))
            found[title.text.split("\n")[0]] = (x, y, w, h)
    return found


def texts(svg: str) -> list[str]:
    return [t.text or "" for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


class Page(HTMLParser):
    """Checks that tags are balanced, and remembers tags, attributes and texts; and scripts, of
    which there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            assert not attrs
            self.scripts.append("")
        else:
            self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.scripts[-1] += data
        else:
            self.text.append(data)


def parse(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert not page.open
    assert page.scripts == [SCRIPT]
    return page


def test_rectangles_lie_where_the_plan_says(before: MemoryMap) -> None:
    found = rectangles(memory_map_svg(before, title="before"))
    assert len(found) == len(before.blocks)
    bottom = max(y + h for _, y, _, h in found.values())
    left = min(x for x, *_ in found.values())
    tall = found["block/0"][3] / before.blocks[0].size
    wide = found["block/1"][2] / 2
    for block in before.blocks:
        x, y, w, h = found[block.name]
        assert h == pytest.approx(max(0.5, block.size * tall), abs=0.2)
        assert bottom - y - h == pytest.approx(block.offset * tall, abs=0.4)
        assert x - left == pytest.approx(block.start * wide, abs=0.4)
        assert w == pytest.approx((block.end - block.start) * wide, abs=0.2)


def test_both_maps_have_one_scale(before: MemoryMap, after: MemoryMap) -> None:
    alone = rectangles(memory_map_svg(after, title="a"))["block/3"][3]
    scaled = rectangles(memory_map_svg(after, title="a", scale=before.head))["block/3"][3]
    assert scaled / alone == pytest.approx(after.head / before.head, abs=0.01)
    svg = before_after_svg(before, after, title="t")
    heights = [
        float(rect.attrib["height"])
        for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
        and (title.text or "").startswith("block/3\n")
    ]
    assert len(heights) == 2 and heights[0] == heights[1]


def test_maps_for_a_phone_lie_one_above_the_other(before: MemoryMap, after: MemoryMap) -> None:
    """Within 420 pixels, on one scale, with the same words, the legend in rows."""
    svg = before_above_after_svg(before, after, title="t")
    root = ElementTree.fromstring(svg)
    plots = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "plot"]
    (left, top, width, height), below = (
        [float(plot.attrib[key]) for key in ("x", "y", "width", "height")] for plot in plots
    )
    assert below[:1] + below[2:] == [left, width, height]
    assert below[1] > top + height and left + width <= 420 == float(root.attrib["width"])
    last = max(float(t.attrib["y"]) for t in root.iter(f"{SVG}text"))
    assert below[1] + height < last < float(root.attrib["height"])
    beside = texts(before_after_svg(before, after, title="t"))
    for word in ("63.0 KiB", "54.0 KiB", "9,216 bytes saved", "activation", "peak"):
        assert word in texts(svg) and word in beside
    both = {
        re.findall(r'pattern id="([^"]+)"', one)[0]
        for one in (svg, before_after_svg(before, after, title="t"))
    }
    assert len(both) == 2  # on one page, and one of them hidden


def test_pictures_have_the_dark_scheme_on_screens_alone(report: Report) -> None:
    """What is printed is dark on white, whatever the screen shows."""
    page = to_html(report)
    assert page.count("prefers-color-scheme:dark") >= 4
    assert page.count("prefers-color-scheme:dark") == page.count(
        "@media screen and (prefers-color-scheme:dark)"
    )


def test_a_taller_picture_has_taller_rectangles(before: MemoryMap) -> None:
    heights = [
        rectangles(memory_map_svg(before, title="t", height=h))["block/3"][3]
        for h in (200, 300, 400, 800)
    ]
    assert heights == sorted(set(heights))


def test_before_and_after_say_the_saving(before: MemoryMap, after: MemoryMap) -> None:
    words = texts(before_after_svg(before, after, title="vww"))
    for word in ("vww", "63.0 KiB", "54.0 KiB", "\N{MINUS SIGN}14.3 %", "9,216 bytes saved"):
        assert word in words
    assert "same head" in texts(before_after_svg(before, before, title="vww"))
    grown = texts(before_after_svg(after, before, title="vww"))
    assert "+16.7 %" in grown and not any("saved" in word for word in grown)


def test_the_hover_text_tells_all(before: MemoryMap) -> None:
    svg = memory_map_svg(before, title="t")
    assert "block/3\nactivation, 36,864 B (36.0 KiB)\noffset 0 to 36,864\n" in svg
    assert "operators 2 CONV_2D to 3 DEPTHWISE_CONV_2D" in svg
    assert "peak: 55,296 B (54.0 KiB) live at 2 CONV_2D" in svg


def test_shared_bytes_are_hatched(before: MemoryMap) -> None:
    assert "shared bytes" not in texts(memory_map_svg(before, title="t"))
    moved = replace(before.blocks[1], offset=before.blocks[0].size - 16)
    shared = replace(before, blocks=(before.blocks[0], moved))
    svg = memory_map_svg(shared, title="t")
    assert "shared bytes" in texts(svg)
    pattern = ElementTree.fromstring(svg).find(f".//{SVG}pattern")
    assert pattern is not None and f"url(#{pattern.attrib['id']})" in svg


def test_axis_labels_do_not_touch() -> None:
    for operators in (1, 2, 7, 30, 99, 1234):
        for head in (16, 1000, 65536, 3 << 20):
            big = chain([head] * (operators + 1), head, [0] * (operators + 1))
            root = ElementTree.fromstring(memory_map_svg(big, title="t"))
            ticks = [
                (float(t.attrib["x"]), len(t.text or "") * 7)
                for t in root.iter(f"{SVG}text")
                if t.attrib.get("text-anchor") == "middle" and t.attrib.get("class") is None
            ]
            assert ticks
            for (a, wa), (b, wb) in pairwise(ticks):
                assert b - a > (wa + wb) / 2


def test_hostile_names_stay_text(hostile: Report) -> None:
    for svg in (
        memory_map_svg(hostile.before.map, title=HOSTILE),
        before_after_svg(hostile.before.map, hostile.after.map, title=HOSTILE),
    ):
        root = ElementTree.fromstring(svg)
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "style", "defs", "pattern", "rect", "path", "line", "text", "title"}
        assert not any(k.startswith("on") for element in root.iter() for k in element.attrib)
        svg.encode("utf-8")


def test_labels_stand_beside_the_hatching(before: MemoryMap) -> None:
    """A long block whose first half is shared with another has its label in the second half."""
    steps = before.steps * 4
    long = MapBlock("long", "activation", 4096, 0, 0, 24)
    other = MapBlock("other", "activation", 4096, 0, 0, 12)
    svg = memory_map_svg(MemoryMap(steps, (long, other), 4096), title="t")
    root = ElementTree.fromstring(svg)
    shared = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "shr"]
    hatched = max(shared, key=lambda r: float(r.attrib["width"]))  # not that of the legend
    right = float(hatched.attrib["x"]) + float(hatched.attrib["width"])
    labels = [t for t in root.iter(f"{SVG}text") if t.get("class") == "lab"]
    assert labels and all(float(t.attrib["x"]) > right for t in labels)


def test_tiles_let_their_parents_show(before: MemoryMap) -> None:
    parent = MapBlock("parent", "input", 4096, 0, 0, 5)
    tile = MapBlock("tile", "activation", 1024, 512, 1, 3)
    later = MapBlock("later", "activation", 1024, 512, 5, 6)
    svg = memory_map_svg(MemoryMap(before.steps, (parent, tile, later), 4096), title="t")
    styles = {
        (title.text or "").split("\n")[0]: rect.attrib["class"].split()
        for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
    }
    assert {name for name, style in styles.items() if "view" in style} == {"tile"}


def test_a_page_finds_operators_and_life_spans(report: Report) -> None:
    """What page.js reads: the plots of both sides, life spans, and rows of the same operators."""
    page = parse(to_html(report))
    given = [value for key, value in page.attributes if key == "data-side"]
    assert given.count("before") == given.count("after") == 4  # three pictures and a table
    steps = {value for key, value in page.attributes if key == "data-steps"}
    assert steps == {str(len(report.after.map.steps))}
    lives = [value for key, value in page.attributes if key == "data-end"]
    assert len(lives) == 3 * sum(len(s.map.blocks) for s in (report.before, report.after))


def test_the_parts_of_an_arena_add_up() -> None:
    tail = {"eval_tensors": 500, "op_prepare": 300, "fixed": 100, "plan": 0}
    small = Arena(1000, 900, tail, 0, 0, 0, 0, 1904, 15, (), ())
    assert arena_parts(small) == {"head": 1000, "eval_tensors": 500, "op_prepare": 300, "rest": 104}
    temporary = replace(small, arena=2500)
    assert arena_parts(temporary)["temporary"] == 600
    for arena in (small, temporary):
        assert sum(arena_parts(arena).values()) == arena.arena


@pytest.mark.parametrize("limit", [None, Limit(262_144, "of SRAM"), Limit(100, "allowed")])
def test_arenas_are_drawn_on_one_scale(limit: Limit | None) -> None:
    tail = {"eval_tensors": 5000, "op_prepare": 3000, "nodes": 2000}
    large = Arena(90_000, 10_000, tail, 0, 0, 0, 0, 100_000, 15, (), ())
    half = replace(large, head=40_000, arena=50_000)
    drawn = arena_svg([ArenaBar(HOSTILE, large), ArenaBar("after", half)], title="t", limit=limit)
    root = ElementTree.fromstring(drawn)
    wide = {}
    for rect in root.iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None:
            wide.setdefault(rect.attrib["y"], []).append(float(rect.attrib["width"]))
    first, second = (sum(widths) for widths in wide.values())
    assert first / second == pytest.approx(2, abs=0.01)
    assert any("of SRAM" in word or "allowed" in word for word in texts(drawn)) is bool(limit)
    assert all(float(line.attrib["x1"]) <= 980.1 for line in root.iter(f"{SVG}line"))
    drawn.encode("utf-8")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.6, 0.95, 1])
@pytest.mark.parametrize("width", [360, 1000])
def test_the_words_of_a_limit_stay_in_the_drawing(width: int, share: float) -> None:
    arena = Arena(900_000, 100_000, {}, 0, 0, 0, 0, 1_000_000, 15, (), ())
    limit = Limit(int(share * 1_000_000), "of SRAM")
    drawn = arena_svg([ArenaBar("before", arena)], title="t", limit=limit, width=width)
    (words,) = ElementTree.fromstring(drawn).findall(f"{SVG}text[@class='limitt']")
    x, wide = float(words.attrib["x"]), 6.6 * len(words.text or "")
    left = x - wide if words.attrib.get("text-anchor") == "end" else x
    assert left >= 0 and left + wide <= width


@pytest.mark.parametrize("share", range(5, 100, 5))
@pytest.mark.parametrize("width", [360, 1000])
def test_the_line_of_a_limit_crosses_no_size(width: int, share: int) -> None:
    arena = Arena(900_000, 100_000, {}, 0, 0, 0, 0, 1_000_000, 15, (), ())
    limit = Limit(share * 10_000, "of SRAM")
    drawn = arena_svg([ArenaBar("before", arena)], title="t", limit=limit, width=width)
    root = ElementTree.fromstring(drawn)
    (line,) = root.findall(f"{SVG}line")
    sizes = root.findall(f"{SVG}text[@class='lab']")
    assert any(size.text == "878.9K" for size in sizes)
    for size in sizes:
        half = 6.6 * len(size.text or "") / 2
        assert abs(float(size.attrib["x"]) - float(line.attrib["x1"])) > half


def test_empty_maps_can_be_drawn() -> None:
    empty = MemoryMap((), (), 0)
    ElementTree.fromstring(memory_map_svg(empty, title=""))
    ElementTree.fromstring(before_after_svg(empty, empty, title=""))


def test_ten_thousand_blocks_stay_reasonable() -> None:
    n = 10_000
    big = chain([16 * (1 + i % 97) for i in range(n + 1)], 4096, [0, 2048] * (n // 2) + [0])
    svg = before_after_svg(big, big, title="big")
    assert len(svg) < 1_500_000
    assert svg.count("<title>") == 2 * (NAMED_BLOCKS + 1)


def test_the_page_is_whole_and_needs_nothing(report: Report) -> None:
    html = to_html(report)
    page = parse(html)
    assert page.tags.isdisjoint({"link", "img", "iframe", "object", "form"})
    assert not any(k in ("src", "href") or k.startswith("on") for k, _ in page.attributes)
    contents = [value or "" for key, value in page.attributes if key == "content"]
    (policy,) = (value for value in contents if value.startswith("default-src 'none'"))
    digest = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    assert "prefers-color-scheme" in html
    text = " ".join(page.text)
    for words in (
        "63.0 KiB",
        "54.0 KiB",
        "9,216 B",
        "LiteRT",
        "equal on 64 inputs",
        "not reordered: the graph is a chain",
        "block/3 in block/2",
        "FITS in 90,000 B",
        "L3 overlap",
        "ab" * 32,
        "6 operators before",
    ):
        assert words in text


def test_the_page_escapes_hostile_names(hostile: Report) -> None:
    html = to_html(hostile)
    page = parse(html)
    assert page.tags.isdisjoint({"img"})
    assert not any(k.startswith("on") for k, _ in page.attributes)
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;\\x1b[31m" in html
    assert all(c == "\n" or c.isprintable() for c in html)
    html.encode("utf-8")


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"onload=x&amp;', "'&<u>", "{{ 7 * 7 }}"]
)
def test_names_of_files_and_tensors_come_out_escaped(report: Report, name: str) -> None:
    braces = name.replace("{", "{{").replace("}", "}}")
    named = chain([64, 64, 16], 128, [0, 64, 0], braces + "{}")
    side = replace(report.after, map=named)
    html = to_html(replace(report, source=name, destination=name, notes=(name,), after=side))
    page = parse(html)
    assert name in page.text and f"{name}0" in page.text
    assert page.tags.isdisjoint({"u"})
    assert not any(key == "onload" for key, _ in page.attributes)


def test_templates_use_nothing_that_was_not_given() -> None:
    with pytest.raises(UndefinedError):
        render("tables.html", title="t", heading="h", tables=[])


def test_ids_in_the_page_are_unique(report: Report) -> None:
    ids = [value for key, value in parse(to_html(report)).attributes if key == "id"]
    assert ids and len(ids) == len(set(ids))


def test_a_missed_budget_and_a_gap_are_told(report: Report) -> None:
    missed = replace(with_solution(report, optimal=False, lower_bound=50_000), budget=1)
    text = " ".join(parse(to_html(missed)).text)
    assert "DOES NOT FIT in 1 B" in text and "10.6 % above" in text


def test_renderings_repeat_exactly(report: Report) -> None:
    assert to_html(report) == to_html(report)
