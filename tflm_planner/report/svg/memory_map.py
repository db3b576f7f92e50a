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
from dataclasses import dataclass
from math import inf
from xml.etree.ElementTree import Element

from tflm_planner.report.document import MapBlock, MemoryMap
from tflm_planner.report.svg import shapes
from tflm_planner.report.svg.map_legend import legend, legend_rows, legend_width
from tflm_planner.report.svg.map_overlaps import shared_parts, views_among
from tflm_planner.report.text.bounds import long_figure
from tflm_planner.report.text.words import shorten
from tflm_planner.support.units import human_size
from tflm_planner.tflm.arena.uncertainty import may_need_more

NAMED_BLOCKS = 1500
"""How many of the largest rectangles have a hover text; the others are merged into a few paths."""

_AXIS = "operators in execution order"
_LABELLED_BLOCKS = 400
_NAME = 100
_TONES = 3

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

_FIXED = {"input": "in", "output": "out", "scratch": "scr"}


@dataclass(frozen=True, slots=True)
class _PlotArea:
    """The area of a plot: its pixels, how many operators and bytes it spans, and the id of the
    pattern that marks shared bytes."""

    left: float
    top: float
    width: float
    height: float
    steps: int
    scale: int
    hatch: str

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, step: float) -> float:
        return self.left + self.width * step / self.steps

    def y(self, offset: float) -> float:
        return self.bottom - self.height * offset / self.scale


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
    frame = _PlotArea(58, 52, width - 58 - 20, height - 52 - 66, _steps(memory_map), top, hatch)
    line = f"head {long_figure(memory_map.head, memory_map.bound)}"
    body = [
        shapes.text(20, 30, shorten(title, int((width - 240) / 9)), "h1"),
        shapes.text(width - 20, 30, line, "headt", "end"),
        *_panel(frame, memory_map, side, ticks=True),
        _rule(frame, memory_map.head, "head"),
        *_footer(frame, width, height, _colours(memory_map)),
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
    first = _PlotArea(left, top, map_width, tall, _steps(before), scale, hatch)
    second = _PlotArea(left + map_width + gap, top, map_width, tall, _steps(after), scale, hatch)
    body = [
        shapes.text(20, 32, shorten(title, int((width - 40) / 9)), "h1"),
        *_both_panels((first, before), (second, after), ticks=False),
        *_footer(first, width, height, _colours(before, after)),
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
    first = _PlotArea(left, top, across, tall, _steps(before), scale, hatch)
    below = first.bottom + 110
    second = _PlotArea(left, below, across, tall, _steps(after), scale, hatch)
    rows = legend_rows(_colours(before, after), across)
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
    first: tuple[_PlotArea, MemoryMap], second: tuple[_PlotArea, MemoryMap], *, ticks: bool
) -> Iterator[Element]:
    """Yield both maps with their heads and the bytes saved. ticks: whether the second has ticks of
    its own."""
    (left, before), (right, after) = first, second
    yield from _figure(left, "before", before)
    yield from _figure(right, "after", after)
    yield from _gain(right, before.head, after.head)
    yield from _panel(left, before, "before", ticks=True)
    yield from _panel(right, after, "after", ticks=ticks)
    yield _rule(left, before.head, "head")
    yield _rule(right, before.head, "was")
    yield _rule(right, after.head, "now")
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


def _figure(frame: _PlotArea, caption: str, memory_map: MemoryMap) -> Iterator[Element]:
    """Yield the head above a panel: caption, large number, bytes."""
    head = memory_map.head
    caption += f", {memory_map.bound}" if may_need_more(memory_map.bound) else ""
    number = f"{head / 1024:,.1f} KiB" if head >= 1024 else f"{head:,} B"
    yield shapes.text(frame.left, frame.top - 62, caption, "cap")
    yield shapes.text(frame.left, frame.top - 34, number, "big")
    if head >= 1024:
        yield shapes.text(frame.left, frame.top - 16, f"{head:,} bytes of head", "")


def _gain(frame: _PlotArea, before: int, after: int) -> Iterator[Element]:
    """Yield the change in percent, above the right end of a panel."""
    if before and before != after:
        sign = "\N{MINUS SIGN}" if after < before else "+"
        share = f"{sign}{100 * abs(before - after) / before:.1f} %"
        yield shapes.text(
            frame.right, frame.top - 34, share, "gain" if after < before else "big", "end"
        )
    else:
        yield shapes.text(frame.right, frame.top - 34, "same head", "cap", "end")


def _saving(frame: _PlotArea, before: int, after: int) -> Iterator[Element]:
    """Yield an arrow from the old head down to the new one, if there is enough space for it."""
    top, bottom = frame.y(before) + 2, frame.y(after) - 2
    if bottom - top < 26:
        return
    x, middle = frame.right - 16, (top + bottom) / 2
    yield shapes.line("span", x, top, x, bottom - 6)
    yield shapes.path("tip", f"M{shapes.number(x - 4)} {shapes.number(bottom - 7)}h8l-4 7z")
    yield shapes.text(x - 8, middle + 4, f"{before - after:,} bytes saved", "nowt", "end")


def _panel(frame: _PlotArea, memory_map: MemoryMap, side: str, *, ticks: bool) -> Iterator[Element]:
    area = frame.left, frame.top, frame.width, frame.height
    yield shapes.rect("plot", area, data_side=side, data_steps=frame.steps)
    for tick in shapes.byte_ticks(frame.scale, frame.height):
        y = frame.y(tick)
        yield shapes.line("grid", frame.left, y, frame.right, y)
        if ticks:
            yield shapes.text(frame.left - 8, y + 4, shapes.short_size(tick), "", "end")
    yield from _rectangles(frame, memory_map)
    yield shapes.line("axis", frame.left, frame.bottom, frame.right, frame.bottom)
    for step in shapes.step_ticks(len(memory_map.steps), frame.width):
        yield shapes.text(frame.x(step + 0.5), frame.bottom + 20, f"{step:,}", "", "middle")
    yield from _peak(frame, memory_map)


def _peak(frame: _PlotArea, memory_map: MemoryMap) -> Iterator[Element]:
    """Yield a small triangle under the axis, at the operator with the most live bytes."""
    peak = memory_map.peak_step
    if peak is None:
        return
    place = next(i for i, step in enumerate(memory_map.steps) if step is peak)
    x, y = frame.x(place + 0.5), frame.bottom + 1.5
    live = long_figure(peak.live_bytes, memory_map.bound)
    hover = f"peak: {live} live at {place} {shorten(peak.operator, 40)}"
    yield shapes.path("peak", f"M{shapes.number(x)} {shapes.number(y)}l4 6h-8z", hover)


def _rectangles(frame: _PlotArea, memory_map: MemoryMap) -> Iterator[Element]:
    """Yield the blocks: large ones with a hover text, the others merged into a path per colour."""
    order = sorted(memory_map.blocks, key=lambda b: (b.start, b.offset, b.name))
    tones = _tones(order)
    by_area = sorted(range(len(order)), key=lambda i: -order[i].size * _span(order[i]))
    named = set(by_area[:NAMED_BLOCKS])
    views = set(views_among(order, by_area[:_LABELLED_BLOCKS]))
    merged: dict[str, list[str]] = {}
    for i, block in enumerate(order):
        if i not in named:
            x, y, w, h = map(shapes.number, _box(frame, block))
            merged.setdefault(tones[i], []).append(f"M{x} {y}h{w}v{h}H{x}z")
    for tone, paths in sorted(merged.items()):
        yield shapes.path(tone, "".join(paths))
    for i, block in enumerate(order):
        if i in named:
            box = _box(frame, block)
            edge = " edge" if box[2] > 4 and box[3] > 3 else ""
            inside = " view" if i in views else ""
            life = {"data_start": block.start, "data_end": block.end}
            hover = _hover(block, memory_map)
            yield shapes.rect(f"b {tones[i]}{edge}{inside}", box, hover, **life)
    largest = [order[i] for i in by_area[:_LABELLED_BLOCKS]]
    shared = shared_parts(largest, _LABELLED_BLOCKS)
    for block in shared:
        yield shapes.rect("shr", _box(frame, block), fill=f"url(#{frame.hatch})")
    yield from _labels(frame, largest, shared)


def _clear_boxes(
    frame: _PlotArea, block: MapBlock, shared: Sequence[MapBlock]
) -> list[tuple[float, float, float, float]]:
    """The boxes of a block in which a label may be placed, the largest first: left, right, below
    and above its hatched part."""
    x, y, w, h = _box(frame, block)
    hatched = [box for part in shared if _touch((x, y, w, h), box := _box(frame, part))]
    if not hatched:
        return [(x, y, w, h)]
    left, top = min(b[0] for b in hatched), min(b[1] for b in hatched)
    right, bottom = (max(b[i] + b[i + 2] for b in hatched) for i in (0, 1))
    clear = [
        (x, y, left - x, h),
        (right, y, x + w - right, h),
        (x, y, w, top - y),
        (x, bottom, w, y + h - bottom),
    ]
    return sorted(clear, key=lambda b: -max(b[2], 0) * max(b[3], 0))


def _labels(
    frame: _PlotArea, blocks: Sequence[MapBlock], shared: Sequence[MapBlock]
) -> Iterator[Element]:
    """Yield labels with name and size inside the rectangles, larger ones first. A label must not
    cover another one or lie on hatching."""
    label_boxes: list[tuple[float, float, float, float]] = []
    for block in blocks:
        x, y, w, h = _clear_boxes(frame, block, shared)[0]
        room = int((w - 8) / (10 * shapes.CHARACTER))
        size, lines = shapes.short_size(block.size), list[str]()
        if h >= 14 and room >= len(size):
            lines = [size]
        if lines and h >= 28 and room >= 14:
            lines = [shorten(block.name, room), size]
        wide, tall = 10 * shapes.CHARACTER * max(map(len, lines), default=0), 12 * len(lines)
        box = (x + (w - wide) / 2, y + (h - tall) / 2, wide, tall)
        if not lines or any(_touch(box, other) for other in label_boxes):
            continue
        label_boxes.append(box)
        for i, line in enumerate(lines):
            middle = y + h / 2 + 3.5 + 12 * (i - (len(lines) - 1) / 2)
            yield shapes.text(x + w / 2, middle, line, "lab", "middle")


def _touch(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    apart = a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
    return not apart


def _hover(block: MapBlock, memory_map: MemoryMap) -> str:
    """Name, size, offset and life span of a block, in one line each."""
    first, last = block.start, block.end - 1
    steps = memory_map.steps
    types = [shorten(steps[i].operator, 24) if i < len(steps) else "end" for i in (first, last)]
    span = f"operator {first} {types[0]}"
    if last > first:
        span = f"operators {first} {types[0]} to {last} {types[1]}"
    place = f"offset {block.offset:,} to {block.offset + block.size:,}"
    return f"{shorten(block.name, _NAME)}\n{block.kind}, {human_size(block.size)}\n{place}\n{span}"


def _tones(blocks: Sequence[MapBlock]) -> list[str]:
    """A colour class for each block; successive activations have different shades."""
    tones, turn = list[str](), 0
    for block in blocks:
        tone = _FIXED.get(block.kind)
        if tone is None:
            tone, turn = f"a{turn}", (turn + 1) % _TONES
        tones.append(tone)
    return tones


def _colours(*maps: MemoryMap) -> set[str]:
    """The colour classes that the legend must explain."""
    used = {_FIXED.get(block.kind, "a0") for memory_map in maps for block in memory_map.blocks}
    for memory_map in maps:
        by_area = sorted(memory_map.blocks, key=lambda b: -b.size * _span(b))
        if shared_parts(by_area[:_LABELLED_BLOCKS], _LABELLED_BLOCKS):
            used.add("shr")
    return used


def _footer(frame: _PlotArea, width: int, height: int, colours: set[str]) -> Iterator[Element]:
    """Yield the name of the axis on the left, and the legend on the right."""
    y = height - 18
    yield shapes.text(frame.left, y, _AXIS, "")
    (entries,) = legend_rows(colours, inf)
    x = width - 20 - sum(legend_width(words) for _, words in entries) + 10
    yield from legend(entries, x, y, frame.hatch)


def _rule(frame: _PlotArea, head: int, style: str) -> Element:
    return shapes.line(style, frame.left, frame.y(head), frame.right, frame.y(head))


def _box(frame: _PlotArea, block: MapBlock) -> tuple[float, float, float, float]:
    """Left, top, width and height of a block in pixels; at least half a pixel wide and high."""
    x, y = frame.x(block.start), frame.y(block.offset + block.size)
    return x, y, max(0.5, frame.x(block.end) - x), max(0.5, frame.y(block.offset) - y)


def _steps(memory_map: MemoryMap) -> int:
    return max(1, len(memory_map.steps), max((b.end for b in memory_map.blocks), default=1))


def _span(block: MapBlock) -> int:
    return block.end - block.start
