"""The package says what it is for: its examples run, and no module is left that nobody reaches."""

from __future__ import annotations

import doctest
import re

from tests.conftest import ROOT
from tflm_planner import codesign

FOLDER = ROOT / "tflm_planner"


def test_the_examples_of_the_package_run() -> None:
    failed, tried = doctest.testmod(codesign)
    assert tried > 20 and failed == 0


def test_every_module_is_reached() -> None:
    """From the command line, by another module, or by name in the package's docstring."""
    sources = {path: path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")}
    words = set(re.findall(r"`([\w.]+)`", codesign.__doc__ or ""))
    imported = set(re.findall(r"tflm_planner\.codesign\.([\w.]+)", "".join(sources.values())))
    for path in sorted((FOLDER / "codesign").rglob("*.py")):
        name = ".".join(path.relative_to(FOLDER / "codesign").with_suffix("").parts)
        is_package = name.endswith("__init__")
        assert is_package or name in imported | words, name
