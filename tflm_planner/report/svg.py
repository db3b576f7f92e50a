"""SVG by hand: a few elements as text, coordinates to a tenth of a pixel, and ticks of axes.

It must not know what is drawn. Every text is escaped.
"""

from __future__ import annotations

from html import escape

from tflm_planner.report.text import safe_text

CHARACTER = 0.56
"""Mean width of a character, in font sizes."""


def line(style: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """A line with the style of a class."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line class="{style}" {ends}/>'


def text(x: float, y: float, words: str, style: str, anchor: str = "start") -> str:
    """Words at a point; `anchor`: which end of them is there."""
    name = f' class="{style}"' if style else ""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text{name} x="{number(x)}" y="{number(y)}"{place}>{escape(safe_text(words))}</text>'


def rect(box: tuple[float, float, float, float]) -> str:
    """The attributes of a rectangle: left, top, width, height."""
    x, y, w, h = map(number, box)
    return f'x="{x}" y="{y}" width="{w}" height="{h}"'


def byte_ticks(scale: int, height: float) -> range:
    """Multiples of a power of two, at least 36 pixels apart."""
    step = 1
    while step * height / scale < 36:
        step *= 2
    return range(0, scale + 1, step)


def step_ticks(steps: int, width: float) -> range:
    """Multiples of 1, 2 or 5 times a power of ten, at least 34 pixels apart."""
    most, step, factors = max(1, int(width / 34)), 1, (2, 2.5, 2)
    turn = 0
    while steps / step > most:
        step, turn = int(step * factors[turn % 3]), turn + 1
    return range(0, steps, step)


def short_size(size: int) -> str:
    """Bytes for an axis: 512, 16K, 1.5M; whole numbers where they are."""
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f}".removesuffix(".0") + unit
    return f"{size}"


def number(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")
