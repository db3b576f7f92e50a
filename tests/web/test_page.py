"""The page in headless Chromium: skipped without Playwright, a browser, or the page itself.

    pip install '.[web]' && python web/build.py PAGE && WEB_PAGE=PAGE python -m pytest tests/web

One page serves all tests, because Python takes seconds to load.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import CNN, ROOT, published_path
from tests.models.small import mystery
from tests.web.browsing import watched
from tflm_planner.model.edit import add_metadata
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import read_only
from tflm_planner.tflm.targets import load_target

PAGE = os.environ.get("WEB_PAGE", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGE, reason="needs the folder that web/build.py wrote, in WEB_PAGE"),
]
PATIENCE = 300_000
"""Milliseconds to load: a busy machine takes long."""
SECONDS_TO_ANSWER = 3.0
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=PAGE)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()


@pytest.fixture(scope="module")
def loaded(browser: Any, address: str) -> Iterator[Any]:
    page = watched(browser.new_page(viewport=DESK, color_scheme="light"))
    page.set_default_timeout(60_000)
    page.goto(address)
    page.wait_for_selector("body[data-ready]", timeout=PATIENCE)
    page.requests = []
    page.on("request", lambda request: page.requests.append(request.url))
    yield page
    page.close()


@pytest.fixture
def desk(loaded: Any) -> Any:
    loaded.set_viewport_size(DESK)
    loaded.emulate_media(color_scheme="light")
    return loaded


@pytest.fixture
def phone(loaded: Any) -> Any:
    loaded.set_viewport_size(PHONE)
    loaded.emulate_media(color_scheme="dark")
    return loaded


def _give(page: Any, path: Path) -> float:
    """Give the page a file; seconds to the first answer. All other answers are waited for."""
    page.evaluate("delete document.body.dataset.answered")
    began = time.monotonic()
    page.set_input_files("#file", str(path))
    page.wait_for_function(
        "name => document.getElementById('status').textContent.startsWith(name + ':')",
        arg=path.name,
    )
    seconds = time.monotonic() - began
    page.wait_for_selector("body[data-answered]")
    return seconds


def _verdict(page: Any) -> int:
    return int(page.inner_text("#verdict").split(" bytes")[0].split()[-1].replace(",", ""))


@pytest.mark.parametrize("name", ["vww_96_int8", "cnn_int8", "kws_ref_model"])
def test_shows_the_arena_to_the_byte(desk: Any, name: str) -> None:
    path = CNN if name == CNN.stem else published_path(name)
    seconds = _give(desk, path)
    board = load_target("nano33ble")
    assert _verdict(desk) == read_only.arena(path, board).arena
    planned = read_only.plan_greedily(path, board).arena.arena
    row = desk.inner_text("#boards tr[aria-current=true]")
    assert f"{planned:,}" in row
    assert desk.locator("#boards tbody tr").count() > 20
    assert desk.locator("#map rect.b").count() > 5
    assert f"tflm-plan {path.name} " in desk.inner_text("#command")
    assert desk.faults == []
    print(f"{name}: first answer after {seconds:.2f} s")
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    assert busy or seconds < SECONDS_TO_ANSWER


def test_another_board_has_its_own_figures(desk: Any) -> None:
    _give(desk, CNN)
    desk.select_option("#board", "unor4")
    desk.wait_for_function("document.getElementById('verdict').textContent.includes('not fit')")
    assert _verdict(desk) == read_only.arena(CNN, load_target("unor4")).arena
    assert "--target unor4" in desk.inner_text("#command")
    desk.fill("#filter", "esp32")
    assert 0 < desk.locator("#boards tbody tr").count() < 12
    desk.fill("#filter", "")
    desk.select_option("#board", "nano33ble")


def test_why_a_figure_is_not_to_the_byte_is_said(desk: Any) -> None:
    """Beside the verdict, and of the signs in the table below it."""
    _give(desk, CNN)
    assert desk.is_hidden("#doubt")
    assert " ~\u00a0is about: " in desk.inner_text("#signs")
    desk.select_option("#board", "esp32s3")
    desk.wait_for_function("document.getElementById('verdict').textContent.includes('about')")
    assert "the release of ESP-NN is not named" in desk.inner_text("#doubt")
    desk.select_option("#board", "nano33ble")
    desk.wait_for_function("document.getElementById('doubt').hidden")


def test_what_is_about_is_not_said_to_be_too_much_for_sure(desk: Any, tmp_path: Path) -> None:
    path = tmp_path / "mystery.tflite"
    path.write_bytes(mystery(3 << 10))
    _give(desk, path)
    assert re.search(r"SRAM: about [\d,]+ B are left", desk.inner_text("#summary"))
    desk.select_option("#board", "unor4")
    desk.wait_for_function("document.getElementById('summary').textContent.includes('too many')")
    assert "not known to fit" in desk.inner_text("#verdict")
    assert re.search(r"SRAM: about [\d,]+ B too many", desk.inner_text("#summary"))
    desk.select_option("#board", "nano33ble")


def test_what_cannot_run_gets_a_reason_and_no_command(desk: Any) -> None:
    _give(desk, ROOT / "tests" / "data" / "cases" / "f02_hybrid.tflite")
    assert desk.inner_text("#verdict") == "cannot run"
    assert "the model is hybrid" in desk.inner_text("#summary")
    assert not desk.is_visible("#command") and not desk.is_visible("#copy")
    assert desk.inner_text("#boards tr[aria-current=true]").split("\t")[2:] == [
        "-",
        "-",
        "cannot run",
    ]
    _give(desk, CNN)
    assert desk.is_visible("#command")


def test_a_damaged_file_is_refused_and_the_next_one_works(desk: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(CNN.read_bytes()[:5000])
    desk.set_input_files("#file", str(broken))
    desk.wait_for_selector("#error:not([hidden])")
    assert "damaged model" in desk.inner_text("#error")
    assert not desk.is_visible("#result")
    _give(desk, CNN)
    assert not desk.is_visible("#error") and desk.is_visible("#result")


def test_a_large_file(desk: Any, tmp_path: Path) -> None:
    model = read_model(CNN.read_bytes())
    add_metadata(model, "padding", np.random.default_rng(0).integers(0, 256, 20 << 20, np.uint8))
    path = tmp_path / "large.tflite"
    path.write_bytes(write_model(model))
    seconds = _give(desk, path)
    print(f"20 MB: first answer after {seconds:.2f} s")
    assert _verdict(desk) == read_only.arena(path, load_target("nano33ble")).arena
    assert "larger than the flash" in desk.inner_text("#summary")


def test_nothing_is_sent(desk: Any) -> None:
    """After loading there is no request, and the worker could make none."""
    _give(desk, CNN)
    assert desk.requests == []
    worker = desk.workers[0]
    assert (
        worker.evaluate("[typeof fetch, typeof XMLHttpRequest, typeof WebSocket]")
        == ["undefined"] * 3
    )


def _walk_through_the_map(page: Any) -> None:
    """To the second operator, and to the lowest of the buffers that live then."""
    page.focus("#map svg")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert page.inner_text(".readout b") == "operator 1, CONV_2D"
    page.keyboard.press("ArrowUp")
    picked = page.inner_text(".readout li.on")
    assert picked == page.locator(".readout li").all_inner_texts()[-1]
    assert "offset " in picked and ", operator" in picked


def test_by_keyboard_alone(desk: Any) -> None:
    # Asked for before the reload: where the browser hears of it only with the key, the dialog may
    # already be open, and nobody sees it (once in twenty-four runs).
    desk.on("filechooser", lambda _: None)
    desk.reload()
    desk.wait_for_selector("body[data-ready]", timeout=PATIENCE)
    for _ in range(10):
        desk.keyboard.press("Tab")
        if desk.evaluate("document.activeElement.id") == "file":
            break
    else:
        pytest.fail("the file cannot be reached by Tab")
    with desk.expect_file_chooser() as chooser:
        desk.keyboard.press("Space")
    chooser.value.set_files(str(CNN))
    desk.wait_for_selector("body[data-answered]")
    assert desk.evaluate("document.activeElement.id") == "verdict"
    _walk_through_the_map(desk)
    desk.focus("#show-planned")
    desk.keyboard.press("Space")
    assert desk.get_attribute("#show-planned", "aria-pressed") == "true"
    desk.focus("#boards tbody tr:nth-child(8) button")
    desk.keyboard.press("Enter")
    desk.wait_for_function("document.getElementById('board').value === 'unor4'")


def test_on_a_phone_in_the_dark(phone: Any) -> None:
    _give(phone, published_path("vww_96_int8"))
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    body = "getComputedStyle(document.body)"
    assert phone.evaluate(f"{body}.backgroundColor") == "rgb(15, 19, 24)"
    assert phone.faults == []


def test_a_touch_picks_an_operator_and_a_buffer(phone: Any) -> None:
    _give(phone, published_path("vww_96_int8"))
    phone.click("#map rect.input")
    assert "operator 0" in phone.inner_text(".readout b")
    picked = phone.inner_text(".readout li.on")
    assert "input, 27,648 B" in picked
    phone.set_viewport_size({**PHONE, "height": 700})  # as a browser does when one scrolls
    phone.wait_for_timeout(100)
    assert phone.locator("#map rect.on").count() == 1
    assert phone.locator("#map rect.dim").count() > 5
    phone.click("#map rect.input")
    assert phone.locator("#map rect.dim, #map rect.on, .readout li").count() == 0


def test_the_example_and_the_labels(phone: Any) -> None:
    phone.evaluate("delete document.body.dataset.answered")
    phone.click("#example")
    phone.wait_for_selector("body[data-answered='example.tflite']")
    assert _verdict(phone) == read_only.arena(CNN, load_target("nano33ble")).arena
    unnamed = phone.evaluate(
        "[...document.querySelectorAll('input, select, button')]"
        ".filter(e => !e.labels?.length && !e.textContent.trim()).map(e => e.id)"
    )
    assert unnamed == []
    assert phone.get_attribute("#status", "aria-live") == "polite"
