"""Says in a few sentences what determines the arena of a model: where its peak is, and which
buffers lie there. `ladder` says what would lower it.

    offset |  input 27,648   | 512 |      the moment at which the head is full: its buffers,
                                          largest first, shared bytes counted once

It reads an `Inspection`; it must not search.
"""

from __future__ import annotations

from tflm_planner.pipeline.inspection.inspect_model import Inspection
from tflm_planner.report.document import MapBlock, MemoryMap
from tflm_planner.report.peak import covered_bytes, live_at, parts_of
from tflm_planner.report.text.bounds import figure
from tflm_planner.report.text.words import shorten
from tflm_planner.tflm.arena.predict import Arena

_MOST_BUFFERS_NAMED = 3
"""How many buffers at the peak are named."""
_LONGEST_NAME = 24
"""The most letters of a buffer's name."""
_LARGE_SHARE = 0.5
"""The share of the head above which the input is mentioned."""


def advice(inspection: Inspection) -> list[str]:
    """Notes on the parts of the arena and, if the model has operators, on the peak."""
    arena = inspection.arena
    notes = [_sum(arena)]
    if not inspection.map.steps or not inspection.map.blocks:
        return notes
    notes.append(_peak(inspection.map))
    inputs = inspection.limits.input_bytes
    if inputs >= _LARGE_SHARE * arena.head:
        notes.append(
            f"the input is {inputs:,} of {figure(arena.head, arena.head_bound)} of head: no order, "
            "tile or loop goes below it"
        )
    return notes


def _sum(arena: Arena) -> str:
    """The parts of the arena in words."""
    remainder = arena.arena - arena.head - arena.tail
    total, head = figure(arena.arena, arena.bound), figure(arena.head, arena.head_bound)
    if 0 <= remainder < 16:
        return (
            f"the arena of {total} is a head of {head} and {arena.arena - arena.head:,} B of "
            "structures and parameters of operators"
        )
    return (
        f"the arena of {total} is a head of {head} and {arena.arena - arena.head:,} B of "
        "structures, parameters, and temporary memory of AllocateTensors, which decides"
    )


def _what(block: MapBlock) -> str:
    """A buffer by its kind and name. Scratch has no name of its own."""
    return (
        block.kind
        if block.kind == "scratch"
        else f"{block.kind} {shorten(block.name, _LONGEST_NAME)!r}"
    )


def _peak(drawn: MemoryMap) -> str:
    """Describes the operator at which the head is full, and the buffers that lie there then."""
    top = max(drawn.blocks, key=lambda b: b.offset + b.size)
    moments = [s for s in drawn.steps if top.start <= s.index < top.end] or list(drawn.steps)
    live = {s.index: live_at(drawn, s) for s in moments}
    step = max(moments, key=lambda s: (covered_bytes(live[s.index]), -s.index))
    parts = [part for part in parts_of(live[step.index]) if part.own]
    part_words = [f"{part.own:,} B of {_what(part.block)}" for part in parts]
    others = parts[_MOST_BUFFERS_NAMED:]
    more = [f"{sum(p.own for p in others):,} B more"] if others else []
    live_bytes = sum(part.own for part in parts)
    share = (
        f"all {live_bytes:,} B"
        if live_bytes == drawn.head
        else f"{live_bytes:,} of {drawn.head:,} B"
    )
    return (
        f"{share} of the head are taken while {step.operator} runs: "
        f"{', '.join([*part_words[:_MOST_BUFFERS_NAMED], *more])}"
    )
