"""What still decides the arena of a model, in a few sentences: where its peak is, what lies there,
and which part of the arena no plan can lower.

    offset |  input 27,648   | 512 |      the moment that fills the head: what lies there, the
                                          largest first, bytes that several share counted once

It reads an `Inspection`; it must not search.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.pipeline.inspection import Inspection
from tflm_planner.report.document import MapBlock, MemoryMap
from tflm_planner.report.text import shorten

_LISTED = 3
"""Buffers named at the peak."""
_NAME = 28
"""Letters of their names."""
_LARGE = 0.5
"""A share of the arena above which something is worth a hint."""


def advice(found: Inspection) -> list[str]:
    """Notes on the peak and on what would help next; none for a model without operators."""
    arena = found.arena
    notes = [
        f"the arena of {arena.arena:,} B is a head of {arena.head:,} B and "
        f"{arena.arena - arena.head:,} B of structures and parameters of operators"
    ]
    if not found.map.steps or not found.map.blocks:
        return notes
    notes.append(_peak(found.map))
    inputs = found.limits.inputs
    if inputs >= _LARGE * arena.head:
        notes.append(
            f"the input is {inputs:,} of {arena.head:,} bytes of head, which no order, tile or "
            "loop lowers: only a smaller input would"
        )
    elif arena.arena - arena.head >= _LARGE * arena.arena:
        notes.append("more than half of the arena is no head: fewer operators or channels help")
    return notes


def _peak(drawn: MemoryMap) -> str:
    """The operator that fills the head, and what lies there."""
    top = max(drawn.blocks, key=lambda b: b.offset + b.size)
    moments = [s for s in drawn.steps if top.start <= s.index < top.end] or list(drawn.steps)
    live = {s.index: [b for b in drawn.blocks if b.start <= s.index < b.end] for s in moments}
    step = max(moments, key=lambda s: (covered(live[s.index]), -s.index))
    parts = _parts(live[step.index])
    said = [f"{size:,} B of {b.kind} {shorten(b.name, _NAME)!r}" for b, size in parts[:_LISTED]]
    more = f" and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
    return f"the head is full of {', '.join(said)}{more}, while {step.operator} runs"


def covered(blocks: Sequence[MapBlock]) -> int:
    """Bytes that blocks take together, those that several share counted once."""
    return sum(size for _, size in _parts(blocks))


def _parts(blocks: Sequence[MapBlock]) -> list[tuple[MapBlock, int]]:
    """Blocks, the largest first, with the bytes that no earlier one lies on; none of those that
    have no such bytes."""
    free: list[tuple[MapBlock, int]] = []
    taken: list[tuple[int, int]] = []
    for block in sorted(blocks, key=lambda b: (-b.size, b.offset, b.name)):
        low, high = block.offset, block.offset + block.size
        own, at = 0, low
        for start, end in taken:
            if end > at and start < high:
                own += max(start - at, 0)
                at = max(at, end)
        own += max(high - at, 0)
        taken = _joined([*taken, (low, high)])
        if own:
            free.append((block, own))
    return sorted(free, key=lambda part: -part[1])


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as spans that do not meet, in order."""
    made: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if made and low <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], high)
        else:
            made.append((low, high))
    return made
