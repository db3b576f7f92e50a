"""A tiling made into files: the portable twin, and the TFLM dialect of it.

    original -Tile-> portable twin -------------------------> plan, Place      every runtime
                          |------ Crop -> plan -> Dialect -> Place             TFLM only

The twin is an ordinary model. In the dialect, views cost no operator; nothing but TFLM with its
plan understands it, so its scratch is checked against the life spans that it no longer shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflm_planner.model.edit import Snapshot, reorder
from tflm_planner.model.ir import Model
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.memory_plan import MemoryOptions, MemoryPlan
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.tflm.kernels.scratch import reference_scratch
from tflm_planner.tflm.liveness import timeline_of
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dialect import Crop, Dialect, scratch_faults
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion

_OUTPUTS_STAY = (
    "TFLM dialect: what puts the outputs together stays, as TFLM would place scratch over them "
    "before the end; with a RESHAPE anywhere in the model it could be dropped"
)


def tiled_model(
    data: bytes,
    schemes: Sequence[TiledRegion | LoopedRegion],
    *,
    crop: bool,
    order: Sequence[int] | None = None,
    inexact: bool = False,
) -> tuple[Model, list[str]]:
    """The model in `data`, cleaned up and tiled, with notes. `crop`: for the dialect. `order`: the
    running order of its operators, which `schemes` name by their places in the file. `inexact`:
    sums may be split."""
    model = read_model(data)
    notes = run(model, Normalize())
    if order is not None:
        reorder(model.main, [model.main.ops[i] for i in order])
        place = {old: new for new, old in enumerate(order)}
        schemes = [replace(s, ops=tuple(sorted(place[i] for i in s.ops))) for s in schemes]
    notes += run(model, Regions(tuple(schemes), inexact))
    return model, notes + (run(model, Crop()) if crop else [])


def into_dialect(candidate: MemoryPlan, options: MemoryOptions) -> list[str]:
    """Turn a candidate planned with `bind_views` into the dialect, in place; notes.

    Raises UnsoundPlanError when TFLM would place scratch over bytes that are still needed: on the
    target, or with the reference kernels, by which the file is proved on this machine.
    """
    model, offsets = candidate.model, candidate.offsets
    rules = (options.kernels.scratch_of, reference_scratch)
    before_dialect = [timeline_of(model, rule, entries=entry_graphs(model)) for rule in rules]
    faults: list[str] = []
    for outputs in (True, False):
        before = Snapshot(model)
        notes = run(model, Dialect(offsets, outputs=outputs))
        faults = [
            fault
            for line, rule in zip(before_dialect, rules, strict=True)
            for fault in scratch_faults(line, model, offsets, rule, options.input_overlaps_of)[1]
        ]
        if not faults:
            return notes if outputs else [*notes, _OUTPUTS_STAY]
        before.restore()
    raise UnsoundPlanError(f"scratch of the TFLM dialect: {faults[0]}; use --portable")


def new_kinds(before: Model, after: Model) -> list[str]:
    """Operators that the firmware must register in addition."""
    return sorted({op.kind for op in after.ops()} - {op.kind for op in before.ops()})
