"""Draws the legend of memory maps, in one row or in several.

    # input   # activation   # output
    # scratch   # shared bytes   ^ peak

It must not know maps: it is told which colours they use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from tflm_planner.report.svg import shapes

_LEGEND = (
    ("in", "input"),
    ("a0", "activation"),
    ("out", "output"),
    ("scr", "scratch"),
    ("shr", "shared bytes"),
    ("peak", "peak"),
)


def legend_rows(colours: set[str], width: float) -> list[list[tuple[str, str]]]:
    """The entries (class, words) of the legend that these colours need, in rows of at most `width`
    pixels."""
    rows: list[list[tuple[str, str]]] = [[]]
    left = width
    for entry in _LEGEND:
        if entry[0] not in colours and entry[0] != "peak":
            continue
        if rows[-1] and legend_width(entry[1]) > left:
            rows.append([])
            left = width
        rows[-1].append(entry)
        left -= legend_width(entry[1])
    return rows


def legend(entries: Sequence[tuple[str, str]], x: float, y: float, hatch: str) -> Iterator[Element]:
    """Yield a row of the legend that begins at (x, y)."""
    for tone, words in entries:
        if tone == "peak":
            yield shapes.path("peak", f"M{shapes.number(x + 5)} {shapes.number(y - 8)}l4 7h-8z")
        else:
            box = (x, y - 9, 10, 10)
            yield shapes.rect("a0" if tone == "shr" else tone, box)
            if tone == "shr":
                yield shapes.rect("shr", box, fill=f"url(#{hatch})")
        yield shapes.text(x + 15, y, words, "")
        x += legend_width(words)


def legend_width(words: str) -> float:
    """Pixels that an entry with these words takes."""
    return 15 + 12 * shapes.CHARACTER * len(words) + 14
