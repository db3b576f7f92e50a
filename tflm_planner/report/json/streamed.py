"""The JSON document of a model that was split for streamed input: every key with its type, its
limits and its meaning. See `report.json.common`."""

from __future__ import annotations

from typing import Annotated, Literal

from tflm_planner.report.json.common import BoundJson, CannotRun, Count, TargetId, Version
from tflm_planner.report.json.verification import Checks, ProofJson
from tflm_planner.support.documents import Document, says


class StreamedFrontJson(Document):
    """The half that takes rows, in bytes."""

    operators: Annotated[
        list[Count], says("Its operators, by their places in the model (counts, from 0).")
    ]
    persistent: Annotated[Count, says("Bytes of persistent data.")]
    shared: Annotated[Count, says("Bytes that it needs in the back's room while it runs.")]
    reserved: Annotated[
        Count, says("Bytes that firmware should give to persistent data, with a margin in doubt.")
    ]
    arena_alone: Annotated[Count, says("Bytes of arena that it would need by itself.")]


class BackJson(Document):
    """The half that runs once an image, in bytes."""

    arena: Annotated[Count, says("Bytes of arena, the front's room among them.")]
    head: Annotated[Count, says("Bytes that the memory plan lays out.")]
    tail: Annotated[Count, says("Bytes of persistent data.")]
    reserved: Annotated[Count, says("Bytes that firmware should give: arena, and a margin.")]


class StripsJson(Document):
    """How rows go through the front. All are counts of rows, where nothing else is said."""

    height: Annotated[Count, says("Rows of the image.")]
    rows: Annotated[Count, says("Rows of the image in a strip.")]
    turns: Annotated[Count, says("Number of strips (a count).")]
    result_rows: Annotated[Count, says("Rows that come out of a strip.")]
    delay: Annotated[int, says("Rows that come out before the first one that counts.")]
    result_height: Annotated[Count, says("Rows of the back's input.")]
    clock: Annotated[
        int, says("What the front's second input grows by a strip (0: it has none; a count).")
    ]
    fills: Annotated[
        list[float | Literal["inf", "-inf"]],
        says("What each halo holds before the first strip (numbers as in the tensor)."),
    ]


class StreamedJson(Document):
    """What `tflm-plan stream-input` says of a split. All sizes are bytes."""

    schema_version: Version
    target: TargetId
    sram_before: Annotated[Count, says("Bytes of arena of the model as it came.")]
    sram: Annotated[Count, says("Bytes of SRAM of both halves.")]
    bound: Annotated[BoundJson, says("What the bytes are.")]
    front: Annotated[StreamedFrontJson, says("The half that takes rows.")]
    back: Annotated[BackJson, says("The half that runs once an image.")]
    doubts: Annotated[list[str], says('Why the bytes are no more than "at least".')]
    cannot_run: CannotRun
    strips: Annotated[StripsJson, says("How rows go through the front.")]
    instructions_relative: Annotated[
        float, says("Instructions of both, relative to the model (a ratio).", ge=0)
    ]
    refused: Annotated[list[str], says("Splits that were refused, and why.")]
    stopped: Annotated[
        Literal["interrupted", "time limit"] | None,
        says("Why the search was cut short (null: it was not)."),
    ]
    proof: Annotated[ProofJson | None, says("The proof by terms (null: not asked for).")]
    checks: Checks
    verified: Annotated[bool, says("Whether the pair is proved equal to the model.")]
