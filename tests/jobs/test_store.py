"""Results are kept one by one, by one run at a time."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tflm_planner.jobs.store import ResultStore
from tflm_planner.support.errors import UsageError


def test_results_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    with ResultStore(path) as store:
        assert store.get("a") is None
        store.put("a", "1")
        store.put("b", "2")
        store.put("a", "3")
    with ResultStore(path) as store:
        assert (store.get("a"), store.get("b"), len(store)) == ("3", "2", 2)
        store.clear()
        assert len(store) == 0


def test_one_run_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    with ResultStore(path), pytest.raises(UsageError, match="another run"):
        ResultStore(path)
    ResultStore(path).__exit__()


@pytest.mark.parametrize(
    ("statement", "words"),
    [("PRAGMA application_id = 7", "another program"), ("PRAGMA user_version = 99", "later")],
)
def test_other_files_are_left_alone(statement: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    ResultStore(path).__exit__()
    database = sqlite3.connect(path)
    database.execute(statement)
    database.close()
    with pytest.raises(UsageError, match=words):
        ResultStore(path)
    path.write_bytes(b"no database, but text that is long enough to be looked at" * 20)
    with pytest.raises(UsageError, match="cannot use"):
        ResultStore(path)
