"""The JSON document of `batch`, and the row that is kept for each job: every key with its type, its
limits and its meaning."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tflm_planner.report.json.common import SCHEMA_VERSION, BoundJson, Count, Notes, Version
from tflm_planner.support.documents import Document, plain, says

Outcome = Literal[
    "fits", "planned", "not known to fit", "does not fit", "cannot run", "refused", "failed"
]
_Sha256 = Annotated[str, says("SHA-256 of the file, in hexadecimal; empty: there is none.")]


class BatchRow(Document):
    """A model with a set of options, and what came of it. All sizes are bytes."""

    name: Annotated[str, says("What its files in the folder are called, without endings.")]
    source: Annotated[str, says("Path of the model as it was given.")]
    options: Annotated[str, says("The options it was planned with, as given; may be empty.")]
    outcome: Annotated[
        Outcome,
        says(
            "Whether it fits; planned: nothing says what it must fit. cannot run: on the target's "
            "TFLM. refused: the model or the options are wrong. failed: an error of the tool, or "
            "of the machine; the next run tries it again."
        ),
    ]
    words: Annotated[str, says("The verdict, or why there is no plan, in words.")]
    exit_code: Annotated[Count, says("What `tflm-plan` alone would have ended with.")]
    target: Annotated[str, says("Id of the target; empty: there is no plan.")] = ""
    arena_before: Annotated[Count | None, says("Bytes of arena of the model as it came.")] = None
    arena_after: Annotated[Count | None, says("Bytes of arena of the planned model.")] = None
    bound: BoundJson = "exact"
    arena_limit: Annotated[
        Count | None, says("Bytes that the arena may take (null: nothing says how many).")
    ] = None
    slowdown: Annotated[
        float | None, says("Instructions relative to the model as it came, predicted.")
    ] = None
    file_bytes: Annotated[Count, says("Bytes of the planned model's file (0: there is none).")] = 0
    verified: Annotated[bool, says("Whether it was proved to compute the same.")] = False
    seconds: Annotated[float, says("Seconds that it took.")] = 0.0
    sha256_before: _Sha256 = ""
    sha256_after: _Sha256 = ""
    file: Annotated[str, says("The planned model in the folder; empty: there is none.")] = ""
    reports: Annotated[list[str], says("Reports on it in the folder.")] = msgspec.field(
        default_factory=list[str]
    )


class BatchJson(Document):
    """What `tflm-plan batch` says of all its models. All sizes are bytes."""

    schema_version: Version
    tool_version: Annotated[str, says("The program's version.")] = msgspec.field(name="version")
    jobs: Annotated[Count, says("Models times sets of options.")]
    unfinished: Annotated[
        list[str], says("Names of those that were not finished; the same command goes on.")
    ]
    models: Annotated[list[BatchRow], says("One entry a finished job, in the order given.")]
    notes: Notes


def batch_to_json(version: str, rows: list[BatchRow], unfinished: list[str]) -> dict[str, Any]:
    """The document as plain JSON types."""
    notes = ["interrupted: what was finished is kept, and the same command goes on"]
    count = len(rows) + len(unfinished)
    document = BatchJson(SCHEMA_VERSION, version, count, unfinished, rows, notes * bool(unfinished))
    return plain(document)


def row_text(row: BatchRow) -> str:
    """A row as text for the database."""
    return msgspec.json.encode(row).decode()


def row_of(text: str) -> BatchRow | None:
    """The row in a text of the database; None if another version wrote it in another form."""
    try:
        return msgspec.json.decode(text, type=BatchRow)
    except msgspec.MsgspecError:
        return None
