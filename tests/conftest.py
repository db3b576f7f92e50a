"""What all tests share: where models are, and markers for what may be missing."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"
DATA = ROOT / "tests" / "data"
PUBLISHED = DATA / "published"
TRUTH = DATA / "truth"
CASE_FILES = DATA / "cases"
CNN = ROOT / "tests" / "models" / "cnn_int8.tflite"

needs_tflm = pytest.mark.skipif(
    importlib.util.find_spec("tflite_micro") is None, reason="needs tflite-micro (Linux x86-64)"
)


def shared_models() -> list[Path]:
    """The published models in `data/published`, and others when they are here."""
    ours = sorted(PUBLISHED.glob("*.tflite"))
    names = {path.name for path in ours}
    more = [p for p in sorted((SHARED / "models").rglob("*.tflite")) if p.name not in names]
    return [*ours, *more, *sorted((SHARED / "experiments").rglob("*.tflite"))]


def published_path(name: str) -> Path:
    """One of them by its name; skips the test where it is not here."""
    stem = name.removesuffix(".tflite")
    for path in shared_models():
        if path.stem == stem:
            return path
    pytest.skip(f"{stem} is not here")


@cache
def published(name: str) -> bytes:
    """Its bytes."""
    return published_path(name).read_bytes()


@pytest.fixture
def cnn() -> bytes:
    return CNN.read_bytes()


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Each process has a share of the tests in one piece, so that what a file prepares, and
    TensorFlow, is loaded once; who has none left takes from the other."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="run the tests that are marked `long` as well"
    )


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`mostly_slow(fast=n)`: of the cases of such a test all are slow but n, spread evenly;
    `mostly_long(short=n)`: the same for long. What is long is slow, and left out without --long."""
    _mark_most(items, "mostly_slow", "fast", pytest.mark.slow)
    _mark_most(items, "mostly_long", "short", pytest.mark.long)
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.slow)
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)


def _mark_most(items: list[pytest.Item], name: str, key: str, mark: pytest.MarkDecorator) -> None:
    """Mark all cases of every test that is marked `name`, but as many as `key` says."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker(name):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for of_one in cases.values():
        spared = of_one[0].get_closest_marker(name).kwargs[key]  # type: ignore[union-attr]
        kept = {at * len(of_one) // spared for at in range(spared)}
        for at, item in enumerate(of_one):
            if at not in kept:
                item.add_marker(mark)
