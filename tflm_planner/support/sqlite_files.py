"""SQLite files of ours: what marks one, and the refusal of every other.

application_id    four letters that say which program's file it is
user_version      the schema's number; a later tflm-plan may write a higher one
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from tflm_planner.support.errors import UsageError


@dataclass(frozen=True)
class FileFormat:
    """A kind of SQLite file. letters: four ASCII letters. version: the number of its schema.
    tables: the SQL that makes them."""

    letters: str
    version: int
    tables: str

    @property
    def application(self) -> int:
        """The `application_id` of SQLite's header."""
        return int.from_bytes(self.letters.encode(), "big")


def prepare(db: sqlite3.Connection, path: Path, expected: FileFormat) -> None:
    """Make the tables in an empty file. Raises UsageError for a file of another program or of a
    later version, and sqlite3.Error for one that is no database."""
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables:
        marks = (
            f"PRAGMA application_id = {expected.application};"
            f"PRAGMA user_version = {expected.version};"
        )
        db.executescript(f"BEGIN IMMEDIATE;{marks}{expected.tables}COMMIT;")
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != expected.application:
        raise UsageError(f"{path} is a database of another program; choose another name")
    if version > expected.version:
        raise UsageError(
            f"{path} was written by a later tflm-plan (schema {version}); update this one"
        )
