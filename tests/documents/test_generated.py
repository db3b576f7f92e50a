"""Documents that are tables of what the package knows say what it knows; the site has all pages."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.documents.generate import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_table_is_that_of_the_package(name: str) -> None:
    said = (ROOT / "docs" / name).read_text()
    assert said == PAGES[name](), "run python -m tests.documents.generate"


def test_the_site_has_every_document() -> None:
    listed = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    above = set(re.findall(r'^    "([\w-]+\.md)":', (ROOT / "docs" / "site.py").read_text(), re.M))
    assert listed == above | {path.name for path in (ROOT / "docs").glob("*.md")}
    assert len(above) == 5


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the extra docs")
def test_the_site_is_built_and_no_link_is_broken(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "max_slowdown" in (tmp_path / "api.html").read_text("utf-8")
