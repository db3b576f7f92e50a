"""Reports, inspections, verdicts and arenas as plain JSON types; `json_types` says which.

It must not know files: the caller dumps the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from tflm_planner.report import json_types as types
from tflm_planner.report.document import HeadLimits, MemoryMap, Report
from tflm_planner.report.json_types import SCHEMA_VERSION
from tflm_planner.support.documents import plain, view
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.targets import Target
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
            stopped=report.stopped,
            verified=report.verified,
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


def _met(report: Report) -> bool | None:
    """None: within the budget as far as the arena is known, which is not to the end."""
    return None if report.within_budget and not report.known_to_fit else report.within_budget


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


def verdict_to_json(verdict: Verdict) -> JsonObject:
    """What `verify` says: equal or not, runtime by runtime."""
    checks = view(verdict.checks, list[types.Check])
    return plain(types.Verification(SCHEMA_VERSION, verdict.proved and verdict.exact, checks))


def arena_to_json(arena: Arena, target: Target) -> JsonObject:
    """What `arena` says of a model on a target. All sizes are bytes; `arena` is the smallest that
    works, its start aligned to 16, if `exact`."""
    parts = asdict(view(arena, types.ArenaParts))
    board = None if target.board is None else target.board.id
    return plain(
        types.ArenaOnTarget(**parts, schema_version=SCHEMA_VERSION, target=target.id, board=board)
    )
