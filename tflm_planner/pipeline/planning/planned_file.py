"""Writes the file of a memory plan, reads it back and checks it.

    MemoryPlan --write--> file --read back--> plan found in it: validated, overlaps replayed
                                              -> PlannedFile

Here are the checks of one file before it is proved; `tiled_file` makes the files of tilings with
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.memory.problem import Plan, Problem, validate
from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.inspection.inspect_model import Inspection, inspect_model
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_plan import MemoryPlan, as_tflm_plans
from tflm_planner.pipeline.planning.write import write_planned
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.arena.uncertainty import may_need_more
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.liveness import Timeline, planning_problem, timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.sharing import replay_all, sharing_texts, taken_input_overlaps
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tflm.targets import Target, with_lean
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run


@dataclass(frozen=True)
class SharingSummary:
    """Which results share memory with operands in a plan. aliases: results in place.
    input_overlaps: results that overlap an operand in ways that only the target's kernels allow.
    replayed: how many of these overlaps were checked by replay."""

    aliases: tuple[str, ...]
    input_overlaps: tuple[str, ...]
    replayed: int


@dataclass(frozen=True)
class PlannedFile:
    """A planned file."""

    data: bytes
    """The bytes of the file."""
    memory_plan: MemoryPlan
    """The plan from which it was made."""
    inspection: Inspection
    """The inspection of the file."""
    sharing: SharingSummary
    """Results that share memory with operands."""
    twin: bytes | None = None
    """For a file that only TFLM runs, the portable model that computes the same on every
    runtime."""
    twin_origins: tuple[frozenset[int], ...] = ()
    """Origins of the twin's operators (see `ir.Op`)."""
    notes: tuple[str, ...] = ()
    """Notes on how it was made."""
    exact: bool = True
    """Whether every element is computed by the same sum as before."""
    tiled: bool = False
    """Whether parts of the model are computed in tiles or in loops."""
    slowdown: float = 1.0
    """Predicted instructions relative to the original without operators that do nothing."""

    def relative_to(self, instructions: int, target: Target) -> PlannedFile:
        """This file with its slowdown relative to so many instructions of the original."""
        return replace(self, slowdown=self.instructions(target) / max(instructions, 1))

    def instructions(self, target: Target) -> int:
        """Instructions of one inference of the file. Copies that its plan makes unnecessary are not
        counted."""
        model = self.inspection.model
        return latency_of(model, target, carried_plan(model)).instructions


def fits(planned: PlannedFile, arena_limit: int | None) -> bool:
    """Whether a file is known to be within a limit of the arena, in bytes; False without one."""
    arena = planned.inspection.arena
    return arena_limit is not None and not may_need_more(arena.bound) and arena.arena <= arena_limit


def write_and_check(memory_plan: MemoryPlan, options: MemoryOptions) -> PlannedFile:
    """Write the file of a plan and read it back. The plan that is found in the file, not the
    intended one, is validated, and its overlaps are replayed. Raises UnsoundPlanError if a check
    fails."""
    written = write_planned(memory_plan.placed, options)
    model = written.read_back()
    offsets = carried_plan(model)
    timeline = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    if offsets is None:
        raise UnsoundPlanError("the plan is not in the file that was made; please report it")
    plan = placement_of(timeline, offsets).plan
    check_legal(planning_problem(timeline, options.input_overlaps_of), plan)
    return PlannedFile(
        data=written.data,
        memory_plan=memory_plan,
        sharing=check_sharing(timeline, offsets, options.kernels),
        inspection=inspect_model(model, options.kernels),
        twin=written.portable,
        twin_origins=written.origins,
        notes=written.notes,
    )


def never_larger(original: bytes, planned: PlannedFile, options: MemoryOptions) -> PlannedFile:
    """The planned file or, if its arena is larger than the original's, the original without a new
    plan. That happens if the arena is largest while TFLM plans: offsets then cost a few bytes and
    save none."""
    model, kernels = read_model(original), options.kernels
    stock, larger = inspect_model(model, kernels), planned.inspection.arena.arena
    if larger <= stock.arena.arena or stock.arena.cannot_run:
        return planned
    own = as_tflm_plans(model, planned.memory_plan, options, carried_plan(model))
    memory_plan = replace(own, notes=())
    written = write_planned(memory_plan.placed, options, attach=False)
    note = (
        f"the memory stays as it was: the arena is largest while TFLM plans, and with a plan it "
        f"would be {larger - stock.arena.arena} B larger ({larger:,} B)"
    )
    return PlannedFile(
        data=written.data,
        memory_plan=memory_plan,
        inspection=inspect_model(read_model(written.data), kernels),
        sharing=SharingSummary((), (), 0),
        twin=written.portable,
        notes=(note, *written.notes),
    )


def check_legal(problem: Problem, plan: Plan) -> None:
    """Raise UnsoundPlanError if a plan violates the rules of its problem."""
    violations = validate(problem, plan)
    if violations:
        raise UnsoundPlanError(f"the plan made is not legal: {violations[0]}; please report it")


def check_sharing(
    timeline: Timeline, offsets: dict[Tensor, int], kernels: TargetKernels
) -> SharingSummary:
    """Which results share memory with operands. Overlaps are replayed on every build of the
    target's kernels. Raises UnsoundPlanError if a byte would be lost."""
    input_overlaps = list(taken_input_overlaps(timeline, offsets, kernels))
    return SharingSummary(
        aliases=sharing_texts(timeline, offsets),
        input_overlaps=tuple(map(str, input_overlaps)),
        replayed=replay_all(input_overlaps, kernels),
    )


def on_lean_firmware(planned: PlannedFile, target: Target) -> tuple[Model, Arena]:
    """The same plan on the lean firmware of a target: the model with its pool of parameters, and
    its arena."""
    model = clone(planned.inspection.model)
    run(model, WritePool())
    return model, arena_of(model, with_lean(target), carried_plan(model))


def add_lean_pool(model: Model) -> tuple[bytes, Model]:
    """Add the pool that lean firmware looks for to a model, so that the search takes it into
    account. Returns the file and the model read from it."""
    run(model, WritePool())
    pooled = write_model(model)
    return pooled, read_model(pooled)
