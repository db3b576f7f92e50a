"""Draws arenas: the parts of each, and the memory of the board.

    before   |#### tensors ####|== structures ==|.... temporary ....|
    after    |### tensors ###|== structures ==|                      | 256 KiB of SRAM

All bars have the same scale. The parts of an arena add up to it: tensors and scratch (the head),
the classes of persistent memory (the tail), and temporary memory of AllocateTensors, if that
decides the size. The SVG is self-contained, like that of a memory map. It must not know reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from xml.etree.ElementTree import Element

from tflm_planner.report.svg import shapes
from tflm_planner.report.text.bounds import figure
from tflm_planner.report.text.words import shorten
from tflm_planner.support.units import human_size
from tflm_planner.tflm.arena.predict import Arena

TITLES = {
    "head": "tensors and scratch",
    "eval_tensors": "tensor structures",
    "op_init": "operators' data (Init)",
    "op_prepare": "operators' data (Prepare)",
    "builtin_data": "parsed options",
    "nodes": "nodes and registrations",
    "variables": "variables",
    "resource_vars": "resource variables",
    "rest": "other structures",
    "temporary": "temporary, at the start",
}
"""The names of the parts of an arena. Classes of the tail that are not listed belong to `rest`."""

_STYLE = """
.tfa text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",
sans-serif;font-size:12px;fill:#4b5563;font-variant-numeric:tabular-nums}
.tfa .bg{fill:#fff;stroke:#e3e7ee}.tfa .h1{font-size:16px;font-weight:600;fill:#111827}
.tfa .cap{font-weight:600;fill:#111827;paint-order:stroke;stroke:#fff;stroke-width:4px}
.tfa .track{fill:#eef1f6}.tfa .b:hover{opacity:.72}
.tfa .p0{fill:#74a2e2}.tfa .p1{fill:#c6a6e0}.tfa .p2{fill:#f6bd60}.tfa .p3{fill:#76c8a0}
.tfa .p4{fill:#ee9fb0}.tfa .p5{fill:#a9b7c9}.tfa .p6{fill:#dfe4ec}.tfa .lab{fill:#0f2340}
.tfa .limit{stroke:#c2334d;stroke-width:1.6}.tfa .limitt{fill:#c2334d;font-weight:600}
@media screen and (prefers-color-scheme:dark){
.tfa text{fill:#a9b4c3}.tfa .bg{fill:#10161f;stroke:#263041}.tfa .h1,.tfa .cap{fill:#f1f5f9}
.tfa .cap{stroke:#10161f}.tfa .track{fill:#1b2432}
.tfa .p0{fill:#3565a6}.tfa .p1{fill:#75539a}.tfa .p2{fill:#b5761b}
.tfa .p3{fill:#2c8560}.tfa .p4{fill:#a34a60}.tfa .p5{fill:#56657a}.tfa .p6{fill:#333f50}
.tfa .lab{fill:#f1f6ff}.tfa .limit{stroke:#ff8a9d}.tfa .limitt{fill:#ff8a9d}}
"""
_NAMED = 4
"""How many classes of the tail, the largest ones, have their own colour. The others are drawn as
`rest`."""
_ALIGNMENT = 16
"""The most bytes between head and tail that alignment causes."""
_LEFT, _RIGHT, _TOP, _ROW, _BAR = 20, 20, 66, 58, 26
_LIMIT = 26
"""Pixels of the line above the bars that says the limit."""


@dataclass(frozen=True, slots=True)
class ArenaBar:
    """An arena and its caption."""

    caption: str
    arena: Arena


@dataclass(frozen=True, slots=True)
class Limit:
    """The bytes that an arena may take. words: what they are, as in "of SRAM"."""

    size: int
    words: str


def arena_parts(arena: Arena) -> dict[str, int]:
    """Key in `TITLES` -> bytes; they add up to the arena."""
    named = {key: n for key, n in arena.tail_parts.items() if key in TITLES and n}
    parts = {"head": arena.head, **named, "rest": arena.tail - sum(named.values())}
    unnamed = arena.arena - sum(parts.values())
    key = "temporary" if unnamed > _ALIGNMENT else "rest"
    parts[key] = parts.get(key, 0) + unnamed
    return {key: n for key, n in parts.items() if n > 0}


def arena_svg(
    bars: Sequence[ArenaBar], *, title: str, limit: Limit | None = None, width: int = 1000
) -> str:
    """A drawing with a bar for each arena, and a line at the limit. It is at least 360 pixels
    wide."""
    width = max(360, width)
    parts = [arena_parts(bar.arena) for bar in bars]
    colours = _colours(parts)
    scale = max(1, limit.size if limit else 0, *(bar.arena.arena for bar in bars))
    wide = width - _LEFT - _RIGHT
    first = _TOP + (_LIMIT if limit else 0)
    body = [shapes.text(_LEFT, 30, shorten(title, int(wide / 9)), "h1")]
    captions: list[Element] = []
    for row, (bar, sizes) in enumerate(zip(bars, parts, strict=True)):
        top = first + row * _ROW
        words = f"{bar.caption}: {figure(bar.arena.arena, bar.arena.bound)}"
        captions += [shapes.text(_LEFT, top - 8, words, "cap")]
        body += [shapes.rect("track", (_LEFT, top, wide, _BAR))]
        body += _segments(sizes, colours, top, wide / scale, limit)
    bottom = first + len(bars) * _ROW - _ROW + _BAR
    if limit:
        body += _limit_line(limit, _LEFT + wide * limit.size / scale, bottom, width)
    legend, height = _legend(colours, bottom + 30, width)
    sizes = ", ".join(f"{bar.caption} {figure(bar.arena.arena, bar.arena.bound)}" for bar in bars)
    return shapes.drawing(
        "tfa", (width, height), f"{title}: {sizes}", _STYLE, [*body, *captions, *legend]
    )


def _colours(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Key -> number of its colour. Small classes share the colour of the rest."""
    most: dict[str, int] = {}
    for sizes in parts:
        for key, size in sizes.items():
            most[key] = max(most.get(key, 0), size)
    tail = [key for key in most if key not in ("head", "rest", "temporary")]
    large = sorted(tail, key=lambda key: -most[key])[:_NAMED]
    numbers = {"head": 0, **{key: 1 + k for k, key in enumerate(large)}}
    numbers |= {key: _NAMED + 1 for key in (*tail, "rest") if key in most and key not in large}
    return numbers | ({"temporary": _NAMED + 2} if "temporary" in most else {})


def _segments(
    sizes: Mapping[str, int],
    colours: Mapping[str, int],
    top: float,
    scale: float,
    limit: Limit | None,
) -> Iterator[Element]:
    """Yield the parts from left to right, in the order of their colours, with sizes where they
    fit: beside the line at the limit, not under it."""
    line = _LEFT + limit.size * scale if limit else -inf
    start = 0
    for key in sorted(sizes, key=lambda key: (colours[key], key)):
        size = sizes[key]
        box = (_LEFT + start * scale, top, max(size * scale, 0.5), _BAR)
        yield shapes.rect(f"b p{colours[key]}", box, f"{TITLES[key]}\n{human_size(size)}")
        words = shapes.short_size(size)
        needed = 12 * shapes.CHARACTER * len(words) + 8
        left, right = box[0], box[0] + box[2]
        if abs((left + right) / 2 - line) < needed / 2:
            left, right = max((left, line), (line, right), key=lambda part: part[1] - part[0])
        if right - left > needed:
            yield shapes.text((left + right) / 2, top + _BAR / 2 + 4, words, "lab", "middle")
        start += size


def _limit_line(limit: Limit, x: float, bottom: float, width: int) -> Iterator[Element]:
    """Yield a line at the limit, and its label: on its left, on its right, or where there is
    room for it, at the right edge of the drawing."""
    yield shapes.line("limit", x, _TOP, x, bottom + 4)
    words = f"{human_size(limit.size)} {limit.words}"
    wide = 14 * shapes.CHARACTER * len(words)
    place = (x - 8, "end") if x >= wide else (x + 8, "start")
    if place[1] == "start" and x + 8 + wide > width - _RIGHT:
        place = (width - _RIGHT, "end")
    yield shapes.text(place[0], 30 + 28, words, "limitt", place[1])


def _legend(colours: Mapping[str, int], y: float, width: int) -> tuple[list[Element], int]:
    """The legend of the colours, and the height of the drawing with it."""
    shown: list[Element] = []
    x = float(_LEFT)
    for number in sorted(set(colours.values())):
        first = next(key for key in colours if colours[key] == number)
        words = TITLES["rest" if number == _NAMED + 1 else first]
        wide = 15 + 12 * shapes.CHARACTER * len(words) + 18
        if x > _LEFT and x + wide > width - _RIGHT:
            x, y = float(_LEFT), y + 20
        shown += [shapes.rect(f"p{number}", (x, y - 9, 10, 10)), shapes.text(x + 15, y, words, "")]
        x += wide
    return shown, int(y + 18)
