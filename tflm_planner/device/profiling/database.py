"""Keeps measured latencies in a SQLite file (schema/profile.md). Files can be merged and exported,
and are never half written.

    boards 1 --- n latencies: operator (a case, as JSON) -> nanoseconds

Every operator is written in its own transaction: if a run is killed, all finished measurements are
kept, and SQLite's journal undoes the unfinished one. It must not know lines or models.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from tflm_planner.cost.case import Case, canonical, from_row, to_row
from tflm_planner.support.errors import UsageError
from tflm_planner.support.sqlite_files import FileFormat, prepare

SCHEMA_VERSION = 1
_BUSY = 20.0
"""Seconds to wait for another program that writes."""
_TABLES = """
CREATE TABLE board (
    id INTEGER PRIMARY KEY,
    board TEXT NOT NULL, core TEXT NOT NULL, kernels TEXT NOT NULL, tflm TEXT NOT NULL,
    firmware TEXT NOT NULL, target TEXT NOT NULL, clock_hz INTEGER NOT NULL,
    virtual INTEGER NOT NULL CHECK (virtual IN (0, 1)),
    UNIQUE (board, core, kernels, tflm, firmware, target, clock_hz, virtual)
);
CREATE TABLE latency (
    board INTEGER NOT NULL REFERENCES board (id),
    operator TEXT NOT NULL,
    minimum_ns REAL NOT NULL CHECK (minimum_ns >= 0),
    median_ns REAL NOT NULL CHECK (median_ns >= minimum_ns),
    spread_ns REAL NOT NULL CHECK (spread_ns >= 0),
    runs INTEGER NOT NULL CHECK (runs > 0),
    measured_at TEXT NOT NULL,
    PRIMARY KEY (board, operator)
) WITHOUT ROWID;
"""
_FORMAT = FileFormat("TFLP", SCHEMA_VERSION, _TABLES)


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A board with its firmware. target: its id, or empty. clock_hz: the clock of the core; 0 if
    unknown."""

    board: str
    core: str
    kernels: str
    tflm: str
    firmware: str
    target: str
    clock_hz: int
    virtual: bool


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """An operator's latency in nanoseconds, over `runs` runs. spread_ns: slowest minus fastest run.
    measured_at: the time in UTC, ISO 8601."""

    operator: str
    minimum_ns: float
    median_ns: float
    spread_ns: float
    runs: int
    measured_at: str

    @property
    def case(self) -> Case:
        """The operator, in its canonical form."""
        return canonical(from_row(json.loads(self.operator)))


def operator_text(case: Case) -> str:
    """The text of an operator in the database, which is canonical JSON."""
    return json.dumps(to_row(case), separators=(",", ":"), sort_keys=True)


_BOARD = tuple(f.name for f in fields(BoardRow))
_LATENCY = tuple(f.name for f in fields(LatencyRow))


class ProfileDatabase:
    """An open database. Raises UsageError if the file is not a profile database, or cannot be
    used."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        if not create and not path.is_file():
            raise UsageError(f"there is no profile database {path}; `tflm-plan profile` makes one")
        try:
            self._db = sqlite3.connect(path, timeout=_BUSY, isolation_level=None)
            prepare(self._db, path, _FORMAT)
        except sqlite3.Error as error:
            raise UsageError(f"cannot use the profile database {path}: {error}") from error

    def boards(self) -> list[BoardRow]:
        """All boards."""
        return [row for _, row in self._boards()]

    def _boards(self) -> list[tuple[int, BoardRow]]:
        rows = self._all(f"SELECT id, {', '.join(_BOARD)} FROM board ORDER BY id")
        return [(row[0], BoardRow(*row[1:8], virtual=bool(row[8]))) for row in rows]

    def latencies(self, board: BoardRow) -> Iterator[LatencyRow]:
        """All latencies of a board."""
        for number, row in self._boards():
            if row == board:
                sql = f"SELECT {', '.join(_LATENCY)} FROM latency WHERE board = ? ORDER BY operator"
                yield from (LatencyRow(*row) for row in self._all(sql, (number,)))

    def add(self, board: BoardRow, rows: Iterable[LatencyRow]) -> int:
        """Store latencies, either all or none. If an operator has two, the later measurement is
        kept. Returns how many of the rows are new or newer."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                number, before = self._number(board), self._db.total_changes
                for row in rows:
                    self._db.execute(_KEEP, (number, *astuple(row)))
                added = self._db.total_changes - before
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise UsageError(f"cannot write the profile database {self.path}: {error}") from error
        return added

    def _number(self, board: BoardRow) -> int:
        values = astuple(board)
        marks = ", ".join("?" * len(values))
        self._db.execute(f"INSERT OR IGNORE INTO board ({', '.join(_BOARD)}) VALUES ({marks})", values)  # noqa: E501  # fmt: skip
        where = " AND ".join(f"{name} = ?" for name in _BOARD)
        return self._all(f"SELECT id FROM board WHERE {where}", values)[0][0]

    def merge(self, other: ProfileDatabase) -> int:
        """Add the latencies of another database. Returns how many were new or newer."""
        return sum(self.add(board, list(other.latencies(board))) for board in other.boards())

    def _all(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise UsageError(f"cannot read the profile database {self.path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> ProfileDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_KEEP = f"""
INSERT INTO latency (board, {", ".join(_LATENCY)}) VALUES (?, {", ".join("?" * len(_LATENCY))})
ON CONFLICT (board, operator) DO UPDATE SET
    {", ".join(f"{n} = excluded.{n}" for n in _LATENCY[1:])}
WHERE excluded.measured_at > latency.measured_at
"""


def to_csv(database: ProfileDatabase) -> str:
    """All latencies as CSV, one in each row, with their boards."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_BOARD, *_LATENCY))
    for board in database.boards():
        writer.writerows((*astuple(board), *astuple(r)) for r in database.latencies(board))
    return text.getvalue()


def to_json(database: ProfileDatabase) -> str:
    """All latencies as JSON, by board."""
    boards = [
        {
            **dict(zip(_BOARD, astuple(board), strict=True)),
            "latencies": [
                {**dict(zip(_LATENCY, astuple(r), strict=True)), "operator": json.loads(r.operator)}
                for r in database.latencies(board)
            ],
        }
        for board in database.boards()
    ]
    return json.dumps({"schema_version": SCHEMA_VERSION, "boards": boards}, indent=1) + "\n"


EXPORTERS = {".csv": to_csv, ".json": to_json}
"""File ending -> exporter."""
