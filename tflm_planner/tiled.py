"""A tiling made into files: the portable twin, and the TFLM dialect of it.

    original -Tile-> portable twin -------------------------> plan, Place      every runtime
                          |------ Crop -> plan -> Dialect -> Place             TFLM only

The twin is an ordinary model. In the dialect, views cost no operator; nothing but TFLM with its
plan understands it, so its scratch is checked against the life spans that it no longer shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflm_planner.errors import UnsoundPlanError
from tflm_planner.ir import Model
from tflm_planner.passes.base import run
from tflm_planner.passes.cleanup import Cleanup, entry_graphs
from tflm_planner.passes.dialect import Crop, Dialect, scratch_faults
from tflm_planner.passes.regions import Regions
from tflm_planner.passes.stream import Loop
from tflm_planner.passes.tile import Scheme
from tflm_planner.planning.lifetimes import timeline
from tflm_planner.rewriter import reorder
from tflm_planner.search import Candidate, SearchOptions
from tflm_planner.serde import read_model


def tiled_model(
    data: bytes, schemes: Sequence[Scheme | Loop], *, crop: bool, order: Sequence[int] | None = None
) -> tuple[Model, list[str]]:
    """The model in `data`, cleaned up and tiled, with notes. `crop`: for the dialect. `order`: the
    running order of its operators, which `schemes` name by their places in the file."""
    model = read_model(data)
    notes = run(model, Cleanup())
    if order is not None:
        reorder(model.main, [model.main.ops[i] for i in order])
        place = {old: new for new, old in enumerate(order)}
        schemes = [replace(s, ops=tuple(sorted(place[i] for i in s.ops))) for s in schemes]
    notes += run(model, Regions(tuple(schemes)))
    return model, notes + (run(model, Crop()) if crop else [])


def into_dialect(candidate: Candidate, options: SearchOptions) -> list[str]:
    """Turn a candidate planned with `bind_views` into the dialect, in place; notes.

    Raises UnsoundPlanError when TFLM would place scratch over bytes that are still needed.
    """
    model, offsets = candidate.model, candidate.offsets
    machine = options.machine
    portable = timeline(model, machine.scratch_of, entries=entry_graphs(model))
    notes = run(model, Dialect(offsets))
    _, faults = scratch_faults(portable, model, offsets, machine.scratch_of, options.trails_of)
    if faults:
        raise UnsoundPlanError(f"scratch of the TFLM dialect: {faults[0]}; use --portable")
    return notes


def new_kinds(before: Model, after: Model) -> list[str]:
    """Operators that the firmware must register in addition."""
    return sorted({op.kind for op in after.ops()} - {op.kind for op in before.ops()})
