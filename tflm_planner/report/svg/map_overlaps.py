"""Which blocks of a memory map lie in the same bytes at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.report.document import MapBlock


def shared_parts(blocks: Sequence[MapBlock], most: int) -> list[MapBlock]:
    """Where two of `blocks` lie at the same time; not more rectangles than are worth drawing."""
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
    """Those of `places` whose block lies wholly in another that began to live earlier, as a tile in
    its parent. They are drawn so that the parent shows."""
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
