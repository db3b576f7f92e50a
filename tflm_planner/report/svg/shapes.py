"""Makes shapes of an SVG, with coordinates to a tenth of a pixel, and ticks of axes. Shapes are
elements of the standard library's XML tree, which escapes all text and attributes. It must not know
what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

from tflm_planner.report.text.safe import safe_text

CHARACTER = 0.56
"""Mean width of a character, relative to the font size."""


def shape(tag: str, style: str = "", hover: str = "", **attributes: str | float) -> Element:
    """An element with the style of a class. hover: text that appears under the pointer. A `_` in an
    attribute's name stands for "-"."""
    element = Element(tag, {"class": style} if style else {})
    for name, value in attributes.items():
        element.set(name.replace("_", "-"), value if isinstance(value, str) else number(value))
    if hover:
        SubElement(element, "title").text = hover
    return element


def line(style: str, x1: float, y1: float, x2: float, y2: float) -> Element:
    """A line with the style of a class."""
    return shape("line", style, x1=x1, y1=y1, x2=x2, y2=y2)


def text(x: float, y: float, words: str, style: str, anchor: str = "start") -> Element:
    """Text at a point. `anchor`: which end of the text is at the point."""
    element = shape("text", style, x=x, y=y)
    if anchor != "start":
        element.set("text-anchor", anchor)
    element.text = safe_text(words)
    return element


def rect(
    style: str, box: tuple[float, float, float, float], hover: str = "", **more: str | float
) -> Element:
    """A rectangle. box: left, top, width, height."""
    x, y, width, height = box
    return shape("rect", style, hover, **more, x=x, y=y, width=width, height=height)


def path(style: str, d: str, hover: str = "") -> Element:
    """A path. d: its path data."""
    return shape("path", style, hover, d=d)


def circle(style: str, x: float, y: float, radius: float, hover: str = "") -> Element:
    """A circle with centre (x, y)."""
    return shape("circle", style, hover, cx=x, cy=y, r=radius)


def drawing(
    style: str, size: tuple[int, int], label: str, css: str, body: Iterable[Element]
) -> str:
    """A complete drawing with a background. `label`: the text for screen readers."""
    width, height = size
    whole = shape("svg", style, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}")
    for name, value in (("width", str(width)), ("height", str(height)), ("role", "img")):
        whole.set(name, value)
    whole.set("aria-label", safe_text(label))
    sheet = SubElement(whole, "style")
    sheet.text = css
    background = rect("bg", (0.5, 0.5, width - 1, height - 1), rx=12)
    for part in (background, *body):
        part.tail = "\n"
        whole.append(part)
    return tostring(whole, encoding="unicode") + "\n"


def byte_ticks(scale: int, height: float) -> range:
    """Ticks at multiples of a power of two, at least 36 pixels apart."""
    step = 1
    while step * height / scale < 36:
        step *= 2
    return range(0, scale + 1, step)


def step_ticks(steps: int, width: float) -> range:
    """Ticks at multiples of 1, 2 or 5 times a power of ten, at least 34 pixels apart."""
    most, step, factors = max(1, int(width / 34)), 1, (2, 2.5, 2)
    turn = 0
    while steps / step > most:
        step, turn = int(step * factors[turn % 3]), turn + 1
    return range(0, steps, step)


def short_size(size: int) -> str:
    """Bytes in short form for an axis: 512, 16K, 1.5M."""
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f}".removesuffix(".0") + unit
    return f"{size}"


def number(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")
