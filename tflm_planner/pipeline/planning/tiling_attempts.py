"""Makes and proves the files of tilings until one is proved.

    tilings, the best first --> plan --> prove --> equal: taken
                 ^                         |
                 +--- those that share the cause left out --+ refused

Files are made one at a time, each only after those before it were refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.inspection.advice import advice
from tflm_planner.pipeline.planning.pareto import front_of_search
from tflm_planner.pipeline.planning.planned_file import PlannedFile, fits
from tflm_planner.pipeline.planning.planning_result import (
    PlanningResult,
    ProveModel,
    SearchSummary,
)
from tflm_planner.pipeline.planning.refusals import Refusal, RefusalCauses
from tflm_planner.pipeline.planning.tiled_file import new_kinds
from tflm_planner.pipeline.planning.tiling_job import TilingJob
from tflm_planner.report.document import OperatorTrial, ParetoFront
from tflm_planner.report.text.permission import permission_notes
from tflm_planner.support.errors import ForbiddenOperatorsError, UnsoundPlanError, UsageError
from tflm_planner.tiling.permissions import PermissionResults
from tflm_planner.tiling.search import Tiling, TilingResult
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion

REFUSED = "REFUSED, and the next best was made instead; please report this model"


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

    def leave_out(self, tiling: Tiling) -> _Attempts:
        """Leave out a tiling whose file would need operators that are not permitted."""
        return replace(self, results=self.results.without(tiling, self.arena_limit))

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


@dataclass(frozen=True)
class RespelledPlan:
    """What came of other spellings. proved: the plan; None if it saves nothing, is not within the
    limit, or is refused. refused: the refusal, in words."""

    proved: PlanningResult | None = None
    refused: tuple[str, ...] = ()


def respelled_plan(
    job: TilingJob, max_slowdown: float, prove: ProveModel, *, within_limit: bool = False
) -> RespelledPlan:
    """The plan without tiles but with other spellings of operators, within the slowdown.
    within_limit: whether it must be known to be within the limit of the arena."""
    found = job.respelled(max_slowdown)
    if found is None or (within_limit and not fits(found[1], job.arena_limit)):
        return RespelledPlan()
    tiling, spelled = found
    results = PermissionResults(tiling, TilingResult(tiling, (tiling,), evaluated=1))
    attempts = _Attempts(results, RefusalCauses(), job.arena_limit)
    attempts, proved = _prove_tiling(job, attempts, tiling, spelled, prove)
    return RespelledPlan(proved, attempts.refused)


def first_proved_plan(
    job: TilingJob, results: PermissionResults, prove: ProveModel
) -> PlanningResult:
    """The first tiling that lowers the objective and is not refused; the plan without tiles if
    there is none. A file that needs more bytes than its tiling was evaluated at is put aside if it
    therefore exceeds the limit, or without a limit if another tiling promises fewer; it is tried
    only after the other tilings. What needs operators that are not permitted is left out."""
    attempts = _Attempts(results, RefusalCauses(), job.arena_limit)
    missed: list[tuple[Tiling, PlannedFile]] = []
    finalists = results.result.finalists
    for k, tiling in enumerate(finalists):
        if attempts.causes.rules_out(tiling):
            attempts = attempts.skip(tiling)
            continue
        try:
            tiled = job.plan(tiling)
        except ForbiddenOperatorsError as fault:
            attempts = attempts.leave_out(tiling)
            job.on_progress(f"left out: {_describe(tiling)}: {fault}")
            continue
        except (UnsoundPlanError, UsageError) as fault:
            attempts = attempts.pass_over(tiling, fault)
            job.on_progress(attempts.given_up[-1])
            continue
        if job.objective_bytes(tiled) >= job.objective_bytes(job.plain):
            continue
        if job.is_too_slow(tiling, tiled):
            job.on_progress(f"left out: {_describe(tiling)}: its last plan is slower than allowed")
            continue
        if job.breaks_promise(tiling, tiled, finalists[k + 1 :]):
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
    job: TilingJob,
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


def _search_for(
    job: TilingJob, attempts: _Attempts, tiling: Tiling, tiled: PlannedFile
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


def _search_in_vain(job: TilingJob, attempts: _Attempts) -> SearchSummary:
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
    job: TilingJob, attempts: _Attempts, tiling: Tiling | None, planned: PlannedFile
) -> ParetoFront:
    return front_of_search(
        attempts.results.result,
        job.permission.objective,
        job.permission.max_slowdown,
        job.objective_bytes(job.plain),
        tiling,
        job.objective_bytes(planned),
        planned.slowdown,
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
    parts = " x ".join(f"{s.parts}{' uneven' if s.growth else ''}" for s in region.splits)
    return f"{ops} in {parts} parts, halo {region.halo}"
