"""The cores that a process may use: no more than it may run on, and no more than its container's
share of time."""

from __future__ import annotations

import os

import pytest

from tflm_planner.support.cores import usable_cores


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000\n", 6),
        ("200000 100000\n", 2),
        ("250000 100000\n", 3),
        ("1000 100000\n", 1),
        ("3200000 100000\n", 6),
        ("", 6),
        ("max\n", 6),
        ("100000 0\n", 6),
    ],
)
def test_a_container_may_have_less_time(monkeypatch, tmp_path, quota, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path / "cpu.max") == cores


def test_a_system_that_has_neither(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(tmp_path / "cpu.max") == 1
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert usable_cores(tmp_path / "cpu.max") == 4
