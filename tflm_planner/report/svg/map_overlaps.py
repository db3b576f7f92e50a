"""Finds blocks of a memory map that lie in the same bytes at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.report.document import MapBlock


def shared_parts(blocks: Sequence[MapBlock], most: int) -> list[MapBlock]:
    """The rectangles in which two of `blocks` overlap in bytes and time; `most` of them at most."""
    active, shared = list[MapBlock](), list[MapBlock]()
    for block in sorted(blocks, key=lambda b: (b.start, b.offset, b.name)):
        active = [other for other in active if other.end > block.start]
        for other in active:
            low = max(block.offset, other.offset)
            high = min(block.offset + block.size, other.offset + other.size)
            if low < high:
                end = min(block.end, other.end)
                shared.append(MapBlock("", "scratch", high - low, low, block.start, end))
        active.append(block)
    return shared[:most]


def views_among(blocks: Sequence[MapBlock], places: Sequence[int]) -> Iterator[int]:
    """Yield those of `places` whose block lies wholly inside another block that became live
    earlier, as a tile in its parent. They are drawn such that the parent shows through."""
    for i in places:
        block = blocks[i]
        if any(
            _contains(blocks[j], block)
            and (blocks[j].start, -blocks[j].size) < (block.start, -block.size)
            for j in places
        ):
            yield i


def _contains(parent: MapBlock, block: MapBlock) -> bool:
    inside = (
        parent.offset <= block.offset and block.offset + block.size <= parent.offset + parent.size
    )
    return inside and parent.start <= block.start < parent.end
