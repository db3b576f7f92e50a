"""A model as TFLM runs it: its memory map, its arena on a target, and the floors of its head."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tflm_planner.memory.bounds import live_bytes
from tflm_planner.memory.problem import Problem
from tflm_planner.model.edit import remove_metadata
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.report.document import HeadLimits, HostRuntime, MemoryMap
from tflm_planner.report.memory_map import live_between_operators, memory_map
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena.predict import (
    Arena,
    CommonArena,
    SplitArena,
    arena_of,
    common_arena,
    split_arena,
)
from tflm_planner.tflm.element_types import cannot_run
from tflm_planner.tflm.liveness import (
    Timeline,
    planning_problem,
    timeline_of,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tflm.targets import HOST_RUNTIME, Target, load_target
from tflm_planner.transforms.attach_plan import PLAN_METADATA, carried_plan
from tflm_planner.verification.planned import PlanFault, plan_faults

_LONG_NAME = re.compile(r"'([^']{24})[^']{20,}([^']{20})'")


@dataclass(frozen=True)
class Inspection:
    """A model as it is: its map and arena on a target, its prediction for TFLM on this machine, and
    the floors of its head. notes: warnings about the arena, and about a plan that the model
    carries."""

    model: Model
    map: MemoryMap
    arena: Arena
    host: HostRuntime
    limits: HeadLimits
    notes: tuple[str, ...]


def read_any(data: bytes) -> tuple[Model, bool]:
    """The model in `data`, to be looked at, and whether it is in the TFLM dialect, in which tensors
    without a producer are views. These are accepted only if the model carries a plan that says
    where they lie; otherwise ModelError is raised."""
    model = read_model(data, dialect=True, to_look_at=True)
    dialect = model.has_views
    if dialect and carried_plan(model) is None:
        return read_model(data, to_look_at=True), False  # which says what is wrong with it
    return model, dialect


def arena_in(data: bytes, target: Target, *, variables_apart: bool = False) -> tuple[Model, Arena]:
    """The model in a file, and the arena that it needs with the plan that it carries, or without it
    if that plan is not valid for the target; the model then cannot run, and the arena says why.
    variables_apart: see `arena_of`."""
    model, _ = read_any(data)
    offsets, faults = _usable_plan(model, kernels_of(target))
    arena = arena_of(model, target, offsets, variables_apart=variables_apart)
    return model, _with_faults(arena, faults)


def split_in(data: bytes, target: Target) -> SplitArena | None:
    """The two arenas of the model in a file, with the plan that it carries if that is valid; None
    where TFLM on the target makes one only, or its structures are not known."""
    if target.recording or target.version != "current":
        return None
    model, _ = read_any(data)
    return split_arena(model, target, _usable_plan(model, kernels_of(target))[0])


def common_in(files: Sequence[bytes], target: Target) -> CommonArena:
    """One arena for the models in several files. Raises ModelError where one cannot run, or cannot
    share an arena, and says which; UsageError for firmware on which nobody has seen it."""
    if target.recording or target.lean or target.version != "current":
        raise UsageError(
            f"{target.id}: one arena for several models is known for current TFLM, without the "
            "lean library and without recording; name another --target"
        )
    models: list[tuple[Model, dict[Tensor, int] | None]] = []
    for place, data in enumerate(files):
        model, _ = read_any(data)
        offsets, faults = _usable_plan(model, kernels_of(target))
        if reasons := (*faults, *cannot_run(model.ops(), target)):
            raise ModelError(f"model {place + 1} cannot run: {reasons[0]}")
        models.append((model, offsets))
    return common_arena(models, target)


def inspect_model(model: Model, kernels: TargetKernels, *, dialect: bool = False) -> Inspection:
    """The model with the plan that it carries, or as TFLM plans it itself. `dialect`: whether it is
    in the TFLM dialect, where life spans cannot show whether a plan is legal."""
    timeline = timeline_of(model, kernels.scratch_of)
    offsets, faults = _usable_plan(model, kernels)
    placement = placement_of(timeline, offsets)
    figures = _with_faults(arena_of(model, kernels.target, offsets), faults)
    here = arena_of(model, load_target(HOST_RUNTIME), offsets)
    shown = ("the model carries an offline plan; it is shown",) if offsets and not dialect else ()
    return Inspection(
        model,
        memory_map(model, timeline, placement.offsets, figures.head, figures.head_bound),
        figures,
        HostRuntime(here),
        _limits(model, timeline, dialect=dialect),
        (*figures.warnings, *shown),
    )


def _usable_plan(
    model: Model, kernels: TargetKernels
) -> tuple[dict[Tensor, int] | None, tuple[str, ...]]:
    """The plan that a model carries, if TFLM can run it, and what is wrong with it."""
    faults = tuple(_in_words(list(plan_faults(model, kernels)), kernels.target.id))
    return (None if faults else carried_plan(model)), faults


def _with_faults(arena: Arena, faults: tuple[str, ...]) -> Arena:
    """An arena that no size of which works, as TFLM would follow a wrong plan."""
    return replace(arena, cannot_run=(*arena.cannot_run, *faults))


def without_wrong_plan(
    data: bytes, model: Model, kernels: TargetKernels
) -> tuple[bytes, tuple[str, ...]]:
    """The file of a model, or one without the plan that it carries where that is wrong, and what
    there is to say: what such a plan makes of the model is nothing to compare with. Drops the plan
    from `model` too."""
    _, faults = _usable_plan(model, kernels)
    if not faults:
        return data, ()
    remove_metadata(model, PLAN_METADATA)
    return write_model(model), tuple(f"dropped: {fault}" for fault in faults)


def shares_by_calls(model: Model) -> bool:
    """Whether operators call graphs. The floors do not count what a body shares with its caller, so
    that plans go below them; they are unknown then."""
    return any(op.graphs for op in model.ops())


def _limits(model: Model, timeline: Timeline, *, dialect: bool) -> HeadLimits:
    """Floors of the head. In the dialect most are unknown, because views would count beside their
    parents."""
    posed = planning_problem(timeline)
    without_overlaps = Problem(posed.buffers)
    inputs = sum(align_up(t.nbytes) for t in _distinct(model.main.inputs) if t in timeline.spans)
    if dialect:
        return HeadLimits(inputs=inputs, order=None, best_order=None, overlap=None)
    peak = max((size for _, size in live_bytes(without_overlaps)), default=0)
    overlap = None if shares_by_calls(model) else live_between_operators(timeline, posed.overlaps)
    return HeadLimits(inputs=inputs, order=peak, best_order=None, overlap=overlap)


def _distinct(tensors: list[Tensor]) -> list[Tensor]:
    return list(dict.fromkeys(tensors))


def _in_words(faults: list[PlanFault], target_id: str) -> Iterator[str]:
    """A line for each sort of fault in a plan: how many, and the first of them."""
    for kind in dict.fromkeys(f.kind for f in faults):
        alike = [f for f in faults if f.kind == kind]
        first = _LONG_NAME.sub(r"'\1...\2'", alike[0].said)
        if kind == "collision":
            what = (
                f"shares memory in {len(alike)} places beyond what the kernels of {target_id} "
                f"allow, for example: {first}. With it TFLM computes garbage"
            )
        else:
            what = f"is wrong: {first}{f' (and {len(alike) - 1} more)' if alike[1:] else ''}"
        yield (
            f"the plan that the model carries {what}; the figures are those without it. "
            "`tflm-plan verify MODEL` says all that is wrong, and `tflm-plan IN OUT` makes another"
        )
