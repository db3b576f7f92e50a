"""A model as TFLM runs it: its memory map, its arena on a target, and the floors of its head."""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.memory.bounds import live_bytes
from tflm_planner.memory.problem import Plan, Problem, validate
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.report.document import ArenaFigures, HeadLimits, HostRuntime, MemoryMap
from tflm_planner.report.memory_map import live_between_operators, memory_map
from tflm_planner.support.units import align_up
from tflm_planner.tflm import greedy
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.liveness import (
    Timeline,
    placement_requests,
    planning_problem,
    timeline,
)
from tflm_planner.tflm.machine import Machine
from tflm_planner.tflm.targets import HOST_RUNTIME, load_target
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.normalize import entry_graphs


@dataclass(frozen=True)
class Inspection:
    """A model as it is: its map and arena on a target, what this machine should say, and the
    floors of its head."""

    model: Model
    map: MemoryMap
    arena: ArenaFigures
    wheel: HostRuntime
    limits: HeadLimits
    notes: tuple[str, ...]


def read_any(data: bytes) -> tuple[Model, bool]:
    """The model in `data`, and whether it is in the TFLM dialect: views over other tensors are
    taken for what they are where a plan says where they lie. Raises ModelError otherwise."""
    model = read_model(data, dialect=True)
    dialect = model.has_views
    if dialect and carried_plan(model) is None:
        return read_model(data), False  # which says what is wrong with it
    return model, dialect


def inspect_model(model: Model, on: Machine, *, dialect: bool = False) -> Inspection:
    """The model with the plan that it carries, or as TFLM plans it itself. `dialect`: it is in
    the TFLM dialect, where life spans say nothing of a plan's legality."""
    line = timeline(model, on.scratch_of)
    offsets = carried_plan(model)
    placed = greedy.place(placement_requests(line, offsets or {}))
    figures = arena_of(model, on.target, offsets)
    here = arena_of(model, load_target(HOST_RUNTIME), offsets)
    notes = _notes_on_plan(model, offsets, on) if offsets and not dialect else ()
    return Inspection(
        model,
        memory_map(model, line, placed, figures.head),
        ArenaFigures(
            figures.head,
            figures.tail,
            figures.planning_temp,
            figures.prepare_temp,
            figures.arena,
            figures.alignment_slack,
        ),
        HostRuntime(here.head, here.tail),
        _limits(model, line, dialect=dialect),
        (*figures.warnings, *notes),
    )


def _limits(model: Model, line: Timeline, *, dialect: bool) -> HeadLimits:
    """Floors of the head. Views count beside their parents, so of the dialect little is known."""
    whole = Problem(planning_problem(line).buffers)
    inputs = sum(align_up(t.nbytes) for t in _distinct(model.main.inputs) if id(t) in line.spans)
    if dialect:
        return HeadLimits(inputs=inputs, order=None, best_order=None, overlap=None)
    peak = max((size for _, size in live_bytes(whole)), default=0)
    return HeadLimits(
        inputs=inputs, order=peak, best_order=None, overlap=live_between_operators(line)
    )


def _distinct(tensors: list[Tensor]) -> list[Tensor]:
    return list({id(t): t for t in tensors}.values())


def _notes_on_plan(model: Model, offsets: dict[int, int], on: Machine) -> tuple[str, ...]:
    """Warnings about a plan that a model already carries."""
    line = timeline(model, on.scratch_of, entries=entry_graphs(model))
    placed = greedy.place(placement_requests(line, offsets))
    wrong = validate(planning_problem(line, on.trails_of), Plan(tuple(placed)))
    if not wrong:
        return ("the model carries an offline plan; it is shown",)
    return (
        f"the plan that the model carries shares memory in {len(wrong)} places beyond what the "
        f"kernels of {on.target.id} allow, for example: {wrong[0]}",
    )
