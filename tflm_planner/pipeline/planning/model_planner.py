"""Makes a planned and proved file from a model: without tiles, with tiles that the user specifies,
or with the best tiling that a search finds.

    plan without tiles ------------------------------------------------------------+
    search -> tilings, the best first --> plan_tiling --> prove --> equal: taken   | taken where
                 ^                                          |                      | no tiling is
                 +--- those that share the cause left out --+ refused              v

Files are made one at a time, each only after those before it were refused. The caller supplies
`prove`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.inspection.advice import advice
from tflm_planner.pipeline.options import MemoryOptions, TilePermission
from tflm_planner.pipeline.planning.by_hand import make_tiling
from tflm_planner.pipeline.planning.memory_plan import count_instructions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.pipeline.planning.pareto import front_of_search
from tflm_planner.pipeline.planning.planned_file import PlannedFile, never_larger, write_and_check
from tflm_planner.pipeline.planning.refusals import Proof, Refusal, RefusalCauses
from tflm_planner.pipeline.planning.tiled_file import new_kinds, plan_tiling
from tflm_planner.pipeline.planning.versions import refuse_plan
from tflm_planner.report.document import OperatorTrial, ParetoFront
from tflm_planner.report.text.permission import permission_notes
from tflm_planner.support.errors import UnsoundPlanError, UsageError
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop, StoppedError
from tflm_planner.tflm.arena.uncertainty import may_need_more
from tflm_planner.tiling.permissions import PermissionResults, search_by_permission
from tflm_planner.tiling.search import Tiling
from tflm_planner.transforms.drop_conversions import ConvertedEnd
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion

REFUSED = "REFUSED, and the next best was made instead; please report this model"
_FINAL_EFFORT = 0.1
"""Effort of exact packing for the final plan of a tiled model. It starts from the plan with which
the search evaluated the tiling, which can rarely be improved."""

ProveModel = Callable[[PlannedFile], Proof]


@dataclass(frozen=True)
class SearchSummary:
    """A summary of the search that led to a file. notes: notes for reports. front: the Pareto
    front. refused: better candidates that a guard or the proof refused, and why; each is an error
    of this tool. plain: bytes of arena with order and plan alone, if that plan was made. trials:
    what the search tried with each operator; none if candidates were refused."""

    notes: tuple[str, ...] = ()
    front: ParetoFront | None = None
    refused: tuple[str, ...] = ()
    plain: int | None = None
    trials: tuple[OperatorTrial, ...] = ()


@dataclass(frozen=True)
class PlanningResult:
    """A planned file, its proof, and the search for it. converted: inputs and outputs whose type
    differs from the original's."""

    file: PlannedFile
    proof: Proof
    search: SearchSummary = SearchSummary()
    converted: tuple[ConvertedEnd, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the search and on the file."""
        return (*self.search.notes, *self.file.notes)


def leave_unproved(_: object) -> Proof:
    """A `prove` function that proves nothing, for callers without proof."""
    return Proof()


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
        if self.permission is None or self._fits(plain):
            return PlanningResult(plain, prove(plain), _plain_alone(plain))
        if self.permission.spellings_only:
            return self._plan_respelled(original, plain, self.permission, prove)
        return self._plan_with_tiles(original, plain, self.permission, prove)

    def _fits(self, plain: PlannedFile) -> bool:
        """Whether the plan without tiles, which is the fastest, is known to be within the limit."""
        arena = plain.inspection.arena
        limit = self.arena_limit
        return limit is not None and not may_need_more(arena.bound) and arena.arena <= limit

    def _plan_with_tiles(
        self, original: bytes, plain: PlannedFile, permission: TilePermission, prove: ProveModel
    ) -> PlanningResult:
        tiling_options = permission.tiling_options(self.options, self.arena_limit)
        try:
            results = search_by_permission(original, tiling_options, self.on_progress, self.stop)
        except StoppedError:
            search = replace(_plain_alone(plain), notes=("no tiles were looked for",))
            return PlanningResult(plain, prove(plain), search)
        careful = replace(self, options=replace(self.options, exact_effort=_FINAL_EFFORT))
        return _first_proved_plan(_TilingJob(original, plain, permission, careful), results, prove)

    def _plan_respelled(
        self, original: bytes, plain: PlannedFile, permission: TilePermission, prove: ProveModel
    ) -> PlanningResult:
        """Plan without tiles but with other spellings of operators. The result is the plain plan if
        that saves nothing or is refused."""
        target = self.options.kernels.target
        plain_instructions = count_instructions(plain.memory_plan, target)
        most = int(permission.max_slowdown * plain_instructions)
        tiling = Tiling.respelled(most, permission.objective)
        job = _TilingJob(original, plain, permission, self)
        search = _plain_alone(plain)
        try:
            spelled = job.plan(tiling)
        except (UnsoundPlanError, UsageError) as fault:
            self.on_progress(f"passed over: other spellings: {fault}")
            return PlanningResult(plain, prove(plain), search)
        if job.objective_bytes(spelled) >= job.objective_bytes(plain):
            return PlanningResult(plain, prove(plain), search)
        slowdown = spelled.instructions(target) / plain_instructions
        spelled = replace(spelled, slowdown=slowdown)
        proof = prove(spelled)
        if proof.refusal is None:
            return PlanningResult(spelled, proof, search)
        return PlanningResult(plain, prove(plain), search)

    def plan_tiling(
        self, original: bytes, tiling: Tiling, permission: TilePermission
    ) -> PlannedFile:
        """Make the file of a tiling. Raises UsageError or UnsoundPlanError if it cannot be made."""
        return plan_tiling(original, tiling, permission, self.options, self.on_progress, self.stop)

    def _plan_by_hand(self, original: bytes, permission: TilePermission) -> PlannedFile:
        """Plan the regions that the user specified, whether they save memory or not. Both ways to
        treat views are tried. The one that adds no operators beyond the permitted ones is taken; if
        both or neither do so, the smaller one."""
        kernels = self.options.kernels
        tiling = make_tiling(original, permission.by_hand, kernels, permission.inexact)
        planned: list[PlannedFile] = []
        for bind_views in (True, False) if permission.dialect else (False,):
            try:
                variant = replace(tiling, bind_views=bind_views)
                planned.append(self.plan_tiling(original, variant, permission))
            except (UnsoundPlanError, UsageError):
                if not planned and not bind_views:
                    raise
        source = read_model(original)
        used_kinds = frozenset(op.kind for op in source.ops())
        operators, target = permission.operators, kernels.target

        def rank(file: PlannedFile) -> tuple[bool, int]:
            added = new_kinds(source, file.inspection.model)
            allowed = all(operators.allows(kind, used_kinds, target) for kind in added)
            return not allowed, file.inspection.arena.arena

        return min(planned, key=rank)


@dataclass(frozen=True)
class _TilingJob:
    """A model whose tilings are tried. plain: its plan without tiles. planner: makes the final plan
    of each tiling."""

    original: bytes
    plain: PlannedFile
    permission: TilePermission
    planner: ModelPlanner

    def plan(self, tiling: Tiling) -> PlannedFile:
        """Make the file of a tiling."""
        return self.planner.plan_tiling(self.original, tiling, self.permission)

    def on_progress(self, message: str) -> None:
        """Report progress."""
        self.planner.on_progress(message)

    def objective_bytes(self, planned: PlannedFile) -> int:
        """The bytes of a file that the search minimizes."""
        arena = planned.inspection.arena
        return arena.arena if self.permission.objective == "arena" else arena.head

    def misses_arena_limit(self, tiling: Tiling, planned: PlannedFile) -> bool:
        """Whether a file exceeds the limit although its tiling was evaluated as within the
        limit."""
        limit = self.planner.arena_limit
        return limit is not None and tiling.bytes <= limit < self.objective_bytes(planned)


@dataclass(frozen=True)
class _Attempts:
    """The outcome of the tilings tried so far. results: the results of the search, without tilings
    that were given up. causes: the causes of the proof's refusals. given_up: which tilings were
    refused or passed over, and why, in words. skipped: how many were not tried because they share
    the cause of a refusal."""

    results: PermissionResults
    causes: RefusalCauses
    arena_limit: int | None
    given_up: tuple[str, ...] = ()
    skipped: int = 0

    def skip(self, tiling: Tiling) -> _Attempts:
        """Leave out a tiling that shares the cause of a refusal."""
        results = self.results.without(tiling, self.arena_limit)
        return replace(self, results=results, skipped=self.skipped + 1)

    def pass_over(self, tiling: Tiling, fault: Exception) -> _Attempts:
        """Leave out a tiling whose file a guard refused."""
        return self._give_up(tiling, self.causes, f"passed over: {_describe(tiling)}: {fault}")

    def refuse(self, tiling: Tiling, refusal: Refusal) -> _Attempts:
        """Leave out a tiling whose file the proof refused, and those that share the cause."""
        causes = self.causes.including(tiling, refusal)
        return self._give_up(tiling, causes, f"{REFUSED}: {_describe(tiling)}: {refusal}")

    def _give_up(self, tiling: Tiling, causes: RefusalCauses, why: str) -> _Attempts:
        results = self.results.without(tiling, self.arena_limit).unlike(causes.rules_out)
        return replace(self, results=results, causes=causes, given_up=(*self.given_up, why))

    @property
    def refused(self) -> tuple[str, ...]:
        """The lines of a report about tilings that were given up or skipped."""
        if not self.skipped:
            return self.given_up
        more = f"not tried, as they share the cause: {self.skipped} more ways to tile"
        return (*self.given_up, more)


def _first_proved_plan(
    job: _TilingJob, results: PermissionResults, prove: ProveModel
) -> PlanningResult:
    """The first tiling that lowers the objective and is not refused; the plan without tiles if
    there is none. A file that needs more bytes than its tiling was evaluated at, and therefore
    exceeds the limit, is put aside and tried only after the other tilings."""
    attempts = _Attempts(results, RefusalCauses(), job.planner.arena_limit)
    missed: list[tuple[Tiling, PlannedFile]] = []
    for tiling in results.result.finalists:
        if attempts.causes.rules_out(tiling):
            attempts = attempts.skip(tiling)
            continue
        try:
            tiled = job.plan(tiling)
        except (UnsoundPlanError, UsageError) as fault:
            attempts = attempts.pass_over(tiling, fault)
            job.on_progress(attempts.given_up[-1])
            continue
        if job.objective_bytes(tiled) >= job.objective_bytes(job.plain):
            continue
        if job.misses_arena_limit(tiling, tiled):
            missed.append((tiling, tiled))
            continue
        attempts, proved = _prove_tiling(job, attempts, tiling, tiled, prove)
        if proved is not None:
            return proved
    for tiling, tiled in sorted(missed, key=lambda pair: job.objective_bytes(pair[1])):
        attempts, proved = _prove_tiling(job, attempts, tiling, tiled, prove)
        if proved is not None:
            return proved
    return PlanningResult(job.plain, prove(job.plain), _search_in_vain(job, attempts))


def _prove_tiling(
    job: _TilingJob,
    attempts: _Attempts,
    tiling: Tiling,
    tiled: PlannedFile,
    prove: ProveModel,
) -> tuple[_Attempts, PlanningResult | None]:
    """Prove the file of a tiling. Returns the attempts including this one, and the result; None if
    the file is refused, or shares the cause of an earlier refusal."""
    if attempts.causes.rules_out_files(tiled.data, tiled.twin):
        return attempts.skip(tiling), None
    proof = prove(tiled)
    if proof.refusal is None:
        return attempts, PlanningResult(tiled, proof, _search_for(job, attempts, tiling, tiled))
    attempts = attempts.refuse(tiling, proof.refusal)
    job.on_progress(attempts.given_up[-1])
    return attempts, None


def _plain_alone(plain: PlannedFile) -> SearchSummary:
    """The summary if no search for tiles was made."""
    return SearchSummary(plain=plain.inspection.arena.arena)


def _search_for(
    job: _TilingJob, attempts: _Attempts, tiling: Tiling, tiled: PlannedFile
) -> SearchSummary:
    """The summary of a search that led to a tiled file."""
    more = new_kinds(read_model(job.original), tiled.inspection.model)
    plain, best = job.objective_bytes(job.plain), job.objective_bytes(tiled)
    own, bound = attempts.results.same_firmware, tiled.inspection.arena.bound
    gains = permission_notes(plain, None if own is None else own.bytes, best, more, bound)
    return SearchSummary(
        notes=(*gains, *advice(tiled.inspection)),
        front=_pareto_front(job, attempts, tiling, tiled),
        refused=attempts.refused,
        plain=job.plain.inspection.arena.arena,
        trials=_trials(attempts),
    )


def _search_in_vain(job: _TilingJob, attempts: _Attempts) -> SearchSummary:
    """The summary of a search that found nothing better than the plan without tiles."""
    proved = " that stood the proof" if attempts.refused else ""
    outcome = (
        f"{attempts.results.result.evaluated} ways to tile and to stream were tried; none{proved} "
        "lowers the arena within what is allowed"
    )
    return SearchSummary(
        notes=(outcome, *advice(job.plain.inspection)),
        front=_pareto_front(job, attempts, None, job.plain),
        refused=attempts.refused,
        plain=job.plain.inspection.arena.arena,
        trials=_trials(attempts),
    )


def _trials(attempts: _Attempts) -> tuple[OperatorTrial, ...]:
    """What the search tried with each operator; none if something was refused, as that may be the
    smallest that it tried."""
    trials = () if attempts.refused else attempts.results.result.trials
    return tuple(
        OperatorTrial(t.name, t.bytes, t.slowdown, t.fast_enough, t.promising, t.whole)
        for t in trials
        if t.name
    )


def _pareto_front(
    job: _TilingJob, attempts: _Attempts, tiling: Tiling | None, planned: PlannedFile
) -> ParetoFront:
    return front_of_search(
        attempts.results.result,
        job.permission.objective,
        job.permission.max_slowdown,
        job.objective_bytes(job.plain),
        tiling,
        job.objective_bytes(planned),
    )


def _describe(tiling: Tiling) -> str:
    """A tiling in words, for a report."""
    regions = ", ".join(map(_describe_region, tiling.regions))
    ways = [f"operators {regions}"] if regions else []
    ways += [] if tiling.respell is None else ["operators spelled otherwise"]
    ways += [] if tiling.subsample is None else ["pixels left out that nothing reads"]
    return f"{tiling.bytes:,} B of {tiling.objective} by {' and '.join(ways)}"


def _describe_region(region: TiledRegion | LoopedRegion) -> str:
    ops = f"{region.ops[0]}-{region.ops[-1]}"
    if isinstance(region, LoopedRegion):
        return f"{ops} in a {region.border} loop, rows a turn: {region.rows}"
    return f"{ops} in {' x '.join(str(s.parts) for s in region.splits)} parts, halo {region.halo}"
