"""One panel of the memory map: the rectangles of the buffers, their labels, and the axes.

    operators to the right, offsets upwards; a rectangle for each buffer, named where there is room
    hatched: bytes that two buffers share       a triangle under the axis: most live bytes

`memory_map` puts panels into drawings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from tflm_planner.report.document import MapBlock, MemoryMap
from tflm_planner.report.svg import shapes
from tflm_planner.report.svg.map_overlaps import shared_parts, views_among
from tflm_planner.report.text.bounds import long_figure
from tflm_planner.report.text.words import shorten
from tflm_planner.support.units import human_size

NAMED_BLOCKS = 1500
"""How many of the largest rectangles have a hover text; the others are merged into a few paths."""

_LABELLED_BLOCKS = 400
_NAME = 100
_TONES = 3
_FIXED = {"input": "in", "output": "out", "scratch": "scr"}


@dataclass(frozen=True, slots=True)
class PlotArea:
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
        """The pixel of the right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The pixel of the lower edge, where offsets are 0."""
        return self.top + self.height

    def x(self, step: float) -> float:
        """The pixel of an operator's start, by its place in execution order."""
        return self.left + self.width * step / self.steps

    def y(self, offset: float) -> float:
        """The pixel of an offset in bytes."""
        return self.bottom - self.height * offset / self.scale


def panel(frame: PlotArea, memory_map: MemoryMap, side: str, *, ticks: bool) -> Iterator[Element]:
    """Yield a map with its axes. side: "before", "after" or "". ticks: whether offsets are
    labelled."""
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


def _peak(frame: PlotArea, memory_map: MemoryMap) -> Iterator[Element]:
    """Yield a small triangle under the axis, at the operator with the most live bytes."""
    peak = memory_map.peak_step
    if peak is None:
        return
    place = next(i for i, step in enumerate(memory_map.steps) if step is peak)
    x, y = frame.x(place + 0.5), frame.bottom + 1.5
    live = long_figure(peak.live_bytes, memory_map.bound)
    hover = f"peak: {live} live at {place} {shorten(peak.operator, 40)}"
    yield shapes.path("peak", f"M{shapes.number(x)} {shapes.number(y)}l4 6h-8z", hover)


def _rectangles(frame: PlotArea, memory_map: MemoryMap) -> Iterator[Element]:
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
    frame: PlotArea, block: MapBlock, shared: Sequence[MapBlock]
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
    frame: PlotArea, blocks: Sequence[MapBlock], shared: Sequence[MapBlock]
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


def colours(*maps: MemoryMap) -> set[str]:
    """The colour classes that the legend must explain."""
    used = {_FIXED.get(block.kind, "a0") for memory_map in maps for block in memory_map.blocks}
    for memory_map in maps:
        by_area = sorted(memory_map.blocks, key=lambda b: -b.size * _span(b))
        if shared_parts(by_area[:_LABELLED_BLOCKS], _LABELLED_BLOCKS):
            used.add("shr")
    return used


def rule(frame: PlotArea, head: int, style: str) -> Element:
    """A line across the panel at `head` bytes."""
    return shapes.line(style, frame.left, frame.y(head), frame.right, frame.y(head))


def _box(frame: PlotArea, block: MapBlock) -> tuple[float, float, float, float]:
    """Left, top, width and height of a block in pixels; at least half a pixel wide and high."""
    x, y = frame.x(block.start), frame.y(block.offset + block.size)
    return x, y, max(0.5, frame.x(block.end) - x), max(0.5, frame.y(block.offset) - y)


def steps_of(memory_map: MemoryMap) -> int:
    """How many operators a panel spans; at least one."""
    return max(1, len(memory_map.steps), max((b.end for b in memory_map.blocks), default=1))


def _span(block: MapBlock) -> int:
    return block.end - block.start
