"""The networks that fit as a table for a terminal, with the command for each."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tflm_planner.codesign.fitting.largest import Fits, RungResult
from tflm_planner.codesign.fitting.outcomes import VariantOutcome
from tflm_planner.codesign.fitting.variants import Limits
from tflm_planner.report.document import RungKind
from tflm_planner.report.text.bounds import sign
from tflm_planner.report.text.fit import LABELS
from tflm_planner.report.text.safe import safe_text
from tflm_planner.support.words import count
from tflm_planner.tflm.targets import can_be_lean

_HEADS = ("rung", "largest that fits", "MACs", "parameters", "arena", "file", "slower")
_LEGEND = (
    "Networks are not trained, and plans are not run: `tflm-plan` proves the trained one. A row "
    "shows a network only where it is larger than those of the rows above. <=: a search may need "
    "less."
)
_BOUNDS: dict[RungKind, str] = {
    "stock": "their fattest operator",
    "plan": "their fattest operator",
    "rows streamed": "what every split needs",
}
"""What the lower bound of a rung is; the other rungs need the whole image."""
_MISSING = (
    "The .tflite file in a command is your trained network. --write FOLDER writes it untrained."
)
_WRITTEN = "The files are written untrained: the trained network needs the same memory."


def command_for(figure: VariantOutcome, limits: Limits, folder: Path | None = None) -> str:
    """The command that makes the network fit; "" if it fits unchanged. folder: where its file lies;
    None if the user supplies the trained file."""
    if figure.kind == "stock":
        return ""
    board = limits.target.board
    path = str((folder or Path()) / figure.variant.name)
    target = ["--target", limits.target.word]
    if figure.kind == "rows streamed":
        halves = [f"{path}_front.tflite", f"{path}_back.tflite"]
        words = ["tflm-plan", "stream-input", f"{path}.tflite", *halves, *target]
        words += ["--max-slowdown", f"{limits.stream_slowdown:g}"]
        if can_be_lean(limits.target):
            words += ["--firmware", "lean"]
        elif not figure.quick:
            words += ["--firmware", "more-ops"]
        return shlex.join([*words, *(["--search", "none"] * figure.quick)])
    words = ["tflm-plan", f"{path}.tflite", f"{path}_small.tflite", *target]
    if board is None or limits.arena_limit != board.sram:
        words += ["--budget", str(limits.arena_limit)]
    if figure.kind == "plan":
        words += ["--search", "none"]
    elif figure.kind != "lean" or figure.slowdown > 1:
        words += ["--max-slowdown", f"{limits.slowdown:g}"]
    if figure.kind in ("more operators", "lean"):
        words += ["--firmware", "lean" if figure.kind == "lean" else "more-ops"]
    return shlex.join(words)


def render_fits(fits: Fits, width: int, folder: Path | None = None) -> str:
    """The table with its notes, ending in a line break. folder: where the networks were written;
    None if they were not."""
    return "\n".join(_lines(fits, width, folder)) + "\n"


def _lines(fits: Fits, width: int, folder: Path | None) -> Iterator[str]:
    limits = fits.limits
    board = limits.target.board
    where = limits.target.id if board is None else f"{board.id} ({board.name})"
    flash = "" if limits.flash is None else f", {limits.flash:,} B of flash"
    yield safe_text(f"{fits.family} on {where}: {limits.arena_limit:,} B of SRAM{flash}")
    yield ""
    table = [_HEADS, *(_cells(rung) for rung in fits.rungs)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        left = (f"{cell:<{size}}" for cell, size in zip(row[:2], widths[:2], strict=True))
        right = (f"{cell:>{size}}" for cell, size in zip(row[2:], widths[2:], strict=True))
        yield "  ".join((*left, *right)).rstrip()
    yield ""
    yield f"Of {count(fits.variants, 'variant', 'variants')}, larger ones than fit:"
    for rung in fits.rungs:
        yield from textwrap.wrap(f"  {_counts(rung)}", width, subsequent_indent="    ")
    best = [rung.best for rung in fits.rungs if rung.best is not None]
    commands = [*filter(None, (command_for(figure, limits, folder) for figure in best))]
    yield from ("", *commands, "") if commands else ("",)
    if commands:
        yield from textwrap.wrap(_MISSING if folder is None else _WRITTEN, width)
    yield from textwrap.wrap(_LEGEND, width)
    for note in fits.notes:
        yield from textwrap.wrap(safe_text(note), width)


def _cells(rung: RungResult) -> tuple[str, ...]:
    label = LABELS[rung.kind]
    if rung.best is None:
        return label, _without_best(rung), "", "", "", "", ""
    best = rung.best
    size = best.variant.size
    mark = sign(best.bound) or "<=" * best.at_most
    return (
        label,
        best.variant.name,
        f"{size.macs / 1e6:,.1f} M",
        f"{size.parameters:,}",
        f"{mark}{best.arena:,}",
        f"{best.file_bytes:,}",
        f"{100 * (best.slowdown - 1):+.1f} %",
    )


def _without_best(rung: RungResult) -> str:
    """Why a rung has no network. That no larger one fits is said only if all were tried."""
    if not rung.left:
        return "none larger"
    return "none of those searched" if rung.tried else "not searched"


def _counts(rung: RungResult) -> str:
    parts = [
        f"{rung.ruled_out_by_flash} ruled out by flash",
        f"{rung.ruled_out_by_bound} by {_BOUNDS.get(rung.kind, 'the image')}",
        f"{rung.tried} tried",
    ]
    unsearched = [f"{rung.left} without a whole search, which may fit"] if rung.left else []
    return f"{LABELS[rung.kind]}: {', '.join([*parts, *unsearched])}"
