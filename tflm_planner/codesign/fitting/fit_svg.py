"""Draws multiplications against arena: the networks tried, those that fit, and the board's limit.

The drawing has a light and a dark colour scheme, its own background, no script and nothing
external. Every network whose arena was computed is a dot; those that a lower bound ruled out are
not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from tflm_planner.codesign.fitting.largest import KINDS, Fits
from tflm_planner.codesign.fitting.outcomes import VariantOutcome
from tflm_planner.report.document import RungKind
from tflm_planner.report.svg import shapes
from tflm_planner.report.text.bounds import hedge
from tflm_planner.report.text.fit import LABELS
from tflm_planner.tflm.arena.uncertainty import may_need_more

_WIDTH, _HEIGHT = 1000, 482
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 40.0, 58.0, 100.0
_STYLES: dict[RungKind, str] = {
    "stock": "stock",
    "plan": "plan",
    "tiles": "tiles",
    "more operators": "more",
    "lean": "lean",
    "rows streamed": "rows",
}
_STYLE = """
.tfc text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",
sans-serif;font-size:12px;fill:#4b5563;font-variant-numeric:tabular-nums}
.tfc .bg{fill:#fff;stroke:#e3e7ee}.tfc .plot{fill:#f7f9fc}.tfc .grid{stroke:#e3e8f0}
.tfc .axis{stroke:#9aa5b4}.tfc .h1{font-size:16px;font-weight:600;fill:#111827}
.tfc .stock{fill:#c2334d}.tfc .plan{fill:#3f78c9}.tfc .tiles{fill:#0f7b53}
.tfc .more{fill:#8a5cc7}.tfc .lean{fill:#c77700}.tfc .rows{fill:#0a8fa3}
.tfc .best{fill:none;stroke:#111827}
.tfc .budget{stroke:#c77700;stroke-width:1.5;stroke-dasharray:7 4}
.tfc .cap{fill:#c77700;font-weight:600}
@media screen and (prefers-color-scheme:dark){
.tfc text{fill:#a9b4c3}.tfc .bg{fill:#10161f;stroke:#263041}.tfc .plot{fill:#151d29}
.tfc .grid{stroke:#243043}.tfc .axis{stroke:#56657a}.tfc .h1{fill:#f1f5f9}
.tfc .stock{fill:#ff8a9d}.tfc .plan{fill:#6ea3ec}.tfc .tiles{fill:#4fd1a0}
.tfc .more{fill:#b892ea}.tfc .lean{fill:#f0b04f}.tfc .rows{fill:#56cbe0}
.tfc .best{stroke:#f1f5f9}
.tfc .budget{stroke:#f0b04f}.tfc .cap{fill:#f0b04f}}
"""


@dataclass(frozen=True, slots=True)
class _FitPlot:
    """The scale of the plot: multiplications over its whole width, bytes over its whole height."""

    macs: int
    bytes: int

    def x(self, macs: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * macs / self.macs

    def y(self, size: float) -> float:
        return self.bottom - (self.bottom - _TOP) * size / self.bytes

    @property
    def bottom(self) -> float:
        return _HEIGHT - _BOTTOM


def fit_svg(fits: Fits) -> str:
    """The drawing of the networks that fit."""
    figures = fits.figures
    most = max((figure.variant.size.macs for figure in figures), default=1)
    limits = fits.limits
    highest = max((figure.arena for figure in figures), default=0)
    plane = _FitPlot(int(1.05 * most), int(1.08 * max(highest, limits.arena_limit)))
    board = limits.target.board
    title = f"{fits.family} on {limits.target.id if board is None else board.name}"
    best = [rung.best for rung in fits.rungs if rung.best is not None]
    body = [
        shapes.text(20, 30, title, "h1"),
        *_ground(plane),
        *(_dot(plane, figure) for figure in figures),
        *(_ring(plane, figure) for figure in best),
        *_line(plane, limits.arena_limit),
        *_footer(plane, doubted=any(may_need_more(figure.bound) for figure in best)),
    ]
    label = f"{title}: multiplications against arena, {limits.arena_limit:,} B of SRAM"
    return shapes.drawing("tfc", (_WIDTH, _HEIGHT), label, _STYLE, body)


def _ground(plane: _FitPlot) -> Iterator[Element]:
    right = _WIDTH - _RIGHT
    yield shapes.rect("plot", (_LEFT, _TOP, right - _LEFT, plane.bottom - _TOP))
    for tick in shapes.byte_ticks(plane.bytes, plane.bottom - _TOP):
        y = plane.y(tick)
        yield shapes.line("grid", _LEFT, y, right, y)
        yield shapes.text(_LEFT - 8, y + 4, shapes.short_size(tick), "", "end")
    for tick in shapes.step_ticks(plane.macs, (right - _LEFT) / 2.5):
        yield shapes.text(plane.x(tick), plane.bottom + 18, f"{tick / 1e6:g} M", "", "middle")
    yield shapes.line("axis", _LEFT, plane.bottom, right, plane.bottom)


def _dot(plane: _FitPlot, figure: VariantOutcome) -> Element:
    variant = figure.variant
    arena = f"{hedge(figure.bound) or 'at most ' * figure.at_most}{figure.arena:,} B"
    words = f"{variant.name}, {LABELS[figure.kind]}: {arena}, {variant.size.macs:,} MACs"
    return shapes.circle(_STYLES[figure.kind], *_place(plane, figure), 3.5, words)


def _ring(plane: _FitPlot, figure: VariantOutcome) -> Element:
    return shapes.circle("best", *_place(plane, figure), 7)


def _place(plane: _FitPlot, figure: VariantOutcome) -> tuple[float, float]:
    return plane.x(figure.variant.size.macs), plane.y(figure.arena)


def _line(plane: _FitPlot, arena: int) -> Sequence[Element]:
    y = plane.y(arena)
    words = f"{arena:,} B of SRAM"
    return (
        shapes.line("budget", _LEFT, y, _WIDTH - _RIGHT, y),
        shapes.text(_WIDTH - _RIGHT - 6, y - 6, words, "cap", "end"),
    )


def _footer(plane: _FitPlot, *, doubted: bool) -> Iterator[Element]:
    """Yield the legend. doubted: whether a board may need more than the figures."""
    x, y = _LEFT, plane.bottom + 48
    for kind in KINDS:
        yield shapes.circle(_STYLES[kind], x, y - 4, 4)
        yield shapes.text(x + 10, y, LABELS[kind], "")
        x += 40 + 12 * shapes.CHARACTER * len(LABELS[kind])
    words = f"multiplications of one inference; ring: {'may fit' if doubted else 'fits'}"
    yield shapes.text(_WIDTH - _RIGHT, y + 22, words, "", "end")
