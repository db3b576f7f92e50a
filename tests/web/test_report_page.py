"""The report's page in headless Chromium: skipped without Playwright or a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import published_path
from tests.short_searches import short_search
from tests.web.browsing import watched
from tflm_planner.pipeline import api
from tflm_planner.report.document import Report
from tflm_planner.report.html import to_html

pytestmark = pytest.mark.slow


MODELS = {
    "kws_ref_model": "cortex-m4/cmsis-nn",
    "pretrainedResnet_quant": "cortex-m4/cmsis-nn",
    "okay_nabu": "esp32s3/esp-nn-1.2.3",
}
"""A chain, skips, and a model of streams with states."""
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PAPER = {"width": 718, "height": 1000}
"""A4 within the margins of a browser."""
FEW = short_search(1_500)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Report]]:
    """Each model's page, and the report that it shows: of a plan with some tiles."""
    folder = tmp_path_factory.mktemp("report")
    made: dict[str, tuple[Path, Report]] = {}
    for name, target in MODELS.items():
        memory = api.MemoryOptions(kernels=api.kernels_of(api.load_target(target)))
        tiles = (
            None if name == "kws_ref_model" else api.TilePermission(workers=1, search_budget=FEW)
        )
        options = api.PlanOptions(memory, tiles, verify=None)
        report = api.plan(published_path(name), None, options).report
        path = folder / f"{name}.html"
        path.write_text(to_html(report), "utf-8")
        made[name] = path, report
    return made


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    page = watched(browser.new_page(viewport=DESK))
    yield page
    assert page.faults == []
    page.close()


@pytest.fixture
def page(opened: Any, reports: dict[str, tuple[Path, Report]]) -> Any:
    opened.goto(reports["kws_ref_model"][0].as_uri())
    return opened


@pytest.fixture(params=sorted(MODELS))
def shown(request: Any, opened: Any, reports: dict[str, tuple[Path, Report]]) -> Any:
    """A page of each model in turn, and the report that it shows."""
    path, report = reports[request.param]
    opened.goto(path.as_uri())
    return opened, report


def _lightness(page: Any, selector: str, what: str) -> float:
    """From 0 for black to 1 for white: a colour of the first such element."""
    colour = page.locator(selector).first.evaluate("(e, what) => getComputedStyle(e)[what]", what)
    return sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3]) / (3 * 255)


def test_each_report_shows_its_maps_and_operators(shown: Any) -> None:
    page, report = shown
    drawn = page.locator(".desk svg.tfm")
    sides = (("before", report.before), ("after", report.after))
    for plot, (side, figures) in zip(drawn.locator(".plot").all(), sides, strict=True):
        assert plot.get_attribute("data-side") == side
        assert int(plot.get_attribute("data-steps")) >= len(figures.map.steps)
    blocks = sum(len(figures.map.blocks) for _, figures in sides)
    assert drawn.locator("rect.b").count() == blocks
    own = [step for step in report.before.map.steps if step.graph == 0]
    assert page.locator("table.changes tbody tr").count() == len(own)
    for side, figures in sides:
        rows = page.locator(f"table.operators[data-side={side}] tbody tr")
        assert rows.count() == len(figures.map.steps)


def test_every_operator_can_be_picked(shown: Any) -> None:
    """By the keys, to the last operator of the result; the readout names it."""
    page, report = shown
    page.focus(".desk svg.tfm")
    readout = page.locator(".readout >> nth=0")
    for step in report.after.map.steps:
        page.keyboard.press("ArrowRight")
        said = readout.locator("b").inner_text()
        assert said.startswith(f"operator {step.index}, {step.operator}")
    page.keyboard.press("Escape")


def test_after_lies_below_before_on_a_phone(shown: Any) -> None:
    """Both maps within the screen, and no other picture of them; beside each other on a desk."""
    page, _ = shown
    page.set_viewport_size(PHONE)
    assert page.locator("svg.tfm:visible").count() == 1
    before, after = (p.bounding_box() for p in page.locator(".phone svg.tfm .plot").all())
    assert before["x"] == after["x"] and after["y"] > before["y"] + before["height"]
    assert before["x"] + before["width"] <= PHONE["width"]
    assert page.locator(".readout:visible").count() == 1
    page.set_viewport_size(DESK)
    before, after = (p.bounding_box() for p in page.locator(".desk svg.tfm .plot").all())
    assert before["y"] == after["y"] and page.locator(".phone:visible").count() == 0


SCROLLED = """() => [...document.querySelectorAll(".picture, .wide, pre")]
    .filter((box) => box.offsetParent && box.scrollWidth > box.clientWidth + 1)
    .map((box) => box.closest("details")?.querySelector("summary").textContent ?? box.outerHTML)"""


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_nothing_but_large_maps_on_a_phone_scrolls_to_the_side(shown: Any, size: Any) -> None:
    """What is folded neither; the large maps say it."""
    page, _ = shown
    page.set_viewport_size(size)
    page.locator("details").evaluate_all("all => all.map(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    large = ["Memory map before, large", "Memory map after, large"] if size == PHONE else []
    assert page.evaluate(SCROLLED) == large
    for picture in page.locator("details .picture").all() if size == PHONE else ():
        cue = picture.evaluate("e => getComputedStyle(e, '::before').content")
        assert "swipe" in cue


def test_the_words_of_a_command_stay_whole(shown: Any) -> None:
    """No line ends within an option, and what is copied is the command."""
    page, report = shown
    page.set_viewport_size(PHONE)
    commands = [rung.command for rung in report.ladder if rung.command and not rung.remark]
    written = page.locator("td.command code").all_text_contents()
    assert commands and set(commands) <= set(written)
    lines = "words => words.map(word => word.getClientRects().length)"
    assert set(page.locator("td.command span").evaluate_all(lines)) == {1}


def test_the_arenas_are_seen_whole_on_a_phone(shown: Any) -> None:
    """All words of the bars, the limit's among them, without scrolling to the side."""
    page, _ = shown
    page.set_viewport_size(PHONE)
    assert page.locator("svg.tfa:visible").count() == 1
    for words in page.locator("svg.tfa:visible text").all():
        box = words.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]


def test_what_became_of_an_operator_is_read_on_a_phone(shown: Any) -> None:
    page, _ = shown
    page.set_viewport_size(PHONE)
    table = page.locator(".wide:has(table.changes)")
    assert table.locator("td.words").first.evaluate("e => e.offsetWidth") in (0, *range(200, 390))
    page.locator("details:has(table.changes)").evaluate_all("all => all.map(d => d.open = true)")
    for words in page.locator("table.changes td:last-child").all()[:12]:
        box = words.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]


def test_paper_is_white_and_shows_what_is_folded(shown: Any) -> None:
    page, _ = shown
    page.emulate_media(color_scheme="dark")
    assert _lightness(page, "body", "backgroundColor") < 0.2
    page.emulate_media(color_scheme="dark", media="print")
    page.set_viewport_size(PAPER)
    assert _lightness(page, "body", "backgroundColor") == 1
    assert _lightness(page, "body", "color") < 0.2
    for drawing in (".desk svg.tfm", "svg.tff"):
        for one in page.locator(drawing).all():
            assert _lightness(one, ".bg", "fill") == 1 and _lightness(one, ".h1", "fill") < 0.2
    assert page.locator("details:not([open])").count() >= 5
    assert page.locator("details svg.tfm:visible").count() == 2
    assert page.locator("table.operators:visible").count() == 2
    assert page.locator(".phone, .filter, .copy, .readout").locator("visible=true").count() == 0
    assert page.locator("table.changes thead").inner_text().split()[:2] == ["#", "operator"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER["width"]


def test_an_operator_is_picked_in_one_map_at_a_time(page: Any) -> None:
    before, after = page.locator("svg.tfm >> nth=0 >> .plot").all()
    readout = page.locator(".readout >> nth=0")
    assert "Click an operator" in readout.inner_text()
    before.click(position={"x": 3, "y": 5})
    assert readout.locator("b").inner_text().startswith("operator 0, ")
    assert before.evaluate("plot => plot.nextElementSibling.classList.contains('band')")
    after.click(position={"x": 3, "y": 5})
    assert page.locator("svg.tfm .band").count() == 1
    after.click(position={"x": 3, "y": 5})
    assert page.locator("svg.tfm .band, svg.tfm .dim").count() == 0
    assert "Click an operator" in readout.inner_text()


def test_arrow_keys_go_through_operators_and_buffers(page: Any) -> None:
    page.focus("svg.tfm >> nth=0")
    readout = page.locator(".readout >> nth=0")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert readout.locator("b").inner_text().startswith("operator 2, ")
    lives = readout.locator("li").count()
    assert lives >= 2
    offsets = []
    for _ in range(lives):
        page.keyboard.press("ArrowDown")
        picked = readout.locator("li.on").inner_text()
        offsets.append(int(picked.split("offset ")[1].split(" to ")[0].replace(",", "")))
        assert page.locator("svg.tfm .b.on").count() == 1
    assert offsets == sorted(offsets, reverse=True) and offsets[-1] == 0
    page.keyboard.press("Escape")
    assert page.locator("svg.tfm .b.on, svg.tfm .b.dim").count() == 0


def test_tables_are_sorted_and_filtered(page: Any) -> None:
    table = page.locator("table.changes")
    live = "rows => rows.map(row => Number(row.cells[3].textContent.replaceAll(',', '')))"
    table.locator("button.sort", has_text="live before").click()
    sizes = table.locator("tbody tr").evaluate_all(live)
    assert sizes == sorted(sizes)
    page.locator("input.filter >> nth=0").fill("depthwise")
    shown = table.locator("tbody tr:visible")
    assert 0 < shown.count() < len(sizes)
    assert all("DEPTHWISE" in words for words in shown.all_inner_texts())


def test_the_filter_finds_what_is_shown_shortened(page: Any) -> None:
    table = page.locator("table.changes")
    cell = table.locator("td[title]").first
    name, shown = cell.get_attribute("title"), cell.inner_text()
    hidden = name[len(name) // 2 - 5 : len(name) // 2 + 5]
    assert hidden not in shown
    page.locator("input.filter >> nth=0").fill(hidden)
    assert shown in table.locator("tbody tr:visible").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_as_wide_as_a_phone(page: Any, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_no_word_of_a_row_title_is_broken_on_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    broken = page.locator("tbody th:visible").evaluate_all(
        """titles => titles.flatMap(title => {
          const broken = [];
          for (const word of title.firstChild.data.matchAll(/\\w+/g)) {
            const range = document.createRange();
            range.setStart(title.firstChild, word.index);
            range.setEnd(title.firstChild, word.index + word[0].length);
            if (range.getClientRects().length > 1) broken.push(word[0]);
          }
          return broken;
        })"""
    )
    assert broken == []
