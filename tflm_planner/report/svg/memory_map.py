"""Draws the memory map: operators to the right, offsets upwards, a rectangle for each buffer.

    offset
      ^ - - - - - - - - - - - - -  head
      |       +-----------+
      |  +----+  block    |        hover: name, size, offset, life span
      |  |    |           |
      +--+----+-----------+------> operator, in execution order

The SVG can be shown alone (as in a README) or inside a page. It has both colour schemes by
`prefers-color-scheme`, its own background (the surrounding page may have another scheme), no
script, and nothing external. Its `data-` attributes tell the script of a page operators and life
spans. It must not know reports: it draws maps.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from math import inf
from xml.etree.ElementTree import Element

from tflm_planner.report.document import MemoryMap
from tflm_planner.report.svg import shapes
from tflm_planner.report.svg.map_legend import legend, legend_rows, legend_width
from tflm_planner.report.svg.map_panel import PlotArea, colours, panel, rule, steps_of
from tflm_planner.report.text.bounds import long_figure
from tflm_planner.report.text.words import shorten
from tflm_planner.tflm.arena.uncertainty import may_need_more

_AXIS = "operators in execution order"

# Plain classes rather than CSS variables: librsvg and Inkscape know no var().
_STYLE = """
.tfm text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",
sans-serif;font-size:12px;fill:#4b5563;font-variant-numeric:tabular-nums}
.tfm .bg{fill:#fff;stroke:#e3e7ee}.tfm .plot{fill:#f7f9fc}
.tfm .grid{stroke:#e3e8f0}.tfm .axis{stroke:#9aa5b4}
.tfm .h1{font-size:16px;font-weight:600;fill:#111827}
.tfm .big{font-size:27px;font-weight:700;fill:#111827}
.tfm .cap{font-size:12.5px;font-weight:600;fill:#6b7280}
.tfm .gain{font-size:27px;font-weight:700;fill:#0f7b53}
.tfm .in{fill:#f6bd60}.tfm .out{fill:#76c8a0}.tfm .scr{fill:#c6a6e0}
.tfm .a0{fill:#8db7f0}.tfm .a1{fill:#b3d0f8}.tfm .a2{fill:#74a2e2}
.tfm .dim{opacity:.18}.tfm .band{fill:#0f2340;fill-opacity:.16;pointer-events:none}
.tfm .shr{pointer-events:none}.tfm .hatch{stroke:#0f2340;stroke-width:1.6;stroke-opacity:.55}
.tfm .edge{stroke:#fff;stroke-width:1}.tfm .view{fill-opacity:.4}.tfm .b:hover{opacity:.72}
.tfm .lab{font-size:10px;fill:#0f2340;pointer-events:none}
.tfm .head{stroke:#c2334d;stroke-width:1.6}.tfm .was{stroke:#c2334d;stroke-width:1.2;
stroke-dasharray:5 4;opacity:.75}.tfm .now{stroke:#0f7b53;stroke-width:1.6}
.tfm .headt{fill:#c2334d;font-weight:600}.tfm .nowt{fill:#0f7b53;font-weight:600}
.tfm .span{stroke:#0f7b53;stroke-width:1.4}.tfm .tip{fill:#0f7b53}.tfm .peak{fill:#c2334d}
@media screen and (prefers-color-scheme:dark){
.tfm text{fill:#a9b4c3}.tfm .bg{fill:#10161f;stroke:#263041}.tfm .plot{fill:#151d29}
.tfm .grid{stroke:#243043}.tfm .axis{stroke:#56657a}
.tfm .h1,.tfm .big{fill:#f1f5f9}.tfm .cap{fill:#94a3b8}
.tfm .gain,.tfm .nowt{fill:#4fd1a0}.tfm .headt{fill:#ff8a9d}
.tfm .in{fill:#b5761b}.tfm .out{fill:#2c8560}.tfm .scr{fill:#75539a}
.tfm .a0{fill:#3565a6}.tfm .a1{fill:#4a7fc6}.tfm .a2{fill:#284f86}
.tfm .hatch{stroke:#f1f6ff}.tfm .edge{stroke:#10161f}.tfm .lab{fill:#f1f6ff}
.tfm .band{fill:#f1f6ff}.tfm .head,.tfm .was{stroke:#ff8a9d}.tfm .now,.tfm .span{stroke:#4fd1a0}
.tfm .tip{fill:#4fd1a0}.tfm .peak{fill:#ff8a9d}}
"""


def memory_map_svg(
    memory_map: MemoryMap,
    *,
    title: str,
    side: str = "",
    scale: int | None = None,
    width: int = 1000,
    height: int = 400,
) -> str:
    """A drawing of one map, `width` by `height` pixels.

    `side`: "before" or "after", for the script of a page. `scale`: bytes over the whole height
    (None: the head); maps that are to be compared need the same scale. At least 360 by 200 pixels.
    """
    width, height = max(360, width), max(200, height)
    top = max(1, scale or 0, memory_map.head)
    hatch = _hatch(title)
    frame = PlotArea(58, 52, width - 58 - 20, height - 52 - 66, steps_of(memory_map), top, hatch)
    line = f"head {long_figure(memory_map.head, memory_map.bound)}"
    body = [
        shapes.text(20, 30, shorten(title, int((width - 240) / 9)), "h1"),
        shapes.text(width - 20, 30, line, "headt", "end"),
        *panel(frame, memory_map, side, ticks=True),
        rule(frame, memory_map.head, "head"),
        *_footer(frame, width, height, colours(memory_map)),
    ]
    return _document(width, height, f"{title}: {line}", hatch, body)


def before_after_svg(
    before: MemoryMap,
    after: MemoryMap,
    *,
    title: str,
    width: int = 1000,
    height: int = 440,
) -> str:
    """A drawing of both maps side by side on one scale, with the heads and the bytes saved.

    The README begins with such a drawing. At least 720 by 320 pixels.
    """
    width, height = max(720, width), max(320, height)
    scale = max(1, before.head, after.head)
    hatch = _hatch(title)
    gap, left, top = 34.0, 58.0, 128.0
    map_width = (width - left - 20 - gap) / 2
    tall = height - top - 66
    first = PlotArea(left, top, map_width, tall, steps_of(before), scale, hatch)
    second = PlotArea(left + map_width + gap, top, map_width, tall, steps_of(after), scale, hatch)
    body = [
        shapes.text(20, 32, shorten(title, int((width - 40) / 9)), "h1"),
        *_both_panels((first, before), (second, after), ticks=False),
        *_footer(first, width, height, colours(before, after)),
    ]
    return _document(width, height, _heads_label(title, before, after), hatch, body)


def before_above_after_svg(
    before: MemoryMap, after: MemoryMap, *, title: str, width: int = 420, tall: int = 220
) -> str:
    """A drawing of both maps, one above the other, on one scale, for narrow screens.

    At least 360 pixels wide. Each map is `tall` pixels high.
    """
    width = max(360, width)
    scale = max(1, before.head, after.head)
    hatch = _hatch(f"{title}, narrow")
    left, top = 58.0, 128.0
    across = width - left - 20
    first = PlotArea(left, top, across, tall, steps_of(before), scale, hatch)
    below = first.bottom + 110
    second = PlotArea(left, below, across, tall, steps_of(after), scale, hatch)
    rows = legend_rows(colours(before, after), across)
    words = second.bottom + 42
    body = [
        shapes.text(20, 32, shorten(title, int((width - 40) / 9)), "h1"),
        *_both_panels((first, before), (second, after), ticks=True),
        shapes.text(left, words, _AXIS, ""),
        *(s for i, row in enumerate(rows) for s in legend(row, left, words + 22 * (i + 1), hatch)),
    ]
    height = int(words + 22 * len(rows) + 18)
    return _document(width, height, _heads_label(title, before, after), hatch, body)


def _both_panels(
    first: tuple[PlotArea, MemoryMap], second: tuple[PlotArea, MemoryMap], *, ticks: bool
) -> Iterator[Element]:
    """Yield both maps with their heads and the bytes saved. ticks: whether the second has ticks of
    its own."""
    (left, before), (right, after) = first, second
    yield from _figure(left, "before", before)
    yield from _figure(right, "after", after)
    yield from _gain(right, before.head, after.head)
    yield from panel(left, before, "before", ticks=True)
    yield from panel(right, after, "after", ticks=ticks)
    yield rule(left, before.head, "head")
    yield rule(right, before.head, "was")
    yield rule(right, after.head, "now")
    yield from _saving(right, before.head, after.head)


def _heads_label(title: str, before: MemoryMap, after: MemoryMap) -> str:
    """The title and both heads in words, for screen readers."""
    heads = [long_figure(side.head, side.bound) for side in (before, after)]
    return f"{title}: head {heads[0]} before, {heads[1]} after"


def _hatch(title: str) -> str:
    """An id for the pattern, which differs for drawings with other titles."""
    return f"tfm-{zlib.crc32(title.encode('utf-8', 'replace')):08x}"


def _document(width: int, height: int, label: str, hatch: str, body: Sequence[Element]) -> str:
    turned = {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    pattern = shapes.shape("pattern", id=hatch, width=5, height=5, **turned)
    pattern.append(shapes.path("hatch", "M0 0v5"))
    definitions = shapes.shape("defs")
    definitions.append(pattern)
    return shapes.drawing("tfm", (width, height), shorten(label, 300), _STYLE, [definitions, *body])


def _figure(frame: PlotArea, caption: str, memory_map: MemoryMap) -> Iterator[Element]:
    """Yield the head above a panel: caption, large number, bytes."""
    head = memory_map.head
    caption += f", {memory_map.bound}" if may_need_more(memory_map.bound) else ""
    number = f"{head / 1024:,.1f} KiB" if head >= 1024 else f"{head:,} B"
    yield shapes.text(frame.left, frame.top - 62, caption, "cap")
    yield shapes.text(frame.left, frame.top - 34, number, "big")
    if head >= 1024:
        yield shapes.text(frame.left, frame.top - 16, f"{head:,} bytes of head", "")


def _gain(frame: PlotArea, before: int, after: int) -> Iterator[Element]:
    """Yield the change in percent, above the right end of a panel."""
    if before and before != after:
        sign = "\N{MINUS SIGN}" if after < before else "+"
        share = f"{sign}{100 * abs(before - after) / before:.1f} %"
        yield shapes.text(
            frame.right, frame.top - 34, share, "gain" if after < before else "big", "end"
        )
    else:
        yield shapes.text(frame.right, frame.top - 34, "same head", "cap", "end")


def _saving(frame: PlotArea, before: int, after: int) -> Iterator[Element]:
    """Yield an arrow from the old head down to the new one, if there is enough space for it."""
    top, bottom = frame.y(before) + 2, frame.y(after) - 2
    if bottom - top < 26:
        return
    x, middle = frame.right - 16, (top + bottom) / 2
    yield shapes.line("span", x, top, x, bottom - 6)
    yield shapes.path("tip", f"M{shapes.number(x - 4)} {shapes.number(bottom - 7)}h8l-4 7z")
    yield shapes.text(x - 8, middle + 4, f"{before - after:,} bytes saved", "nowt", "end")


def _footer(frame: PlotArea, width: int, height: int, used: set[str]) -> Iterator[Element]:
    """Yield the name of the axis on the left, and the legend on the right."""
    y = height - 18
    yield shapes.text(frame.left, y, _AXIS, "")
    (entries,) = legend_rows(used, inf)
    x = width - 20 - sum(legend_width(words) for _, words in entries) + 10
    yield from legend(entries, x, y, frame.hatch)
