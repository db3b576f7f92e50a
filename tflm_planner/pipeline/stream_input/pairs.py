"""Plans both halves of a model that is split at a given place.

    back's arena   | head: boundary, room, ...                 | tail |     + front, persistent
                             [ front: rows, halos, tiles ]

The front's memory, except for what must persist, is an input of the back that nothing reads. (In
the drawing it is "room".) It lies beside the boundary, which the front fills, and shares memory
with everything that the back computes later. So the back's arena serves both halves, and planning
the back plans both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.options import (
    MOST_SLOWDOWN,
    MemoryOptions,
    StreamOptions,
    TilePermission,
)
from tflm_planner.pipeline.planning.model_planner import ModelPlanner
from tflm_planner.pipeline.planning.planned_file import PlannedFile, add_lean_pool
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import SplitArena, split_arena
from tflm_planner.tflm.arena.uncertainty import Uncertainty
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.row_loop.split_input import StripSchedule, add_room, split_model


@dataclass(frozen=True)
class PairInstructions:
    """Instructions of one inference: of the original, of all invokes of the front, and of the
    back."""

    original: int
    front: int
    back: int


@dataclass(frozen=True)
class StreamedPair:
    """A model in two planned halves. ops: the front's operators, by their numbers in the file.
    schedule: which rows the front takes, and when. front_arena: the front's memory; its part
    `shared` is an input of the back. refused: better splits, and why they were refused."""

    ops: tuple[int, ...]
    schedule: StripSchedule
    front: PlannedFile
    back: PlannedFile
    front_arena: SplitArena
    instructions: PairInstructions
    refused: tuple[str, ...] = ()

    @property
    def sram(self) -> int:
        """Bytes of SRAM that both halves together need."""
        return self.front_arena.persistent + self.back.inspection.arena.arena

    @property
    def uncertainties(self) -> tuple[Uncertainty, ...]:
        """The uncertainties of both halves, without duplicates: why the bytes are only "at
        least"."""
        arenas = self.front.inspection.arena, self.back.inspection.arena
        return tuple(
            dict.fromkeys(uncertainty for arena in arenas for uncertainty in arena.uncertainties)
        )

    @property
    def cannot_run(self) -> tuple[str, ...]:
        """Why the target's TFLM cannot run one of the halves: operators and reasons."""
        arenas = self.front.inspection.arena, self.back.inspection.arena
        return tuple(dict.fromkeys(reason for arena in arenas for reason in arena.cannot_run))

    @property
    def slowdown(self) -> float:
        """Instructions of both halves, relative to the original."""
        counts = self.instructions
        return (counts.front + counts.back) / max(counts.original, 1)


def plan_split(
    model: Model,
    ops: tuple[int, ...],
    rows: int,
    options: StreamOptions,
    on_progress: Progress = silent,
    stop: Stop | None = None,
) -> StreamedPair:
    """Plan both halves of a split (see `transforms.row_loop.split_input.split_model`)."""
    memory, target = options.memory, options.target
    halves = split_model(model, ops, rows)
    states = halves.strips.states
    stop = stop or Stop(memory.time_limit)
    front_memory = replace(memory, states=states)
    front = _plan_half(halves.front, front_memory, None, on_progress, stop)
    check_states(front, states)
    front_arena = split_arena(front.inspection.model, target, carried_plan(front.inspection.model))
    original = latency_of(model, target).instructions
    turns = halves.strips.turns * front.instructions(target)
    back_slowdown = (options.max_slowdown * original - turns) / latency_of(
        halves.back, target
    ).instructions
    allowed = min(max(back_slowdown, 1.0), MOST_SLOWDOWN)
    tiles = None if options.tiles is None else replace(options.tiles, max_slowdown=allowed)
    add_room(halves.back, front_arena.shared)
    back = _plan_half(halves.back, memory, tiles, on_progress, stop)
    instructions = PairInstructions(original, turns, back.instructions(target))
    return StreamedPair(ops, halves.strips, front, back, front_arena, instructions)


def _plan_half(
    model: Model,
    memory: MemoryOptions,
    tiles: TilePermission | None,
    on_progress: Progress,
    stop: Stop,
) -> PlannedFile:
    data = write_model(model)
    if memory.kernels.target.lean:
        data, _ = add_lean_pool(model)
    planner = ModelPlanner(memory, stop, tiles, on_progress=on_progress)
    return planner.plan(data, read_model(data)).file


def check_states(front: PlannedFile, states: tuple[tuple[int, int], ...]) -> None:
    """Check that halos keep their offsets in the plan that is found in the file, not in the
    intended one. Raises UnsoundPlanError if they do not."""
    graph = front.inspection.model.main
    plan = carried_plan(front.inspection.model) or {}
    for input_place, output_place in states:
        before, after = graph.inputs[input_place], graph.outputs[output_place]
        if plan.get(before, -1) != plan.get(after, -2):
            raise UnsoundPlanError(f"the front's plan moves the halo {before.name!r}")
