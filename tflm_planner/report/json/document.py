"""Makes JSON of reports, inspections, verdicts and arenas, with the types of the other modules.

It must not know files: the caller dumps the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from tflm_planner.report.document import Allocation, HeadLimits, MemoryMap, Report
from tflm_planner.report.json import arena as arena_types
from tflm_planner.report.json import memory_map as memory_map_types
from tflm_planner.report.json import report as report_types
from tflm_planner.report.json import verification as verification_types
from tflm_planner.report.json.common import SCHEMA_VERSION
from tflm_planner.report.text.fit import next_line, verdict_line
from tflm_planner.support.documents import plain, view
from tflm_planner.tflm.arena.predict import Arena, CommonArena, SplitArena
from tflm_planner.tflm.arena.uncertainty import may_need_more
from tflm_planner.tflm.targets import Target
from tflm_planner.verification.planned import PlanVerdict

if TYPE_CHECKING:
    from tflm_planner.verification import Equality  # which needs numpy

JsonObject = dict[str, Any]


def to_json(report: Report) -> JsonObject:
    """`report` as dicts, lists, strings, numbers, booleans and None. All sizes are bytes."""
    before, after = report.before, report.after
    return plain(
        view(
            report,
            report_types.ReportJson,
            schema_version=SCHEMA_VERSION,
            planner_version=report.version,
            source=report_types.FileJson(report.source, report.sha256_before),
            destination=report_types.FileJson(report.destination, report.sha256_after),
            arena=report_types.ArenasJson(
                before.arena.arena, after.arena.arena, report.saved, report.bound
            ),
            head=report_types.HeadJson(before.head, after.head),
            budget=report_types.BudgetJson(report.budget, _meets_budget(report)),
            fit=_fit(report),
            proof=report.terms,
            allocation=_allocation(report.allocation),
            io=report.converted,
        )
    )


def _allocation(allocation: Allocation) -> report_types.AllocationJson:
    """How the offsets were found. The attributes of the solution are included in the same
    object."""
    solution = view(allocation.solution, report_types.SolutionJson)
    return view(
        allocation,
        report_types.AllocationJson,
        **asdict(solution),
    )


def _fit(report: Report) -> report_types.FitJson:
    """Whether the arena and the file fit."""
    board = report.board
    return report_types.FitJson(
        verdict=verdict_line(report),
        known=report.fits if report.arena_limit is not None else None,
        board=None if board is None else board.id,
        arena_limit=report.arena_limit,
        flash=None if board is None else board.flash,
        next_command=next_line(report),
    )


def _meets_budget(report: Report) -> bool | None:
    """Whether the arena is within the budget; None if only a lower bound of the arena is."""
    if report.budget is None:
        return True
    arena = report.after.arena
    fits = arena.arena <= report.budget
    in_doubt = arena.bound == "about" or (fits and may_need_more(arena.bound))
    return None if in_doubt else fits


def inspection_to_json(
    memory_map: MemoryMap, limits: HeadLimits, notes: Sequence[str], cannot_run: Sequence[str] = ()
) -> JsonObject:
    """The document of `inspect`: the map on stock TFLM, and lower bounds of the head."""
    return plain(
        memory_map_types.InspectionJson(
            SCHEMA_VERSION,
            list(cannot_run),
            view(limits, memory_map_types.LimitsJson),
            list(notes),
            view(memory_map, memory_map_types.MapJson),
        )
    )


def equality_to_json(equality: Equality, arenas: tuple[Arena, Arena], target: Target) -> JsonObject:
    """The document of `verify` for two models: whether they are equal, each runtime's check, the
    proof for every input, and both arenas on a target."""
    before, after = arenas
    return plain(
        view(
            equality,
            verification_types.VerificationJson,
            schema_version=SCHEMA_VERSION,
            target=target.id,
            before=before,
            after=after,
        )
    )


def plan_verdict_to_json(verdict: PlanVerdict, arena: Arena, target: Target) -> JsonObject:
    """The document of `verify` for the plan in one model. arena: see `PlanVerificationJson`."""
    return plain(
        view(
            verdict,
            verification_types.PlanVerificationJson,
            schema_version=SCHEMA_VERSION,
            target=target.id,
            reads_since=verdict.reads_since.isoformat(),
            arena=arena,
        )
    )


def arena_to_json(arena: Arena, target: Target, apart: SplitArena | None = None) -> JsonObject:
    """The document of `arena` for a model on a target. All sizes are bytes. If `exact`, `arena` is
    the smallest arena that works, with its start aligned to 16. apart: the sizes of two arenas, if
    the target's TFLM can have two."""
    return plain(
        view(
            arena,
            arena_types.ArenaOnTargetJson,
            schema_version=SCHEMA_VERSION,
            target=target.id,
            board=None if target.board is None else target.board.id,
            apart=None if apart is None else arena_types.ArenasApartJson(*apart),
        )
    )


def common_arena_to_json(names: Sequence[str], arena: CommonArena, target: Target) -> JsonObject:
    """The document of `arena --shared` for several models in one arena. names: their names, in the
    order of allocation."""
    return plain(
        view(
            arena,
            arena_types.ArenaOfSeveralJson,
            schema_version=SCHEMA_VERSION,
            target=target.id,
            models=list(names),
            warnings=[uncertainty.words for uncertainty in arena.uncertainties],
        )
    )
