"""Draws the Pareto front: memory against instructions.

    bytes
      ^  o as it was
      |  o order and plan                   :
      |  +---o                              : allowed
      |      +-----o this file, 2 tiles     :        one staircase for the firmware as it is,
      | - - - -+- -+- - - - - budget - - - -:- -     one with operators added
      |        +- -o                        :   o slower
      | . . . . . . . . . . . the inputs . .:. .
      +-------------------------------------:----> instructions

The axis of bytes begins at zero, that of instructions at those of the original (or below, if a
point is faster). The drawing has both colour schemes, its own background, no script, and nothing
external.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from tflm_planner.report.document import ParetoFront, ParetoPoint
from tflm_planner.report.svg import shapes
from tflm_planner.report.text.bounds import long_figure
from tflm_planner.report.text.pareto import point_words, slowdown_text
from tflm_planner.report.text.words import shorten
from tflm_planner.tflm.arena.uncertainty import may_need_more

WIDTH = 1000
_TOP, _PLOT = 58.0, 300.0
"""Where the plot begins, and its height, in pixels."""
_TICKS = 46.0
"""Pixels from the plot down to the words below its ticks."""
_ROOMY = 720
"""From so many pixels on the words below the plot share one line with the legend."""
_CLEAR = 15.0
"""The fewest pixels between two labels."""
_CHARACTER = 12 * shapes.CHARACTER

# Plain classes rather than CSS variables: librsvg and Inkscape know no var().
_STYLE = """
.tff text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",
sans-serif;font-size:12px;fill:#4b5563;font-variant-numeric:tabular-nums}
.tff .bg{fill:#fff;stroke:#e3e7ee}.tff .plot{fill:#f7f9fc}.tff .beyond{fill:#eef1f6}
.tff .grid{stroke:#e3e8f0}.tff .axis{stroke:#9aa5b4}
.tff .h1{font-size:16px;font-weight:600;fill:#111827}
.tff .steps,.tff .added{fill:none;stroke:#3f78c9;stroke-width:2}
.tff .added{stroke:#8a5cc7;stroke-dasharray:6 3}
.tff .tiled{fill:#3f78c9}.tff .plan{fill:#3f78c9}.tff .stock{fill:#c2334d}
.tff .more{fill:#8a5cc7}
.tff .chosen{fill:#0f7b53;stroke:#fff;stroke-width:2}
.tff .slower{fill:#fff;stroke:#8a95a5;stroke-width:1.6}
.tff .allowed{stroke:#9aa5b4;stroke-dasharray:5 4}
.tff .budget{stroke:#c77700;stroke-width:1.5;stroke-dasharray:7 4}
.tff .floor{stroke:#8a95a5;stroke-dasharray:2 4}
.tff .was{fill:#c2334d;font-weight:600}.tff .now{fill:#0f7b53;font-weight:700;font-size:13px}
.tff .lab,.tff .was,.tff .now,.tff .far{paint-order:stroke;stroke:#f7f9fc;stroke-width:4px}
.tff .far{fill:#6b7280;stroke:#eef1f6}
.tff .cap{fill:#c77700;font-weight:600}.tff .soft{fill:#6b7280}
@media screen and (prefers-color-scheme:dark){
.tff text{fill:#a9b4c3}.tff .bg{fill:#10161f;stroke:#263041}.tff .plot{fill:#151d29}
.tff .beyond{fill:#10161f}.tff .grid{stroke:#243043}.tff .axis,.tff .allowed{stroke:#56657a}
.tff .h1{fill:#f1f5f9}.tff .steps{stroke:#6ea3ec}.tff .tiled,.tff .plan{fill:#6ea3ec}
.tff .added{stroke:#b892ea}.tff .more{fill:#b892ea}
.tff .stock,.tff .was{fill:#ff8a9d}.tff .chosen,.tff .now{fill:#4fd1a0}
.tff .chosen,.tff .slower{stroke:#10161f}.tff .slower{fill:#151d29;stroke:#8a95a5}
.tff .lab,.tff .was,.tff .now{stroke:#151d29}.tff .far{fill:#94a3b8;stroke:#10161f}
.tff .budget{stroke:#f0b04f}.tff .cap{fill:#f0b04f}.tff .soft{fill:#94a3b8}}
"""
_LEGEND = (
    ("tiled", "firmware as it is"),
    ("more", "operators added"),
    ("chosen", "this file"),
    ("slower", "slower than allowed"),
)
_LINE = 14.0
"""Pixels from one line of text to the next."""
_ABOVE = 5.0
"""Pixels from a level up to its words."""
_TEXT_STYLE = {"stock": "was", "chosen": "now", "slower": "far"}


@dataclass(frozen=True, slots=True)
class _FrontPlot:
    """The scale of the plot: bytes over its whole height, and the slowdowns at its left and right
    end. allowed: the slowdown from which on points are slower than allowed. width: of the whole
    drawing, in pixels."""

    bytes: int
    low: float
    high: float
    allowed: float
    width: int

    def x(self, slowdown: float) -> float:
        return self.left + self.wide * (slowdown - self.low) / (self.high - self.low)

    def y(self, size: float) -> float:
        return self.bottom - _PLOT * size / self.bytes

    @property
    def is_roomy(self) -> bool:
        return self.width >= _ROOMY

    @property
    def left(self) -> float:
        return 66.0 if self.is_roomy else 50.0

    @property
    def right(self) -> float:
        return self.width - (40.0 if self.is_roomy else 14.0)

    @property
    def edge(self) -> float:
        """Where what is slower than allowed begins."""
        return min(self.x(self.allowed), self.right)

    @property
    def wide(self) -> float:
        return self.right - self.left

    @property
    def bottom(self) -> float:
        return _TOP + _PLOT


def pareto_svg(
    front: ParetoFront, *, inputs: int, arena_limit: int | None, title: str, width: int = WIDTH
) -> str:
    """A drawing of `front`. inputs: bytes of all inputs (L0), a lower bound. arena_limit: bytes
    that the arena may take; None if there is no limit. width: in pixels, at least 360."""
    plane, limit = _plane(front, arena_limit, max(360, width)), arena_limit
    of_points = [*_labels(plane, front.points)]
    words = [*of_points]
    footer, height = _footer(plane, front)
    body = [
        shapes.text(20, 30, shorten(title, int((plane.width - 40) / 9)), "h1"),
        *_ground(plane, [inputs] if limit is None else [inputs, limit]),
        *_level(plane, inputs, "floor", f"the inputs alone: {inputs:,} B", "soft", words),
        *(
            ()
            if limit is None
            else _level(plane, limit, "budget", f"budget {limit:,} B", "cap", words)
        ),
        *_stairs(plane, front),
        *(_dot(plane, p, front) for p in sorted(front.points, key=lambda p: p.role == "chosen")),
        *(label.drawn for label in of_points),
        *footer,
    ]
    least = min((p.size for p in front.points), default=0)
    down = long_figure(least, front.bound)
    label = shorten(f"{title}: down to {down} of {front.objective}", 300)
    return shapes.drawing("tff", (plane.width, height), label, _STYLE, body)


def _plane(front: ParetoFront, arena_limit: int | None, width: int) -> _FrontPlot:
    sizes = [p.size for p in front.points]
    slowdowns = [p.slowdown for p in front.points]
    high = max(*slowdowns, min(front.allowed, 1.5), 1.05)
    low = min(*slowdowns, 1.0)
    margin = 0.04 * (high - low)
    most = int(1.06 * max(*sizes, arena_limit or 0, 1))
    return _FrontPlot(most, low - margin, high + 3 * margin, front.allowed, width)


def _ground(plane: _FrontPlot, levels: Sequence[int]) -> Iterator[Element]:
    """Yield the background with grid and axes. The part that is slower than allowed has another
    shade. levels: bytes of the levels whose words must stay free."""
    yield shapes.rect("plot", _box(plane.left, plane.right, plane))
    edge = plane.edge
    if edge < plane.right:
        yield shapes.rect("beyond", _box(edge, plane.right, plane))
    for tick in shapes.byte_ticks(plane.bytes, plane.bottom - _TOP):
        y = plane.y(tick)
        yield shapes.line("grid", plane.left, y, plane.right, y)
        yield shapes.text(plane.left - 8, y + 4, shapes.short_size(tick), "", "end")
    for percent in _percents(plane):
        x = plane.x(1 + percent / 100)
        yield shapes.line("grid", x, _TOP, x, plane.bottom)
        yield shapes.text(x, plane.bottom + 18, f"{percent:+d} %" if percent else "0", "", "middle")
    yield shapes.line("axis", plane.left, plane.bottom, plane.right, plane.bottom)
    if edge < plane.right:
        yield shapes.line("allowed", edge, _TOP, edge, plane.bottom)
        words = f"allowed: {100 * (plane.allowed - 1):+.0f} %"
        has_room = edge - len(words) * _CHARACTER > plane.left + 6
        x, anchor = (edge - 6, "end") if has_room else (edge + 6, "start")
        yield shapes.text(x, _free_line(plane, levels), words, "soft", anchor)


def _free_line(plane: _FrontPlot, levels: Sequence[int]) -> float:
    """The lowest line of text in the plot that does not touch the words of a level."""
    y = plane.bottom - 8
    while any(abs(y - (plane.y(size) - _ABOVE)) < _LINE for size in levels):
        y -= _LINE
    return y


def _percents(plane: _FrontPlot) -> list[int]:
    """Whole percents for the ticks of the axis, about ten; half as many on a narrow drawing."""
    low, high = 100 * (plane.low - 1), 100 * (plane.high - 1)
    most = 12 if plane.is_roomy else 6
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000, 10**9) if (high - low) / s <= most)
    return [p for p in range(-10 * step, int(high) + 1, step) if p >= low]


def _box(left: float, right: float, plane: _FrontPlot) -> tuple[float, float, float, float]:
    return left, _TOP, right - left, plane.bottom - _TOP


@dataclass(frozen=True, slots=True)
class _Label:
    """Words in the plot: from where to where they reach, and their base line."""

    drawn: Element
    left: float
    right: float
    y: float

    def meets(self, left: float, right: float, y: float) -> bool:
        return abs(y - self.y) < _CLEAR and left <= self.right and self.left <= right


def _level(
    plane: _FrontPlot, size: int, style: str, words: str, text: str, labels: list[_Label]
) -> Iterator[Element]:
    """Yield a horizontal line at `size` bytes, with a label above it, left of what is slower than
    allowed, or where else, from the right end on, it touches none of the `labels`, to
    which it is added."""
    y, wide = plane.y(size), len(words) * _CHARACTER
    yield shapes.line(style, plane.left, y, plane.right, y)
    last = plane.right - 6
    ends = [plane.edge - 6, last, plane.left + 6 + wide]
    ends += [last - 20 * step for step in range(1, int(plane.wide / 20))]
    inside = [end for end in ends if end - wide > plane.left] or [last]
    places = [(end, base) for base in (y - _ABOVE, y + _LINE) for end in inside]

    def is_free(place: tuple[float, float]) -> bool:
        end, base = place
        return not any(label.meets(end - wide, end, base) for label in labels)

    x, base = next(filter(is_free, places), places[0])
    label = _Label(shapes.text(x, base, words, text, "end"), x - wide, x, base)
    labels.append(label)
    yield label.drawn


def _stairs(plane: _FrontPlot, front: ParetoFront) -> Iterator[Element]:
    """Yield the fewest bytes as a function of the allowed instructions, as staircases: one for the
    unchanged firmware, one with further operators. They never rise, because slower points that are
    not smaller are left out."""
    ways = [p for p in front.points if p.role not in ("stock", "slower")]
    ways.sort(key=lambda p: (p.slowdown, p.size))
    end = shapes.number(plane.edge)
    if any(p.added for p in ways):
        yield shapes.path("added", f"{_path(plane, ways)}H{end}")
    if own := [p for p in ways if not p.added]:
        yield shapes.path("steps", f"{_path(plane, own)}H{end}")


def _path(plane: _FrontPlot, ways: Sequence[ParetoPoint]) -> str:
    least = ways[0]
    path = f"M{shapes.number(plane.x(least.slowdown))} {shapes.number(plane.y(least.size))}"
    for p in ways[1:]:
        if p.size < least.size:
            path, least = path + _step(plane, p), p
    return path


def _step(plane: _FrontPlot, point: ParetoPoint) -> str:
    return f"H{shapes.number(plane.x(point.slowdown))}V{shapes.number(plane.y(point.size))}"


def _dot(plane: _FrontPlot, point: ParetoPoint, front: ParetoFront) -> Element:
    radius = 8 if point.role == "chosen" else 5
    added = shorten(f"registers {', '.join(point.added) or 'nothing'}", 300)
    speed = slowdown_text(point) or "0 %"
    size = long_figure(point.size, front.bound)
    hover = f"{size}\n{speed} instructions\n{point_words(point)}\n{added}"
    x, y = plane.x(point.slowdown), plane.y(point.size)
    return shapes.circle(_tone(point), x, y, radius, hover)


def _tone(point: ParetoPoint) -> str:
    return "more" if point.role == "tiled" and point.added else point.role


def _labels(plane: _FrontPlot, points: Sequence[ParetoPoint]) -> Iterator[_Label]:
    """Yield the bytes beside the points where they fit. Named points are labelled first."""
    ranks = {"chosen": 0, "stock": 1, "plan": 2, "slower": 4}
    found: list[_Label] = []
    for p in sorted(points, key=lambda p: (ranks.get(p.role, 3), p.size)):
        for words in _spellings(p):
            label = _label(plane, p, words)
            if label and not any(o.meets(label.left, label.right, label.y) for o in found):
                found.append(label)
                yield label
                break


def _spellings(p: ParetoPoint) -> tuple[str, ...]:
    """What may stand beside a point, the longest first."""
    size = f"{p.size:,} B"
    if p.role == "chosen":
        return f"{size}  this file, {slowdown_text(p)}", f"{size}  this file", size
    if p.role in ("stock", "plan"):
        return f"{size}  {point_words(p)}", size
    return (size,)


def _label(plane: _FrontPlot, p: ParetoPoint, words: str) -> _Label | None:
    """The words on the right of a point, else on its left; None where neither has room."""
    wide = len(words) * _CHARACTER
    x, y, anchor = plane.x(p.slowdown) + 12, plane.y(p.size) - 7, "start"
    if x + wide > plane.right:
        x, anchor = plane.x(p.slowdown) - 12, "end"
    left = x if anchor == "start" else x - wide
    if left < plane.left:
        return None
    drawn = shapes.text(x, y, words, _TEXT_STYLE.get(p.role, "lab"), anchor)
    return _Label(drawn, left, left + wide, y)


def _footer(plane: _FrontPlot, front: ParetoFront) -> tuple[list[Element], int]:
    """What the axes are and the legend, and the height of the drawing with them."""
    unit = "bytes of arena" if front.objective == "arena" else "bytes of head"
    unit = f"{unit}, {front.bound}" if may_need_more(front.bound) else unit
    shown = {_tone(p) for p in front.points}
    entries = [e for e in _LEGEND if e[0] in shown]
    y = plane.bottom + _TICKS
    if plane.is_roomy:
        words = shapes.text(plane.left, y, f"{unit}, against instructions beside the source's", "")
        start = plane.right - sum(_legend_width(words) for _, words in entries) + 16
        return [words, *_legend(entries, start, y)], int(y + 16)
    drawn = [
        shapes.text(plane.left, y, f"up: {unit}", ""),
        shapes.text(plane.left, y + 20, "across: instructions, beside the source's", ""),
    ]
    y += 44
    row: list[tuple[str, str]] = []
    for entry in entries:
        if row and sum(_legend_width(words) for _, words in [*row, entry]) > plane.wide + 16:
            drawn += _legend(row, plane.left + 5, y)
            row, y = [], y + 20
        row.append(entry)
    return [*drawn, *_legend(row, plane.left + 5, y)], int(y + 18)


def _legend(entries: Sequence[tuple[str, str]], x: float, y: float) -> Iterator[Element]:
    """Yield a row of the legend whose first circle has its centre at x."""
    for tone, words in entries:
        yield shapes.circle(tone, x, y - 4, 5)
        yield shapes.text(x + 11, y, words, "")
        x += _legend_width(words)


def _legend_width(words: str) -> float:
    return 11 + _CHARACTER * len(words) + 16
