"""Makes a planned and proved file from a model: without tiles, with tiles that the user specifies,
or with the best tiling that a search finds.

    plan without tiles ------------------------------------------------------------+
    search -> tilings, the best first --> plan_tiling --> prove --> equal: taken   | taken where
                 ^                                          |                      | no tiling is
                 +--- those that share the cause left out --+ refused              v

Files are made one at a time, each only after those before it were refused. What is fast enough
within a limit of the arena ends it: the plan without tiles, then one with other spellings of
operators that cost next to nothing. The caller supplies `prove`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.options import MemoryOptions, TilePermission
from tflm_planner.pipeline.planning.by_hand import possible_regions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.pipeline.planning.planned_file import (
    PlannedFile,
    fits,
    never_larger,
    write_and_check,
)
from tflm_planner.pipeline.planning.planning_result import (
    PlanningResult,
    ProveModel,
    leave_unproved,
    plain_alone,
)
from tflm_planner.pipeline.planning.respelling import least_head_respelled
from tflm_planner.pipeline.planning.tiled_file import new_kinds, plan_tiling
from tflm_planner.pipeline.planning.tiling_attempts import (
    RespelledPlan,
    first_proved_plan,
    respelled_plan,
)
from tflm_planner.pipeline.planning.tiling_job import TilingJob
from tflm_planner.pipeline.planning.versions import refuse_plan
from tflm_planner.support.errors import UnsoundPlanError, UsageError
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop, StoppedError
from tflm_planner.tiling.permissions import search_by_permission
from tflm_planner.tiling.search import Tiling
from tflm_planner.transforms.normalize import clean_up

_FINAL_EFFORT = 0.1
"""Effort of exact packing for the final plan of a tiled model. It starts from the plan with which
the search evaluated the tiling, which can rarely be improved."""

_AS_FAST = 1.001
"""A plan without tiles that is within the limit of the arena and takes at most so many
instructions, relative to the plan without other spellings, is made without a search for tiles: as
fast, as far as a board can tell (what emulated boards executed was up to 0.1 % off what was
predicted). vww within 64 KB: 4.0 in place of 15.9 seconds of a busy processor."""


@dataclass(frozen=True)
class ModelPlanner:
    """Plans models with the same options. stop: can end all searches; the best result by then is
    made. permission: what tiling may do (None: no tiles). arena_limit: bytes that the arena may
    take; with a limit, a search for tiles looks for the fastest tiling within it."""

    options: MemoryOptions
    stop: Stop
    permission: TilePermission | None = None
    arena_limit: int | None = None
    on_progress: Progress = silent

    def plan(
        self, original: bytes, model: Model, prove: ProveModel = leave_unproved
    ) -> PlanningResult:
        """The best file that `prove` does not refuse, with tiles if they are allowed and lower the
        arena. If all are refused, it is the last file made: the plan without tiles, or the tiling
        that the user specified.

        `model` is the model in the file `original`. Raises UnsoundPlanError if a guard refuses the
        last file.
        """
        refuse_plan(model, self.options.kernels.target)
        if self.permission is not None and self.permission.by_hand:
            planned = self._plan_by_hand(original, self.permission)
            return PlanningResult(planned, prove(planned))
        memory_plan = plan_memory(model, self.options, self.on_progress, self.stop)
        plain = never_larger(original, write_and_check(memory_plan, self.options), self.options)
        if self.permission is None or fits(plain, self.arena_limit):
            return PlanningResult(plain, prove(plain), plain_alone(plain))
        permission, memory = self.permission, self.options
        job = TilingJob(
            original, plain, permission, memory, self.arena_limit, self.on_progress, self.stop
        )
        if permission.spellings_only:
            respelled = respelled_plan(job, permission.max_slowdown, prove)
            search = replace(plain_alone(plain), refused=respelled.refused)
            return respelled.proved or PlanningResult(plain, prove(plain), search)
        respelled = self._as_fast_within_limit(job, prove)
        return respelled.proved or self._plan_with_tiles(job, respelled.refused, prove)

    def _as_fast_within_limit(self, job: TilingJob, prove: ProveModel) -> RespelledPlan:
        """The plan within the limit of the arena with other spellings that cost next to nothing;
        no plan where there is no limit, or where a bound in the order of the plan without tiles
        rules it out."""
        limit, permission, plain = self.arena_limit, job.permission, job.plain
        if limit is None or permission.method != "regions" or not self.options.overlap:
            return RespelledPlan()
        head = least_head_respelled(plain.memory_plan, self.options)
        if head + plain.inspection.arena.tail > limit:
            return RespelledPlan()
        most = min(permission.max_slowdown, _AS_FAST)
        return respelled_plan(job, most, prove, within_limit=True)

    def _plan_with_tiles(
        self, job: TilingJob, refused: tuple[str, ...], prove: ProveModel
    ) -> PlanningResult:
        """The best tiling that a search finds. refused: what was refused before."""
        tiling_options = job.permission.tiling_options(self.options, self.arena_limit)
        try:
            results = search_by_permission(
                job.original, tiling_options, self.on_progress, self.stop
            )
        except StoppedError:
            notes = ("no tiles were looked for",)
            search = replace(plain_alone(job.plain), notes=notes, refused=refused)
            return PlanningResult(job.plain, prove(job.plain), search)
        careful = replace(self.options, exact_effort=_FINAL_EFFORT)
        planned = first_proved_plan(replace(job, options=careful), results, prove)
        search = replace(planned.search, refused=(*refused, *planned.search.refused))
        return replace(planned, search=search)

    def plan_tiling(
        self, original: bytes, tiling: Tiling, permission: TilePermission
    ) -> PlannedFile:
        """Make the file of a tiling. Raises UsageError or UnsoundPlanError if it cannot be made."""
        return plan_tiling(original, tiling, permission, self.options, self.on_progress, self.stop)

    def _plan_by_hand(self, original: bytes, permission: TilePermission) -> PlannedFile:
        """Plan the regions that the user specified, whether they save memory or not. Both ways to
        treat views are tried. The one that adds no operators beyond the permitted ones is taken; if
        both or neither do so, the smaller one."""
        regions = possible_regions(original, permission.by_hand, permission.inexact)
        planned: list[PlannedFile] = []
        for bind_views in (True, False) if permission.dialect else (False,):
            try:
                tiling = Tiling.unplanned(regions, bind_views=bind_views)
                planned.append(self.plan_tiling(original, tiling, permission))
            except (UnsoundPlanError, UsageError):
                if not planned and not bind_views:
                    raise
        source = read_model(original)
        cleaned = clone(source)
        used_kinds = clean_up(cleaned).kinds
        operators, target = permission.operators, self.options.kernels.target

        def rank(file: PlannedFile) -> tuple[bool, int]:
            added = new_kinds(source, file.inspection.model)
            allowed = all(operators.allows(kind, used_kinds, target) for kind in added)
            return not allowed, file.inspection.arena.arena

        best = min(planned, key=rank)
        return best.relative_to(latency_of(cleaned, target).instructions, target)
