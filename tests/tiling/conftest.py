"""Fixtures of the tests of searches."""

from __future__ import annotations

import pytest


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches may use four processes, however many cores this machine has."""
    monkeypatch.setattr("tflm_planner.tiling.evaluate.workers.usable_cores", lambda: 4)
