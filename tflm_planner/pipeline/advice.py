"""What still decides the arena of a model, in a few sentences: where its peak is, what lies there,
and what would lower it.

    offset |  input 27,648   | 512 |      the moment that fills the head: what lies there, the
                                          largest first, bytes that several share counted once

Everything that is said was tried: an input is called streamable if it can be split; lean firmware
is offered with the arena of this very plan there, and other types of inputs with the arena that
order and plan then reach. It reads an `Inspection`; it must not search for tiles.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.pipeline.inspection import Inspection
from tflm_planner.pipeline.memory_search import plan_memory
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.report.bounds_text import figure
from tflm_planner.report.document import MemoryMap
from tflm_planner.report.peak import covered, live_at, parts_of
from tflm_planner.report.text import shorten
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tflm.targets import Target, can_be_lean, with_lean
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.drop_conversions import drop_conversions
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.row_loop.split_input import can_stream

_LISTED = 3
"""Buffers named at the peak."""
_NAME = 24
"""Letters of their names."""
_LITTLE_EFFORT = 0.05
"""Effort of exact packing for a figure that only shows what an option would reach at least."""
_LARGE = 0.5
"""A share of the arena above which something is worth a hint."""


def advice(inspection: Inspection, original: Model, kernels: TargetKernels) -> list[str]:
    """Notes on the peak and on what would help next; none for a model without operators.
    original: the model that the inspected one was made of."""
    arena = inspection.arena
    notes = [_sum(arena)]
    if not inspection.map.steps or not inspection.map.blocks:
        return notes
    notes.append(_peak(inspection.map))
    notes += _on_ends(inspection, original, kernels)
    inputs = inspection.limits.inputs
    if inputs >= _LARGE * arena.head:
        notes.append(
            f"the input is {inputs:,} of {figure(arena.head, arena.head_bound)} of head: no order, "
            "tile or loop goes below it"
        )
        notes += _on_input(original)
    elif arena.arena - arena.head >= _LARGE * arena.arena:
        notes += _on_tail(inspection, kernels.target)
    return notes


def _sum(arena: Arena) -> str:
    """The parts of the arena, which add up to it."""
    rest = arena.arena - arena.head - arena.tail
    total, head = figure(arena.arena, arena.bound), figure(arena.head, arena.head_bound)
    if 0 <= rest < 16:
        return (
            f"the arena of {total} is a head of {head} and {arena.arena - arena.head:,} B of "
            "structures and parameters of operators"
        )
    return (
        f"the arena of {total} is a head of {head} and {arena.arena - arena.head:,} B of "
        "structures, parameters, and temporary memory of AllocateTensors, which decides"
    )


def _peak(drawn: MemoryMap) -> str:
    """The operator at which the head is full, and what lies there then."""
    top = max(drawn.blocks, key=lambda b: b.offset + b.size)
    moments = [s for s in drawn.steps if top.start <= s.index < top.end] or list(drawn.steps)
    live = {s.index: live_at(drawn, s) for s in moments}
    step = max(moments, key=lambda s: (covered(live[s.index]), -s.index))
    parts = [part for part in parts_of(live[step.index]) if part.own]
    said = [f"{p.own:,} B of {p.block.kind} {shorten(p.block.name, _NAME)!r}" for p in parts]
    more = [f"{sum(p.own for p in parts[_LISTED:]):,} B more"] if len(parts) > _LISTED else []
    taken = sum(part.own for part in parts)
    share = f"all {taken:,} B" if taken == drawn.head else f"{taken:,} of {drawn.head:,} B"
    return (
        f"{share} of the head are taken while {step.operator} runs: "
        f"{', '.join([*said[:_LISTED], *more])}"
    )


def _on_ends(inspection: Inspection, original: Model, kernels: TargetKernels) -> Iterator[str]:
    """The arena that dropping the conversions at the model's ends would reach, planned to find
    out."""
    model = clone(original)
    if not drop_conversions(model):
        return
    plan = plan_memory(model, MemoryOptions(kernels=kernels, effort=_LITTLE_EFFORT))
    reached = arena_of(plan.model, kernels.target, plan.offsets)
    if reached.arena < inspection.arena.arena:
        yield (
            f"--io int8 drops the conversions at its ends, for the application to do: order and "
            f"plan alone then take {figure(reached.arena, reached.bound)} of arena"
        )


def _on_input(model: Model) -> Iterator[str]:
    """What keeps the input out of SRAM."""
    normalized = clone(model)
    run(normalized, Normalize())
    if can_stream(normalized):
        yield "`tflm-plan stream-input` splits the model, so that its input comes row by row"


def _on_tail(inspection: Inspection, target: Target) -> Iterator[str]:
    """What the same plan takes on lean firmware, where that can be predicted and is less."""
    if not can_be_lean(target):
        return
    model = clone(inspection.model)
    run(model, WritePool())
    lean = arena_of(model, with_lean(target), carried_plan(model)).arena
    if lean < inspection.arena.arena:
        yield f"on lean firmware (--lean) the same plan takes {lean:,} B of arena"
