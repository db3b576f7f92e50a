"""Checks whether models fit their memory: a board's, a number of bytes, or that of a manifest.

    model.tflite          --target's board, or --max-arena
    okay_nabu.json        ESPHome's manifest of a wake word: "model", "micro": "tensor_arena_size"

A file that cannot be read or run gets a verdict, too, so that it does not hide what is wrong with
other files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec

from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.report.memory_fit import FitCheck, FitVerdict
from tflm_planner.support.errors import ModelError, PlannerError
from tflm_planner.support.files import read_file
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.arena.uncertainty import may_need_more
from tflm_planner.tflm.target import Board
from tflm_planner.tflm.targets import Target

_MANIFEST_KEYS = '"model" and, under "micro", "tensor_arena_size" in bytes'


def check_model(path: Path, arena_limit: int, target: Target) -> FitCheck:
    """Check a model that may take `arena_limit` bytes of arena, and the flash of the target's
    board."""
    try:
        data = read_file(path)
        _, arena = arena_in(data, target)
    except PlannerError as error:
        return FitCheck(str(path), "not read", arena_limit, reason=str(error))
    return _judge(str(path), arena, arena_limit, len(data), target.board)


def check_manifest(path: Path, target: Target) -> FitCheck:
    """Check the model that ESPHome's manifest of a wake word names, with the arena size in the
    manifest. ESPHome puts resource variables into a separate arena."""
    arena_limit = None
    try:
        manifest = _read_manifest(path)
        arena_limit = manifest.micro.tensor_arena_size
        data = read_file(path.parent / manifest.model)
        _, arena = arena_in(data, target, variables_apart=True)
    except PlannerError as error:
        return FitCheck(str(path), "not read", arena_limit, reason=str(error))
    return _judge(str(path), arena, arena_limit, len(data), None)


def _judge(
    source: str, arena: Arena, arena_limit: int, file_bytes: int, board: Board | None
) -> FitCheck:
    flash = None if board is None else board.flash
    verdict, reason = _verdict(arena, arena_limit, file_bytes, flash)
    if verdict == "fits" and board is not None and arena.arena > board.sram:
        reason = f"more than the board's {board.sram:,} B of SRAM"
    return FitCheck(
        source=source,
        verdict=verdict,
        arena_limit=arena_limit,
        arena=arena.arena,
        bound=arena.bound,
        file_bytes=file_bytes,
        flash=flash,
        reason=reason,
    )


def _verdict(
    arena: Arena, arena_limit: int, file_bytes: int, flash: int | None
) -> tuple[FitVerdict, str]:
    """Whether the model fits, and why not."""
    if arena.cannot_run:
        return "cannot run", arena.cannot_run[0]
    misses: list[str] = []
    if arena.arena > arena_limit and arena.bound != "about":
        misses.append(f"{arena.arena - arena_limit:,} B too large")
    if flash is not None and file_bytes > flash:
        misses.append(f"and a file of {file_bytes:,} B, more than {flash:,} B of flash")
    if misses:
        return "does not fit", ", ".join(misses)
    if arena.arena > arena_limit:
        words = arena.uncertainties[0].words
        return "not known to fit", f"about {arena.arena - arena_limit:,} B too large: {words}"
    if may_need_more(arena.bound):
        return "not known to fit", arena.uncertainties[0].words
    return "fits", ""


class _Micro(msgspec.Struct):
    tensor_arena_size: Annotated[int, msgspec.Meta(ge=1)]


class _Manifest(msgspec.Struct):
    """The keys of a manifest that are read. A manifest has further keys."""

    model: str
    micro: _Micro


def _read_manifest(path: Path) -> _Manifest:
    try:
        return msgspec.convert(json.loads(read_file(path)), _Manifest)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise ModelError(
            f"no manifest of a wake word: {error}; it needs {_MANIFEST_KEYS}"
        ) from error
