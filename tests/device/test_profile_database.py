"""The profile database under every mishap."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.device.profile_rows import BOARD, cnn_rows, row
from tflm_planner.device.profiling.database import (
    BoardRow,
    LatencyRow,
    ProfileDatabase,
    operator_text,
    to_csv,
    to_json,
)
from tflm_planner.support.errors import UsageError

pytestmark = pytest.mark.slow


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    with ProfileDatabase(tmp_path / "p.db", create=True) as db:
        assert db.add(BOARD, [row("a"), row("b")]) == 2
        assert db.add(BOARD, [row("a", 7, "2025-01-01")]) == 0  # an older one
        assert db.add(BOARD, [row("a", 9, "2027-01-01")]) == 1
    with ProfileDatabase(tmp_path / "p.db") as db:
        assert db.boards() == [BOARD]
        assert {r.operator: r.minimum_ns for r in db.latencies(BOARD)} == {"a": 9, "b": 5}


def test_merging_and_exporting(tmp_path: Path) -> None:
    case = next(iter(cnn_rows()))
    other = BoardRow(*[*(getattr(BOARD, n) for n in BOARD.__slots__[:-1]), True])
    with (
        ProfileDatabase(tmp_path / "a.db", create=True) as a,
        ProfileDatabase(tmp_path / "b.db", create=True) as b,
    ):
        a.add(BOARD, [row(operator_text(case), 1, "2026-01-01")])
        b.add(BOARD, [row(operator_text(case), 2, "2026-01-02")])
        b.add(other, [row(operator_text(case), 3)])
        assert a.merge(b) == 2
        assert a.merge(b) == 0
        assert [r.minimum_ns for r in a.latencies(BOARD)] == [2]
        assert [r.minimum_ns for r in a.latencies(other)] == [3]
        assert len(to_csv(a).splitlines()) == 3
        found = json.loads(to_json(a))
        assert found["boards"][0]["latencies"][0]["operator"][0] == case.kind
        assert next(a.latencies(BOARD)).case == case


@pytest.mark.parametrize("content", [b"no database at all, but long enough" * 40, b"short"])
def test_other_files_are_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p.db"
    path.write_bytes(content)
    with pytest.raises(UsageError):
        ProfileDatabase(path, create=True)
    assert path.read_bytes() == content
    with pytest.raises(UsageError, match="there is no profile database"):
        ProfileDatabase(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_databases_of_others_and_of_later_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(UsageError, match="another program"):
        ProfileDatabase(path, create=True)
    ProfileDatabase(tmp_path / "q.db", create=True).close()
    db = sqlite3.connect(tmp_path / "q.db")
    db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(UsageError, match="later tflm-plan"):
        ProfileDatabase(tmp_path / "q.db")


def test_a_row_that_cannot_be_takes_none_of_its_fellows_along(tmp_path: Path) -> None:
    with ProfileDatabase(tmp_path / "p.db", create=True) as db:
        db.add(BOARD, [row("kept")])
        with pytest.raises(UsageError, match="CHECK"):
            db.add(BOARD, [row("good"), LatencyRow("bad", 5, 4, 0, 3, "2026")])
        assert [r.operator for r in db.latencies(BOARD)] == ["kept"]


KILLED = """
import sys
from pathlib import Path
from tests.device.profile_rows import BOARD, row
from tflm_planner.device.profiling.database import ProfileDatabase
with ProfileDatabase(Path(sys.argv[1]), create=True) as db:
    n = 0
    while True:
        db.add(BOARD, [row(f"{n}/{k}") for k in range(50)])
        n += 1
        print(n, flush=True)
"""


def test_killed_in_the_middle_of_writing(tmp_path: Path) -> None:
    """Whole transactions are there, and nothing of the one that was cut off."""
    path = tmp_path / "p.db"
    for delay in (0.0, 0.003, 0.011):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, path],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert child.stdout is not None
        for _ in range(5):
            child.stdout.readline()
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        with ProfileDatabase(path) as db:
            counts: dict[str, int] = {}
            for found in db.latencies(BOARD):
                batch = found.operator.split("/")[0]
                counts[batch] = counts.get(batch, 0) + 1
            assert len(counts) >= 5
            assert set(counts.values()) == {50}
