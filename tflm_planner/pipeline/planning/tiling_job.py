"""Makes the files of a model's tilings, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_planner.pipeline.options import MemoryOptions, TilePermission
from tflm_planner.pipeline.planning.memory_plan import count_instructions
from tflm_planner.pipeline.planning.planned_file import PlannedFile
from tflm_planner.pipeline.planning.tiled_file import plan_tiling
from tflm_planner.support.errors import ForbiddenOperatorsError, UnsoundPlanError, UsageError
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
        operators otherwise than the plan by which it was evaluated. Raises UsageError,
        UnsoundPlanError or ForbiddenOperatorsError if it cannot be made."""
        preferred = int(self.permission.max_slowdown * self.instructions)
        planned = plan_tiling(
            self.original, tiling, self.permission, self.options, self.on_progress, self.stop,
            preferred,
        )  # fmt: skip
        return planned.relative_to(self.instructions, self.options.kernels.target)

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
        except (ForbiddenOperatorsError, UnsoundPlanError, UsageError) as fault:
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

    def is_too_slow(self, tiling: Tiling, planned: PlannedFile) -> bool:
        """Whether the last plan spelled operators so that a file is slower than allowed: where next
        to no instruction more is allowed, they may be spelled so up to a little above that
        (`TilingOptions.searched_slowdown`)."""
        most = self.permission.max_slowdown
        may_be_slower = tiling.respell is not None and tiling.respell > most * self.instructions
        return may_be_slower and planned.slowdown > most

    def breaks_promise(
        self, tiling: Tiling, planned: PlannedFile, others: Sequence[Tiling]
    ) -> bool:
        """Whether a file needs more bytes than its tiling was evaluated at, and therefore exceeds
        the limit or, without a limit, needs more than others were evaluated at."""
        size, limit = self.objective_bytes(planned), self.arena_limit
        if limit is not None:
            return tiling.bytes <= limit < size
        return tiling.bytes < size and any(other.bytes < size for other in others)
