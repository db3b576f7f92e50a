"""The JSON document of `fit`: every key with its type, its limits and its meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from tflm_planner.codesign.fitting.fit_text import command_for
from tflm_planner.codesign.fitting.largest import Fits, RungResult
from tflm_planner.codesign.fitting.outcomes import VariantOutcome
from tflm_planner.report.document import RungKind
from tflm_planner.report.json.common import SCHEMA_VERSION, BoundJson, Count, Version
from tflm_planner.support.documents import Document, plain, says

_Kind = Annotated[
    RungKind,
    says(
        "What may change: stock: nothing. plan: order and offsets. tiles: the firmware's own "
        "operators in tiles. more operators: loops, and operators to be registered. lean: the lean "
        "library. rows streamed: the input comes row by row (`stream-input`)."
    ),
]


class NetworkJson(Document):
    """A network that fits. All sizes are bytes."""

    name: Annotated[str, says("Family, width and resolution.")]
    resolution: Annotated[Count, says("Rows of the input.")]
    width: Annotated[float, says("Factor of the channels.")]
    depth: Annotated[Count, says("Layers, or blocks; 0 where the family's depth does not vary.")]
    macs: Annotated[Count, says("Multiplications of one inference.")]
    parameters: Annotated[Count, says("Weights and biases.")]
    arena: Annotated[Count, says("Bytes of arena; if rows are streamed, of SRAM for both halves.")]
    bound: BoundJson
    at_most: Annotated[bool, says("Whether a search might need less.")]
    file_bytes: Annotated[Count, says("Bytes of the model's file, or of both halves.")]
    slowdown: Annotated[float, says("Instructions relative to the stock model, predicted.")]
    command: Annotated[
        str,
        says(
            "What to type; its file is the trained network, or what was written (empty: it runs "
            "unchanged)."
        ),
    ]


class FitRungJson(Document):
    """A rung of the ladder, with the largest network that fits only so far up."""

    kind: _Kind
    best: Annotated[
        NetworkJson | None, says("The largest that was found (null: none larger than before).")
    ]
    of_flash: Annotated[Count, says("Larger variants whose parameters alone exceed the flash.")]
    of_floor: Annotated[
        Count, says("Larger variants whose memory has a lower bound that is too large.")
    ]
    tried: Annotated[Count, says("Variants whose arena was found.")]
    left: Annotated[Count, says("Larger variants that may fit: their whole search was not made.")]


class NetworksThatFitJson(Document):
    """What `tflm-plan fit` says of a family and a board. All sizes are bytes."""

    schema_version: Version
    family: Annotated[str, says("The family of networks.")]
    board: Annotated[str | None, says("Id of the board (null: a target without a board).")]
    target: Annotated[str, says("Id of the target.")]
    arena_limit: Annotated[Count, says("Bytes that the arena may take.")]
    flash: Annotated[Count | None, says("Bytes that the file may take (null: not limited).")]
    variants: Annotated[Count, says("How many networks there were.")]
    rungs: Annotated[
        list[FitRungJson], says("One entry a rung, each allowing what those before do.")
    ]
    notes: Annotated[list[str], says("What else is worth knowing.")]


def fits_to_json(fits: Fits, folder: Path | None = None) -> dict[str, Any]:
    """The networks that fit as plain JSON types. folder: where they were written; None if they were
    not."""
    limits = fits.limits
    board = limits.target.board
    return plain(
        NetworksThatFitJson(
            schema_version=SCHEMA_VERSION,
            family=fits.family,
            board=None if board is None else board.id,
            target=limits.target.id,
            arena_limit=limits.arena_limit,
            flash=limits.flash,
            variants=fits.variants,
            rungs=[_rung(rung, fits, folder) for rung in fits.rungs],
            notes=list(fits.notes),
        )
    )


def _rung(rung: RungResult, fits: Fits, folder: Path | None) -> FitRungJson:
    best = None if rung.best is None else _network(rung.best, fits, folder)
    return FitRungJson(
        rung.kind, best, rung.ruled_out_by_flash, rung.ruled_out_by_bound, rung.tried, rung.left
    )


def _network(figure: VariantOutcome, fits: Fits, folder: Path | None) -> NetworkJson:
    variant = figure.variant
    return NetworkJson(
        name=variant.name,
        resolution=variant.resolution,
        width=variant.width,
        depth=variant.depth,
        macs=variant.size.macs,
        parameters=variant.size.parameters,
        arena=figure.arena,
        bound=figure.bound,
        at_most=figure.at_most,
        file_bytes=figure.file_bytes,
        slowdown=figure.slowdown,
        command=command_for(figure, fits.limits, folder),
    )
