"""What fits as a table for a terminal, with the command for each network."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator

from tflm_planner.codesign.fitting import Figure, Fits, Rung
from tflm_planner.codesign.variants import Room
from tflm_planner.report.fit_text import LABELS
from tflm_planner.report.safe import safe_text
from tflm_planner.report.text import count

_HEADS = ("way", "largest that fits", "MACs", "parameters", "arena", "file", "slower")
_LEGEND = (
    "Networks are not trained, and plans are not run: `tflm-plan` proves the trained one. A row "
    "shows a network only where it is larger than those of the rows above. <=: a search may need "
    "less."
)


def command_for(figure: Figure, room: Room) -> str:
    """What makes the trained network fit; "" where it fits as it is."""
    if figure.way == "stock":
        return ""
    name, board = figure.variant.name, room.target.board
    words = ["tflm-plan", f"{name}.tflite", f"{name}_small.tflite"]
    words += ["--target", room.target.id if board is None else board.id]
    if board is None or room.arena != board.sram:
        words += ["--budget", str(room.arena)]
    if figure.way == "plan":
        words += ["--search", "none"]
    elif figure.way != "lean" or figure.slowdown > 1:
        words += ["--max-slowdown", f"{room.slowdown:g}"]
    if figure.way in ("more operators", "lean"):
        words += ["--firmware", "lean" if figure.way == "lean" else "more-ops"]
    return shlex.join(words)


def render_fits(fits: Fits, width: int) -> str:
    """The table and what is to be known of it, ending in a line break."""
    return "\n".join(_lines(fits, width)) + "\n"


def _lines(fits: Fits, width: int) -> Iterator[str]:
    room = fits.room
    board = room.target.board
    where = room.target.id if board is None else f"{board.id} ({board.name})"
    flash = "" if room.flash is None else f", {room.flash:,} B of flash"
    yield safe_text(f"{fits.family} on {where}: {room.arena:,} B of SRAM{flash}")
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
    commands = [command_for(rung.best, room) for rung in fits.rungs if rung.best is not None]
    yield from ("", *filter(None, commands), "")
    yield from textwrap.wrap(_LEGEND, width)
    for note in fits.notes:
        yield from textwrap.wrap(safe_text(note), width)


def _cells(rung: Rung) -> tuple[str, ...]:
    label = {**LABELS, "stock": "as it is", "tiles": "tiles"}[rung.way]
    if rung.best is None:
        return label, _without_best(rung), "", "", "", "", ""
    best = rung.best
    size = best.variant.size
    sign = ">=" if best.bound == "at least" else "<=" if best.at_most else ""
    return (
        label,
        best.variant.name,
        f"{size.macs / 1e6:,.1f} M",
        f"{size.parameters:,}",
        f"{sign}{best.arena:,}",
        f"{best.file_bytes:,}",
        f"{100 * (best.slowdown - 1):+.1f} %",
    )


def _without_best(rung: Rung) -> str:
    """Why a way shows no network: that larger ones do not fit is said only where all were asked."""
    if not rung.left:
        return "none larger"
    return "none of those searched" if rung.tried else "not searched"


def _counts(rung: Rung) -> str:
    label = {**LABELS, "stock": "as it is", "tiles": "tiles"}[rung.way]
    searched = "searched" if rung.way in ("tiles", "more operators") else "planned"
    parts = [
        f"{rung.of_flash} ruled out by flash",
        f"{rung.of_floor} by their fattest operator",
        f"{rung.tried} {searched}",
    ]
    left = [f"{rung.left} not searched, which may fit"] if rung.left else []
    return f"{label}: {', '.join([*parts, *left])}"
