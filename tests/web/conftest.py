"""A headless browser, for pages as people see them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _executable(engine: Any) -> str | None:
    """Chromium: the one that CHROMIUM names, the system's, or one that Playwright has fetched."""
    here = [os.environ.get("CHROMIUM", ""), *NAMES, engine.chromium.executable_path]
    return next((found for found in map(shutil.which, here) if found), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Of one module only: while it is open, nobody else in the process can run an event loop."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra `web`")
    with playwright.sync_playwright() as engine:
        path = _executable(engine)
        if path is None:
            pytest.skip("needs Chromium: on the PATH, or named by CHROMIUM")
        browser = engine.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
