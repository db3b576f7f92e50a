"""The report's page in headless Chromium: skipped without Playwright or a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PUBLISHED
from tests.web.browsing import watched
from tflm_planner.pipeline import api
from tflm_planner.report.html import to_html

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "kws.html"
    planned = api.plan(PUBLISHED / "kws_ref_model.tflite", None, api.PlanOptions(verify=None))
    path.write_text(to_html(planned.report), "utf-8")
    return path


@pytest.fixture
def page(browser: Any, report_path: Path) -> Iterator[Any]:
    page = watched(browser.new_page(viewport={"width": 1280, "height": 900}))
    page.goto(report_path.as_uri())
    yield page
    assert page.faults == []
    page.close()


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
