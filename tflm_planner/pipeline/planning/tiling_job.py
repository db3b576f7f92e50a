"""Makes the files of a model's tilings, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.pipeline.options import MemoryOptions, TilePermission
from tflm_planner.pipeline.planning.memory_plan import count_instructions
from tflm_planner.pipeline.planning.planned_file import PlannedFile
from tflm_planner.pipeline.planning.tiled_file import plan_tiling
from tflm_planner.support.errors import UnsoundPlanError, UsageError
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tiling.search import Tiling


@dataclass(frozen=True)
class TilingJob:
    """A model whose tilings are tried. plain: its plan without tiles. options: those of the final
    plan of each tiling. arena_limit: bytes that the arena may take; None if there is no limit.
    stop: ends all searches."""

    original: bytes
    plain: PlannedFile
    permission: TilePermission
    options: MemoryOptions
    arena_limit: int | None
    on_progress: Progress
    stop: Stop

    def plan(self, tiling: Tiling) -> PlannedFile:
        """Make the file of a tiling, with the slowdown of what was made: its last plan may spell
        operators otherwise than the plan by which it was evaluated. Raises UsageError or
        UnsoundPlanError if it cannot be made."""
        planned = plan_tiling(
            self.original, tiling, self.permission, self.options, self.on_progress, self.stop
        )
        return planned.beside(self.instructions, self.options.kernels.target)

    @property
    def instructions(self) -> int:
        """Instructions of one inference of the model as it is."""
        return count_instructions(self.plain.memory_plan, self.options.kernels.target)

    def respelled(self, max_slowdown: float) -> tuple[Tiling, PlannedFile] | None:
        """The model with other spellings of operators and no tiles, with its figures, and its file;
        None if that saves nothing."""
        most = int(max_slowdown * self.instructions)
        tiling = Tiling.unplanned(respell=most, objective=self.permission.objective)
        try:
            planned = self.plan(tiling)
        except (UnsoundPlanError, UsageError) as fault:
            self.on_progress(f"passed over: other spellings: {fault}")
            return None
        if self.objective_bytes(planned) >= self.objective_bytes(self.plain):
            return None
        arena = planned.inspection.arena
        tiling = replace(tiling, arena=arena.arena, head=arena.head, slowdown=planned.slowdown)
        return tiling, planned

    def objective_bytes(self, planned: PlannedFile) -> int:
        """The bytes of a file that the search minimizes."""
        arena = planned.inspection.arena
        return arena.arena if self.permission.objective == "arena" else arena.head

    def misses_arena_limit(self, tiling: Tiling, planned: PlannedFile) -> bool:
        """Whether a file exceeds the limit although its tiling was evaluated as within the
        limit."""
        limit = self.arena_limit
        return limit is not None and tiling.bytes <= limit < self.objective_bytes(planned)
