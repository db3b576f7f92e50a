"""Reports, inspections, verdicts and arenas as plain JSON types; `json_types` says which.

It must not know files: the caller dumps the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from tflm_planner.report import json_types as types
from tflm_planner.report.document import HeadLimits, MemoryMap, Report
from tflm_planner.report.fit_text import next_line, verdict_line
from tflm_planner.report.json_types import SCHEMA_VERSION
from tflm_planner.support.documents import plain, view
from tflm_planner.tflm.arena.predict import Arena, CommonArena, SplitArena
from tflm_planner.tflm.targets import Target
from tflm_planner.verification.planned import PlanVerdict
from tflm_planner.verification.verdict import Verdict

JsonObject = dict[str, Any]


def to_json(report: Report) -> JsonObject:
    """`report` as dicts, lists, strings, numbers, booleans and None. All sizes are bytes."""
    before, after, found = report.before, report.after, report.allocation
    arenas = types.Arenas(before.arena.arena, after.arena.arena, report.saved, report.bound)
    solution = asdict(view(found.solution, types.Solution))
    return plain(
        types.Report(
            schema_version=SCHEMA_VERSION,
            planner_version=report.version,
            target=report.target,
            source=types.File(report.source, report.sha256_before),
            destination=types.File(report.destination, report.sha256_after),
            arena=arenas,
            head=types.Head(before.head, after.head),
            budget=types.Budget(report.budget, _met(report)),
            fit=_fit(report),
            ladder=view(report.ladder, list[types.Rung]),
            paste=view(report.paste, types.Paste),
            stopped=report.stopped,
            verified=report.verified,
            tflm_only=report.tflm_only,
            cannot_run=list(report.cannot_run),
            proof=None if report.terms is None else view(report.terms, types.Proof),
            checks=view(report.checks, list[types.Check]),
            limits=view(report.limits, types.Limits),
            order=view(report.order, types.Order),
            allocation=types.Allocation(
                **solution,
                aliases=list(found.aliases),
                trails=list(found.input_overlaps),
                replayed=found.replayed,
            ),
            front=None if report.front is None else view(report.front, types.Front),
            io=view(report.converted, list[types.ConvertedEnd]),
            notes=list(report.notes),
            seconds=report.seconds,
            before=view(before, types.Side),
            after=view(after, types.Side),
        )
    )


def _fit(report: Report) -> types.Fit:
    """Whether the arena and the file have room."""
    board = report.board
    return types.Fit(
        verdict=verdict_line(report),
        known=report.known_to_fit if report.room is not None else None,
        board=None if board is None else board.id,
        room=report.room,
        flash=None if board is None else board.flash,
        next_command=next_line(report),
    )


def _met(report: Report) -> bool | None:
    """None: within the budget as far as the arena is known, which is not to the end."""
    if report.budget is None:
        return True
    arena = report.after.arena
    in_doubt = arena.arena <= report.budget and arena.bound == "at least"
    return None if in_doubt else arena.arena <= report.budget


def inspection_to_json(
    memory_map: MemoryMap, limits: HeadLimits, notes: Sequence[str], cannot_run: Sequence[str] = ()
) -> JsonObject:
    """What `inspect` shows of a model: its map on stock TFLM, and the floors of its head."""
    return plain(
        types.Inspection(
            SCHEMA_VERSION,
            list(cannot_run),
            view(limits, types.Limits),
            list(notes),
            view(memory_map, types.Map),
        )
    )


def verdict_to_json(verdict: Verdict, arenas: tuple[Arena, Arena], target: Target) -> JsonObject:
    """What `verify` says: equal or not, runtime by runtime, and both arenas on a target."""
    checks = view(verdict.checks, list[types.Check])
    before, after = (view(arena, types.Arena) for arena in arenas)
    equal = verdict.proved and verdict.exact
    return plain(types.Verification(SCHEMA_VERSION, equal, checks, target.id, before, after))


def plan_verdict_to_json(verdict: PlanVerdict, arena: Arena, target: Target) -> JsonObject:
    """What `verify` says of the plan in one model. arena: see `types.PlanVerification`."""
    return plain(
        types.PlanVerification(
            schema_version=SCHEMA_VERSION,
            target=target.id,
            has_plan=verdict.has_plan,
            sound=verdict.sound,
            tensors=verdict.tensors,
            left=verdict.left,
            head=verdict.head,
            planned=verdict.planned,
            scratch=view(verdict.scratch, list[types.Scratch]),
            reads_since=verdict.reads_since.isoformat(),
            faults=view(verdict.faults, list[types.PlanFault]),
            terms=None if verdict.terms is None else view(verdict.terms, types.Proof),
            notes=list(verdict.notes),
            arena=view(arena, types.Arena),
        )
    )


def arena_to_json(arena: Arena, target: Target, apart: SplitArena | None = None) -> JsonObject:
    """What `arena` says of a model on a target. All sizes are bytes; `arena` is the smallest that
    works, its start aligned to 16, if `exact`. apart: the same in two arenas, if there can be
    two."""
    parts = asdict(view(arena, types.ArenaParts))
    return plain(
        types.ArenaOnTarget(
            **parts,
            schema_version=SCHEMA_VERSION,
            target=target.id,
            board=None if target.board is None else target.board.id,
            resource_variables=arena.resource_variables,
            apart=None if apart is None else types.ArenasApart(*apart),
        )
    )


def common_arena_to_json(names: Sequence[str], arena: CommonArena, target: Target) -> JsonObject:
    """What `arena --shared` says of several models in one arena, named in their order."""
    return plain(
        types.ArenaOfSeveral(
            schema_version=SCHEMA_VERSION,
            target=target.id,
            models=list(names),
            arena=arena.arena,
            bound=arena.bound,
            reserved=arena.reserved,
            alignment_slack=arena.alignment_slack,
            head=arena.head,
            tail=arena.tail,
            tails=list(arena.tails),
            warnings=[uncertainty.words for uncertainty in arena.uncertainties],
        )
    )
