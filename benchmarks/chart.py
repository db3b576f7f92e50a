"""Line charts as SVG: self-contained, dark or light as the page around, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_STYLE = """
.ch text{font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
fill:#4b5563}
.ch .bg{fill:#fff;stroke:#e3e7ee}.ch .grid{stroke:#e3e8f0}.ch .axis{stroke:#9aa5b4}
.ch .h1{font-size:15px;font-weight:600;fill:#111827}.ch .mark{stroke:#c2334d;stroke-dasharray:5 4}
.ch .markt{fill:#c2334d}.ch path{fill:none;stroke-width:2}
.ch .s0{stroke:#9aa5b4;fill:#9aa5b4}.ch .s1{stroke:#2f6fd0;fill:#2f6fd0}
.ch .s2{stroke:#0f7b53;fill:#0f7b53}.ch .s3{stroke:#c77700;fill:#c77700}
.ch .s4{stroke:#8049b8;fill:#8049b8}.ch .s5{stroke:#b3305f;fill:#b3305f}
@media (prefers-color-scheme:dark){
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
    whole = width * len(charts)
    body = "".join(
        f'<g transform="translate({i * width} 0)">{_chart(c, width, height)}</g>'
        for i, c in enumerate(charts)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ch" viewBox="0 0 {whole} {height}" '
        f'width="{whole}" height="{height}"><style>{_STYLE}</style>'
        f'<rect class="bg" x=".5" y=".5" width="{whole - 1}" height="{height - 1}" rx="10"/>'
        f"{body}</svg>\n"
    )


def _chart(chart: Chart, width: int, height: int) -> str:
    points = [p for line in chart.lines for p in line.points]
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

    parts = [f'<text class="h1" x="{_LEFT}" y="24">{escape(chart.title)}</text>']
    for y in ticks:
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{up(y):.1f}" '
                     f'y2="{up(y):.1f}"/>')  # fmt: skip
        parts.append(f'<text x="{_LEFT - 6}" y="{up(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in xs:
        parts.append(
            f'<text x="{across(x):.1f}" y="{bottom + 16}" text-anchor="middle">{x:g}</text>'
        )
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    middle = (_LEFT + right) / 2
    parts.append(f'<text x="{middle:.0f}" y="{height - 10}" text-anchor="middle">'
                 f"{escape(chart.x)}</text>")  # fmt: skip
    parts.append(f'<text x="14" y="{_TOP - 14}">{escape(chart.y)}</text>')
    for name, y in chart.marks:
        parts.append(f'<line class="mark" x1="{_LEFT}" x2="{right}" y1="{up(y):.1f}" '
                     f'y2="{up(y):.1f}"/>')  # fmt: skip
        parts.append(f'<text class="markt" x="{right + 8}" y="{up(y) + 4:.1f}">'
                     f"{escape(name)}</text>")  # fmt: skip
    for i, line in enumerate(chart.lines):
        parts += _line(i, line, [(across(x), up(y)) for x, y in line.points], right)
    return "".join(parts)


def _line(index: int, line: Line, places: Sequence[tuple[float, float]], right: int) -> list[str]:
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = [f'<circle class="s{index}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
    y = _TOP + 10 + 18 * index
    key = (
        f'<circle class="s{index}" cx="{right + 14}" cy="{y - 4}" r="5"/>'
        f'<text x="{right + 24}" y="{y}">{escape(line.name)}</text>'
    )
    return [f'<path class="s{index}" style="fill:none" d="{path}"/>', *dots, key]


def _ticks(values: Sequence[float], logarithmic: bool) -> list[float]:
    """Round values around all that is shown."""
    low, high = min(values), max(values)
    if logarithmic:
        first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
        return [2.0**k for k in range(first, last + 1)]
    step = 10 ** math.floor(math.log10(max(high, 1e-9)))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if high / s <= 7)
    return [step * k for k in range(math.ceil(high / step) + 1)]
