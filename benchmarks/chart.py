"""Line and bar charts as SVG: self-contained, dark or light as the page around, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from tflm_planner.report.svg.shapes import circle, drawing, line, number, path, rect, shape, text

_STYLE = """
.ch text{font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
fill:#4b5563}
.ch .bg{fill:#fff;stroke:#e3e7ee}.ch .grid{stroke:#e3e8f0}.ch .axis{stroke:#9aa5b4}
.ch .v{font-size:9px;paint-order:stroke;stroke:#fff;stroke-width:3px}
.ch .h1{font-size:15px;font-weight:600;fill:#111827}.ch .mark{stroke:#c2334d;stroke-dasharray:5 4}
.ch .markt{fill:#c2334d}.ch path{fill:none!important;stroke-width:2}
.ch .s0{stroke:#9aa5b4;fill:#9aa5b4}.ch .s1{stroke:#2f6fd0;fill:#2f6fd0}
.ch .s2{stroke:#0f7b53;fill:#0f7b53}.ch .s3{stroke:#c77700;fill:#c77700}
.ch .s4{stroke:#8049b8;fill:#8049b8}.ch .s5{stroke:#b3305f;fill:#b3305f}
@media (prefers-color-scheme:dark){.ch .v{stroke:#10161f}
.ch text{fill:#a9b4c3}.ch .bg{fill:#10161f;stroke:#263041}.ch .grid{stroke:#243043}
.ch .axis{stroke:#56657a}.ch .h1{fill:#f1f5f9}.ch .mark{stroke:#ff8a9d}.ch .markt{fill:#ff8a9d}
.ch .s1{stroke:#74a9f5;fill:#74a9f5}.ch .s2{stroke:#4fd1a0;fill:#4fd1a0}
.ch .s3{stroke:#f0b252;fill:#f0b252}.ch .s4{stroke:#bd93ea;fill:#bd93ea}
.ch .s5{stroke:#ff8fb3;fill:#ff8fb3}}
"""
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 128, 58, 44


@dataclass(frozen=True)
class Line:
    """A line with its name; points are (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """A chart. logarithmic: of y, to base 2. marks: horizontal lines with their names."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    marks: Sequence[tuple[str, float]] = ()
    logarithmic: bool = False


def svg(charts: Sequence[Chart], *, width: int = 460, height: int = 330) -> str:
    """Charts side by side."""
    groups: list[Element] = []
    for i, chart in enumerate(charts):
        groups.append(shape("g", transform=f"translate({i * width} 0)"))
        groups[-1].extend(_chart(chart, width, height))
    title = ", ".join(chart.title for chart in charts)
    return drawing("ch", (width * len(charts), height), title, _STYLE, groups)


@dataclass(frozen=True)
class Bars:
    """Groups of bars: each has a name, and a value for each series. y: to base 2. marks: vertical
    positions with their names, drawn across."""

    title: str
    y: str
    series: Sequence[str]
    groups: Sequence[tuple[str, Sequence[float]]]
    marks: Sequence[tuple[str, float]] = ()


def bars(chart: Bars, *, height: int = 330, each: int = 118) -> str:
    """Groups side by side, the values on a logarithmic scale."""
    whole = _LEFT + each * len(chart.groups) + _RIGHT
    right, bottom = whole - _RIGHT, height - _BOTTOM
    values = [v for _, row in chart.groups for v in row] + [v for _, v in chart.marks]
    ticks = _ticks(values, logarithmic=True)
    low, high = math.log2(ticks[0]), math.log2(ticks[-1])

    def up(y: float) -> float:
        return bottom - (math.log2(y) - low) / (high - low) * (bottom - _TOP)

    parts = [text(_LEFT, 24, chart.title, "h1"), text(14, _TOP - 14, chart.y, "")]
    for y in ticks:
        parts.append(line("grid", _LEFT, up(y), right, up(y)))
        parts.append(text(_LEFT - 6, up(y) + 4, f"{y:g}", "", "end"))
    wide = (each - 22) / len(chart.series)
    figures: list[Element] = []
    for g, (name, row) in enumerate(chart.groups):
        left = _LEFT + each * g + 11
        parts.append(text(left + (each - 22) / 2, bottom + 16, name, "", "middle"))
        for k, value in enumerate(row):
            box = (left + wide * k, up(value), wide - 2, bottom - up(value))
            parts.append(rect(f"s{k}", box))
            figures.append(
                text(left + wide * (k + 0.5), up(value) - 3, f"{value:.0f}", "v", "middle")
            )
    for name, y in chart.marks:
        parts.append(line("mark", _LEFT, up(y), right, up(y)))
        parts.append(text(right + 8, up(y) + 4, name, "markt"))
    parts += figures  # over the lines that would strike them out
    parts.append(line("axis", _LEFT, bottom, right, bottom))
    for k, name in enumerate(chart.series):
        parts += [
            circle(f"s{k}", right + 14, _TOP + 6 + 18 * k, 5),
            text(right + 24, _TOP + 10 + 18 * k, name, ""),
        ]
    return drawing("ch", (whole, height), chart.title, _STYLE, parts)


def _chart(chart: Chart, width: int, height: int) -> list[Element]:
    points = [p for curve in chart.lines for p in curve.points]
    values = [y for _, y in points] + [y for _, y in chart.marks]
    xs = sorted({x for x, _ in points})
    ticks = _ticks(values, chart.logarithmic)
    low, high = ticks[0], ticks[-1]
    right, bottom = width - _RIGHT, height - _BOTTOM

    def across(x: float) -> float:
        return _LEFT + (x - xs[0]) / max(xs[-1] - xs[0], 1e-9) * (right - _LEFT)

    def up(y: float) -> float:
        a, b, c = (math.log2(v) for v in (low, high, y)) if chart.logarithmic else (low, high, y)
        return bottom - (c - a) / max(b - a, 1e-9) * (bottom - _TOP)

    parts = [text(_LEFT, 24, chart.title, "h1"), text(14, _TOP - 14, chart.y, "")]
    for y in ticks:
        parts.append(line("grid", _LEFT, up(y), right, up(y)))
        parts.append(text(_LEFT - 6, up(y) + 4, f"{y:g}", "", "end"))
    parts += [text(across(x), bottom + 16, f"{x:g}", "", "middle") for x in xs]
    parts.append(line("axis", _LEFT, bottom, right, bottom))
    parts.append(text((_LEFT + right) / 2, height - 10, chart.x, "", "middle"))
    for name, y in chart.marks:
        parts.append(line("mark", _LEFT, up(y), right, up(y)))
        parts.append(text(right + 8, up(y) + 4, name, "markt"))
    for i, curve in enumerate(chart.lines):
        parts += _curve(i, curve, [(across(x), up(y)) for x, y in curve.points], right)
    return parts


def _curve(
    index: int, curve: Line, places: Sequence[tuple[float, float]], right: int
) -> list[Element]:
    way = "M" + " L".join(f"{number(x)} {number(y)}" for x, y in places)
    y = _TOP + 10 + 18 * index
    return [
        path(f"s{index}", way),
        *(circle(f"s{index}", x, y, 3) for x, y in places),
        circle(f"s{index}", right + 14, y - 4, 5),
        text(right + 24, y, curve.name, ""),
    ]


def _ticks(values: Sequence[float], logarithmic: bool) -> list[float]:
    """Round values around all that is shown."""
    low, high = min(values), max(values)
    if logarithmic:
        first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
        return [2.0**k for k in range(first, last + 1)]
    step = 10 ** math.floor(math.log10(max(high, 1e-9)))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if high / s <= 7)
    return [step * k for k in range(math.ceil(high / step) + 1)]
