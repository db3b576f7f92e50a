"""Computes what lies in the head at a moment: each buffer with its own bytes.

    offset |  input 27,648         |
           |  result 18,432, of which 400 are its own: the rest lies on the input

Buffers share memory: views lie inside their parents, and results overlap operands. So their sizes
add up to more than the memory in use. The own bytes of a buffer are those that no larger buffer
covers; they add up to the memory in use. It must not know how anything is rendered.
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
    """The blocks with their own bytes, the most own bytes first. Blocks with equally many are in
    the order of size, then of offset."""
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
    """Bytes that blocks take together. Shared bytes are counted once."""
    total = end = 0
    for b in sorted(blocks, key=lambda b: b.offset):
        total += max(b.offset + b.size - max(end, b.offset), 0)
        end = max(end, b.offset + b.size)
    return total


def peak_parts(memory_map: MemoryMap) -> list[PeakPart]:
    """The tensors that are live at the peak. Their own bytes and the kernel's scratch add up to the
    live bytes of that step."""
    peak = memory_map.peak_step
    if peak is None:
        return []
    return parts_of([b for b in live_at(memory_map, peak) if b.kind != "scratch"])


def live_at(memory_map: MemoryMap, step: MapStep) -> list[MapBlock]:
    """The blocks that are live while an operator runs."""
    time = next(i for i, other in enumerate(memory_map.steps) if other is step)
    return [b for b in memory_map.blocks if b.start <= time < b.end]


def _join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as sorted spans that neither overlap nor touch."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return joined
