"""The JSON document of `compare`: every key with its type, its limits and its meaning. See
`report.json.common`."""

from __future__ import annotations

from typing import Annotated, Any

from tflm_planner.report.comparison import Cell, Comparison, TargetRow
from tflm_planner.report.document import RungKind
from tflm_planner.report.json.common import (
    SCHEMA_VERSION,
    BoundJson,
    Count,
    Notes,
    TargetId,
    Version,
)
from tflm_planner.support.documents import Document, plain, says, view

_Kind = Annotated[
    RungKind,
    says(
        "What may change: stock: nothing. plan: order and offsets. tiles: the firmware's own "
        "operators in tiles. more operators: loops, and operators to be registered. lean: the lean "
        "library."
    ),
]


class BoardRungJson(Document):
    """A rung of the ladder on one board. All sizes are bytes."""

    kind: _Kind
    arena: Annotated[Count | None, says("Bytes of arena (null: `remark` says why there are none).")]
    bound: BoundJson
    at_most: Annotated[bool, says("Whether a search might need less.")]
    file_bytes: Annotated[Count, says("Bytes of the model's file (0: there is none).")]
    fits: Annotated[
        bool | None,
        says("Whether arena and file have room on the board (null: not known, or no board)."),
    ]
    margin: Annotated[
        int | None,
        says(
            "Bytes of SRAM left beside the arena, as certain as `bound` says; negative: too large "
            "by so much (null: not known)."
        ),
    ]
    warnings: Annotated[
        list[str], says('Why the bytes are "at least" or "about", and what else is wrong.')
    ]
    remark: Annotated[str, says("Why there is no figure; may be empty.")]


class BoardRowJson(Document):
    """A board, or a target without one, and what the model needs there."""

    board: Annotated[str | None, says("Id of the board (null: a target without a board).")]
    vendor: Annotated[str, says("Who sells the board; may be empty.")]
    target: TargetId
    sram: Annotated[Count | None, says("Bytes of SRAM (null: no board).")]
    flash: Annotated[Count | None, says("Bytes of flash (null: no board).")]
    rungs: Annotated[list[BoardRungJson], says("One entry a column, in the order of `columns`.")]


class BoardComparisonJson(Document):
    """What `tflm-plan compare` says of a model. All sizes are bytes."""

    schema_version: Version
    source: Annotated[str, says("Path of the model as it was given.")]
    file_bytes: Annotated[Count, says("Bytes of the model's file.")]
    columns: Annotated[list[_Kind], says("Rungs that were looked at.")]
    boards: Annotated[list[BoardRowJson], says("One entry a board.")]
    notes: Notes


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """A comparison as plain JSON types."""
    return plain(
        view(
            comparison,
            BoardComparisonJson,
            schema_version=SCHEMA_VERSION,
            boards=[_row(row) for row in comparison.rows],
        )
    )


def _row(row: TargetRow) -> BoardRowJson:
    board = row.target.board
    return BoardRowJson(
        board=None if board is None else board.id,
        vendor="" if board is None else board.vendor,
        target=row.target.id,
        sram=None if board is None else board.sram,
        flash=None if board is None else board.flash,
        rungs=[_rung(cell, row) for cell in row.cells],
    )


def _rung(cell: Cell, row: TargetRow) -> BoardRungJson:
    board = row.target.board
    return view(cell, BoardRungJson, fits=cell.fits(board), margin=cell.margin(board))
