"""What lies in the head at a moment: each buffer with the bytes that are its own.

    offset |  input 27,648         |
           |  result 18,432, of which 400 are its own: the rest lies on the input

Buffers share memory: views lie on their parents, results trail operands. So their sizes add up to
more than there is. Counted the largest first, the bytes on which no earlier one lies add up to what
is really taken. It must not know how anything is rendered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.report.document import MapBlock, MapStep, MemoryMap


@dataclass(frozen=True, slots=True)
class PeakPart:
    """A buffer, and how many of its bytes no larger one covers."""

    block: MapBlock
    own: int


def parts_of(blocks: Sequence[MapBlock]) -> list[PeakPart]:
    """The blocks as parts: those with most bytes of their own first, then those that lie wholly on
    others. Of equals, the larger one comes first, then the lower one."""
    parts: list[PeakPart] = []
    covered_spans: list[tuple[int, int]] = []
    for block in sorted(blocks, key=lambda b: (-b.size, b.offset, b.name)):
        low, high = block.offset, block.offset + block.size
        own, at = 0, low
        for start, end in covered_spans:
            if end > at and start < high:
                own += max(start - at, 0)
                at = max(at, end)
        own += max(high - at, 0)
        covered_spans = _join([*covered_spans, (low, high)])
        parts.append(PeakPart(block, own))
    return sorted(parts, key=lambda part: -part.own)


def covered_bytes(blocks: Sequence[MapBlock]) -> int:
    """Bytes that blocks take together, those that several share counted once."""
    total = end = 0
    for b in sorted(blocks, key=lambda b: b.offset):
        total += max(b.offset + b.size - max(end, b.offset), 0)
        end = max(end, b.offset + b.size)
    return total


def peak_parts(memory_map: MemoryMap) -> list[PeakPart]:
    """Tensors that are live at the peak. Their own bytes and the kernel's scratch add up to the
    live bytes of that step."""
    peak = memory_map.peak_step
    if peak is None:
        return []
    return parts_of([b for b in live_at(memory_map, peak) if b.kind != "scratch"])


def live_at(memory_map: MemoryMap, step: MapStep) -> list[MapBlock]:
    """Blocks that are live while an operator runs."""
    time = next(i for i, other in enumerate(memory_map.steps) if other is step)
    return [b for b in memory_map.blocks if b.start <= time < b.end]


def _join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as spans that do not meet, in order."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return joined
