"""Keeps results in a SQLite file, so that a run that was ended can be resumed.

    key of a job (what its result depends on) --> result, as JSON

Each result is a transaction of its own: however a run ends, all finished results are kept. Only one
run at a time can use a file; a second one gets an error. It must not know what results are about.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Self

from tflm_planner.support.errors import UsageError
from tflm_planner.support.sqlite_files import FileFormat, prepare

_TABLES = "CREATE TABLE result (key TEXT PRIMARY KEY, document TEXT NOT NULL) WITHOUT ROWID;"
_FORMAT = FileFormat("TFLJ", 1, _TABLES)


class ResultStore:
    """An open file of results. Raises UsageError if the file is not one of results, cannot be used,
    or is in use by another run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(path, timeout=1, isolation_level=None)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("BEGIN EXCLUSIVE")  # the lock is held until the file is closed
            self._db.execute("COMMIT")
            prepare(self._db, path, _FORMAT)
        except sqlite3.OperationalError as error:
            raise UsageError(
                f"cannot use {path}: {error}; does another run write there?"
            ) from error
        except sqlite3.Error as error:
            raise UsageError(f"cannot use {path}: {error}") from error

    def get(self, key: str) -> str | None:
        """The result of the job with this key; None if there is none."""
        row = self._db.execute("SELECT document FROM result WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def put(self, key: str, document: str) -> None:
        """Store the result of a job. It replaces an earlier one."""
        try:
            self._db.execute("INSERT OR REPLACE INTO result VALUES (?, ?)", (key, document))
        except sqlite3.Error as error:
            raise UsageError(f"cannot write {self._path}: {error}") from error

    def clear(self) -> None:
        """Delete all results."""
        self._db.execute("DELETE FROM result")

    def __len__(self) -> int:
        return self._db.execute("SELECT count(*) FROM result").fetchone()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._db.close()
