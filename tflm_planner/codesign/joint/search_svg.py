"""Draws arena against accuracy of the networks that searches scored as SVG. Each network is a dot,
and each search has the line of its Pareto front. Rings are the networks that a count of activations
would choose, at the arena that they really need.

The drawing has a light and a dark colour scheme, its own background, no script and nothing
external.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from tflm_planner.codesign.joint.evolution import SearchHistory
from tflm_planner.report.svg import shapes

_WIDTH, _HEIGHT = 900, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 30.0, 58.0, 396.0
_TICKS = 5
_STYLE = """
.tjs text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",
sans-serif;font-size:12px;fill:#4b5563;font-variant-numeric:tabular-nums}
.tjs .bg{fill:#fff;stroke:#e3e7ee}.tjs .plot{fill:#f7f9fc}.tjs .grid{stroke:#e3e8f0}
.tjs .h1{font-size:16px;font-weight:600;fill:#111827}
.tjs .dot0{fill:#3f78c9;opacity:.45}.tjs .line0{stroke:#3f78c9;stroke-width:2;fill:none}
.tjs .dot1{fill:#c77700;opacity:.45}.tjs .line1{stroke:#c77700;stroke-width:2;fill:none}
.tjs .key0{fill:#3f78c9;font-weight:600}.tjs .key1{fill:#c77700;font-weight:600}
.tjs .ring{stroke:#7c3aed;stroke-width:1.6;fill:none}.tjs .keyr{fill:#7c3aed;font-weight:600}
@media screen and (prefers-color-scheme:dark){
.tjs text{fill:#a9b4c3}.tjs .bg{fill:#10161f;stroke:#263041}.tjs .plot{fill:#151d29}
.tjs .grid{stroke:#243043}.tjs .h1{fill:#f1f5f9}}
"""

ScoredPoint = tuple[int, float]
"""(bytes of arena, accuracy)."""


def pareto_points(history: SearchHistory) -> list[ScoredPoint]:
    """The Pareto front of a search as (arena, accuracy), the smallest arena first."""
    front: list[ScoredPoint] = []
    for point in sorted(set(_points(history)), key=lambda p: (p[0], -p[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front


def points_of_count(histories: Mapping[str, SearchHistory]) -> list[ScoredPoint]:
    """The Pareto front by counted activations in place of the arena, among the networks of all
    searches: the (arena, accuracy) that these networks really have, the lowest count first."""
    scored = [network for history in histories.values() for network in history.scored]
    front: list[ScoredPoint] = []
    best = -1.0
    for network in sorted(scored, key=lambda n: (n.verdict.counted, -(n.accuracy or 0))):
        if (network.accuracy or 0) > best and network.verdict.arena is not None:
            best = network.accuracy or 0
            front.append((network.verdict.arena, best))
    return front


def search_svg(histories: Mapping[str, SearchHistory], limit: int) -> str:
    """The drawing of one or two searches, by name. limit: bytes that the arena may take."""
    accuracies = [accuracy for history in histories.values() for _, accuracy in _points(history)]
    low, high = min(accuracies, default=0.0), max(accuracies, default=1.0)
    plane = _SearchPlot(limit, low, max(high, low + 0.01))
    title = "Networks that were scored: arena against accuracy"
    body = [shapes.text(20, 30, title, "h1"), *_grid(plane)]
    for place, (name, history) in enumerate(histories.items()):
        body += _search(plane, place, name, history)
    body += _rings(plane, points_of_count(histories))
    body.append(shapes.text(_WIDTH - _RIGHT, _HEIGHT - 14, "bytes of arena", "", "end"))
    return shapes.drawing("tjs", (_WIDTH, _HEIGHT), f"{title}; {limit:,} B at most", _STYLE, body)


@dataclass(frozen=True, slots=True)
class _SearchPlot:
    """The scale of the plot: bytes over its whole width, and the accuracies at its bottom and
    top."""

    bytes: int
    low: float
    high: float

    def at(self, point: ScoredPoint) -> tuple[float, float]:
        size, accuracy = point
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * size / self.bytes
        share = (accuracy - self.low) / (self.high - self.low)
        return x, _BOTTOM - (_BOTTOM - _TOP) * share


def _points(history: SearchHistory) -> Iterator[ScoredPoint]:
    for candidate in history.scored:
        if candidate.verdict.arena is not None and candidate.accuracy is not None:
            yield candidate.verdict.arena, candidate.accuracy


def _grid(plane: _SearchPlot) -> Iterator[Element]:
    right = _WIDTH - _RIGHT
    yield shapes.rect("plot", (_LEFT, _TOP, right - _LEFT, _BOTTOM - _TOP))
    for tick in range(_TICKS + 1):
        accuracy = plane.low + (plane.high - plane.low) * tick / _TICKS
        y = plane.at((0, accuracy))[1]
        yield shapes.line("grid", _LEFT, y, right, y)
        yield shapes.text(_LEFT - 8, y + 4, f"{100 * accuracy:.1f} %", "", "end")
    for size in shapes.byte_ticks(plane.bytes, (right - _LEFT) / 2):
        yield shapes.text(plane.at((size, plane.low))[0], _BOTTOM + 18, shapes.short_size(size), "")


def _search(plane: _SearchPlot, place: int, name: str, history: SearchHistory) -> Iterator[Element]:
    for point in sorted(set(_points(history))):
        words = f"{name}: {point[0]:,} B, {100 * point[1]:.1f} %"
        yield shapes.circle(f"dot{place}", *plane.at(point), 2.5, words)
    front = [plane.at(point) for point in pareto_points(history)]
    if front:
        corners = " L".join(f"{shapes.number(x)} {shapes.number(y)}" for x, y in front)
        yield shapes.path(f"line{place}", f"M{corners}")
    yield shapes.text(_LEFT + 160 * place, _HEIGHT - 14, name, f"key{place}")


def _rings(plane: _SearchPlot, points: Sequence[ScoredPoint]) -> Iterator[Element]:
    for point in points:
        words = f"lowest count of activations: {point[0]:,} B, {100 * point[1]:.1f} %"
        yield shapes.circle("ring", *plane.at(point), 5, words)
    yield shapes.text(_LEFT + 320, _HEIGHT - 14, "chosen by a count of activations", "keyr")
