"""Inspects a model as TFLM runs it: memory map, arena on a target, and lower bounds of the head."""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.memory.bounds import live_bytes
from tflm_planner.memory.problem import Problem
from tflm_planner.model.edit import remove_metadata
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import write_model
from tflm_planner.pipeline.inspection.arenas import usable_plan, with_faults
from tflm_planner.report.document import HeadLimits, HostRuntime, MemoryMap
from tflm_planner.report.memory_map import live_between_operators, memory_map
from tflm_planner.report.text.bounds import figure
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.liveness import (
    Timeline,
    planning_problem,
    timeline_of,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tflm.targets import HOST_RUNTIME, load_target
from tflm_planner.transforms.attach_plan import PLAN_METADATA


@dataclass(frozen=True)
class Inspection:
    """The inspection of a model. map, arena: its memory map and its arena on a target. host: the
    predicted arena for TFLM on this machine. limits: lower bounds of the head. notes: warnings on
    the arena, and on a plan that the model carries."""

    model: Model
    map: MemoryMap
    arena: Arena
    host: HostRuntime
    limits: HeadLimits
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        operators = sum(len(graph.ops) for graph in self.model.graphs)
        needs = figure(self.arena.arena, self.arena.bound)
        return f"<Inspection: {operators} operators, arena {needs}>"


def inspect_model(model: Model, kernels: TargetKernels, *, dialect: bool = False) -> Inspection:
    """Inspect a model with the plan that it carries, or else with TFLM's own. `dialect`: whether it
    is in the TFLM dialect, in which life spans do not tell whether a plan is legal."""
    timeline = timeline_of(model, kernels.scratch_of)
    offsets, faults = usable_plan(model, kernels)
    placement = placement_of(timeline, offsets)
    figures = with_faults(arena_of(model, kernels.target, offsets), faults)
    host_arena = arena_of(model, load_target(HOST_RUNTIME), offsets)
    shown = ("the model carries an offline plan; it is shown",) if offsets and not dialect else ()
    return Inspection(
        model,
        memory_map(model, timeline, placement.offsets, figures.head, figures.head_bound),
        figures,
        HostRuntime(host_arena),
        _limits(model, timeline, dialect=dialect),
        (*figures.warnings, *shown),
    )


def without_wrong_plan(
    data: bytes, model: Model, kernels: TargetKernels
) -> tuple[bytes, tuple[str, ...]]:
    """Drop the plan that the model carries if it is invalid, because outputs computed with such a
    plan cannot serve as reference. Returns the file and a note for each fault."""
    _, faults = usable_plan(model, kernels)
    if not faults:
        return data, ()
    remove_metadata(model, PLAN_METADATA)
    return write_model(model), tuple(f"dropped: {fault}" for fault in faults)


def shares_by_calls(model: Model) -> bool:
    """Whether operators call graphs. A body may then share memory with its caller, which the lower
    bounds of the head do not take into account, so they are unknown."""
    return any(op.graphs for op in model.ops())


def _limits(model: Model, timeline: Timeline, *, dialect: bool) -> HeadLimits:
    """Lower bounds of the head. In the dialect most are unknown, because views would be counted in
    addition to the tensors in which they lie."""
    posed = planning_problem(timeline)
    without_overlaps = Problem.of(posed.buffers)
    inputs = sum(align_up(t.nbytes) for t in _distinct(model.main.inputs) if t in timeline.spans)
    if dialect:
        return HeadLimits(
            input_bytes=inputs, file_order_bytes=None, best_order_bytes=None, overlap_bytes=None
        )
    peak = max((size for _, size in live_bytes(without_overlaps)), default=0)
    overlap = None if shares_by_calls(model) else live_between_operators(timeline, posed.overlaps)
    return HeadLimits(
        input_bytes=inputs, file_order_bytes=peak, best_order_bytes=None, overlap_bytes=overlap
    )


def _distinct(tensors: list[Tensor]) -> list[Tensor]:
    return list(dict.fromkeys(tensors))
