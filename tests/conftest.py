"""What all tests share: where models are, and markers for what may be missing."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"
DATA = ROOT / "tests" / "data"
PUBLISHED = DATA / "published"
TRUTH = DATA / "truth"
CASE_FILES = DATA / "cases"
CNN = ROOT / "tests" / "models" / "cnn_int8.tflite"

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="needs the larger models, in ../shared"
)
needs_tflm = pytest.mark.skipif(
    importlib.util.find_spec("tflite_micro") is None, reason="needs tflite-micro (Linux x86-64)"
)


def shared_models() -> list[Path]:
    """The published models: those in `data/published`, and larger ones when they are here."""
    small = sorted(PUBLISHED.glob("*.tflite"))
    names = {path.name for path in small}
    large = [p for p in sorted((SHARED / "models").rglob("*.tflite")) if p.name not in names]
    return [*small, *large, *sorted((SHARED / "experiments").rglob("*.tflite"))]


def published_path(name: str) -> Path:
    """One of them by its name; skips the test where it is too large to be here."""
    stem = name.removesuffix(".tflite")
    for path in shared_models():
        if path.stem == stem:
            return path
    pytest.skip(f"{stem} is not here: it is too large for tests/data")


@cache
def published(name: str) -> bytes:
    """Its bytes."""
    return published_path(name).read_bytes()


@pytest.fixture
def cnn() -> bytes:
    return CNN.read_bytes()


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`mostly_slow(fast=n)`: of the cases of such a test all are slow but n, spread evenly."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("mostly_slow"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for of_one in cases.values():
        fast = of_one[0].get_closest_marker("mostly_slow").kwargs["fast"]  # type: ignore[union-attr]
        kept = {at * len(of_one) // fast for at in range(fast)}
        for at, item in enumerate(of_one):
            if at not in kept:
                item.add_marker(pytest.mark.slow)
