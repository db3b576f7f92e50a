"""A model in tiles chosen by hand: applied, planned, and turned into the TFLM dialect.

    bytes --Tile--> portable --search--> portable with a plan      runs on every TFLite runtime
                        |
                        +--Crop--> search, views bound --Dialect--> TFLM alone; same operator types

Prove the portable model against the original on LiteRT and TFLM, the dialect on TFLM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops.macs import total_macs
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.liveness import timeline_of
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dialect import Crop, Dialect, scratch_faults
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion


@dataclass(frozen=True)
class TiledPlan:
    """A planned file, its arena on the target, the operator types it uses beyond those of the
    original (what the firmware must register besides), multiply-accumulates of the original and
    of the result, and notes."""

    data: bytes
    arena: Arena
    new_kinds: tuple[str, ...]
    macs: tuple[int, int]
    notes: tuple[str, ...]


def portable_plan(
    original: bytes,
    schemes: Sequence[TiledRegion | LoopedRegion],
    options: MemoryOptions | None = None,
) -> TiledPlan:
    """Tiled and planned, valid for every runtime."""
    options = options or MemoryOptions()
    model = read_model(original)
    kinds = {op.kind for op in model.ops()}
    macs = total_macs(model.ops())
    notes = run(model, Regions(tuple(schemes)))
    candidate = plan_memory(model, options)
    model = candidate.model
    run(model, AttachPlan(candidate.offsets))
    new = tuple(sorted({op.kind for op in model.ops()} - kinds))
    found = arena_of(model, options.kernels.target, carried_plan(model))
    done = (macs, total_macs(model.ops()))
    return TiledPlan(write_model(model), found, new, done, (*notes, *candidate.notes))


def dialect_plan(
    original: bytes,
    schemes: Sequence[TiledRegion | LoopedRegion],
    options: MemoryOptions | None = None,
) -> TiledPlan:
    """Tiled and planned for TFLM alone: views cost no operator.

    Falls back to the operators (`new_kinds` then says so) where scratch, placed by TFLM without
    them, would overwrite a view.
    """
    options = replace(options or MemoryOptions(exact_effort=0.05), bind_views=True)
    model = read_model(original)
    kinds = {op.kind for op in model.ops()}
    macs = total_macs(model.ops())
    notes = run(model, Regions(tuple(schemes)), Crop("RESHAPE" in kinds))
    candidate = plan_memory(model, options)
    model, offsets, on = candidate.model, candidate.offsets, options.kernels
    run(model, AttachPlan(offsets))
    with_operators = write_model(model)
    line = timeline_of(model, on.scratch_of)
    notes += run(model, Dialect(offsets))
    faults = scratch_faults(line, model, offsets, on.scratch_of, options.input_overlaps_of)
    if faults:
        model = read_model(with_operators)
        notes.append(f"not in the TFLM dialect: {faults[0]}")
    else:
        run(model, AttachPlan(offsets))
    new = tuple(sorted({op.kind for op in model.ops()} - kinds))
    found = arena_of(model, on.target, carried_plan(model))
    done = (macs, total_macs(model.ops()))
    return TiledPlan(write_model(model), found, new, done, (*notes, *candidate.notes))
