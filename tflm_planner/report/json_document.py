"""A report as plain JSON types, described by `schema/report.schema.json`.

It must not know files: the caller dumps the result. The order of keys is fixed, and
`SCHEMA_VERSION` grows with every change that a reader could notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflm_planner.report.document import (
    HeadLimits,
    MemoryMap,
    ParetoFront,
    Report,
    Side,
)
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.arena.uncertainty import bound_of
from tflm_planner.tflm.targets import Target
from tflm_planner.verification.verdict import RuntimeCheck, Verdict

SCHEMA_VERSION = 3
"""The version of the document; `schema_version` in the JSON."""

JsonObject = dict[str, Any]


def to_json(report: Report) -> JsonObject:
    """`report` as dicts, lists, strings, numbers, booleans and None. All sizes are bytes.

    Names are as the model spells them, control characters too (JSON escapes them), but lone
    surrogates, which UTF-8 cannot hold, become "?".
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "planner_version": _text(report.version),
        "target": _text(report.target),
        "source": {"path": _text(report.source), "sha256": report.sha256_before},
        "destination": {"path": _text(report.destination), "sha256": report.sha256_after},
        "arena": {
            "before": report.before.arena.arena,
            "after": report.after.arena.arena,
            "saved": report.saved,
            "bound": report.bound,
        },
        "head": {"before": report.before.head, "after": report.after.head},
        "budget": {"bytes": report.budget, "met": _met(report)},
        "stopped": report.stopped,
        "verified": report.verified,
        "cannot_run": [_text(reason) for reason in report.cannot_run],
        "checks": [_check(check) for check in report.checks],
        "limits": _limits(report.limits),
        "order": {
            "method": _text(report.order.method),
            "changed": report.order.changed,
            "peak": report.order.peak,
            "lower_bound": report.order.lower_bound,
            "optimal": report.order.optimal,
        },
        "allocation": {
            "allocator": _text(report.allocation.solution.allocator),
            "height": report.allocation.solution.height,
            "lower_bound": report.allocation.solution.lower_bound,
            "optimal": report.allocation.solution.optimal,
            "aliases": [_text(alias) for alias in report.allocation.aliases],
            "trails": [_text(input_overlap) for input_overlap in report.allocation.input_overlaps],
            "replayed": report.allocation.replayed,
        },
        "front": None if report.front is None else _front(report.front),
        "notes": [_text(note) for note in report.notes],
        "seconds": {_text(name): value for name, value in report.seconds.items()},
        "before": _side(report.before),
        "after": _side(report.after),
    }


def _met(report: Report) -> bool | None:
    """None: within the budget as far as the arena is known, which is not to the end."""
    return None if report.within_budget and not report.known_to_fit else report.within_budget


def inspection_to_json(
    memory_map: MemoryMap, limits: HeadLimits, notes: Sequence[str], cannot_run: Sequence[str] = ()
) -> JsonObject:
    """What `inspect` shows of a model: its map on stock TFLM, and the floors of its head."""
    return {
        "schema_version": SCHEMA_VERSION,
        "cannot_run": [_text(reason) for reason in cannot_run],
        "limits": _limits(limits),
        "notes": [_text(note) for note in notes],
        "map": map_to_json(memory_map),
    }


def verdict_to_json(verdict: Verdict) -> JsonObject:
    """What `verify` says: equal or not, runtime by runtime."""
    return {
        "schema_version": SCHEMA_VERSION,
        "equal": verdict.proved and verdict.exact,
        "checks": [_check(check) for check in verdict.checks],
    }


def _front(front: ParetoFront) -> JsonObject:
    return {
        "objective": front.objective,
        "allowed_overhead": front.allowed,
        "bound": front.bound,
        "points": [
            {
                "role": point.role,
                "bytes": point.size,
                "overhead": point.overhead,
                "added_operators": list(point.added),
                "tiles": point.tiles,
                "loops": point.loops,
            }
            for point in front.points
        ],
    }


def _check(check: RuntimeCheck) -> JsonObject:
    return {
        "runtime": _text(check.runtime),
        "status": check.status,
        "inputs": check.inputs,
        "outputs_vary": check.outputs_vary,
        "detail": _text(check.detail),
    }


def _limits(limits: HeadLimits) -> JsonObject:
    return {
        "inputs": limits.inputs,
        "order": limits.order,
        "best_order": limits.best_order,
        "overlap": limits.overlap,
    }


def _side(side: Side) -> JsonObject:
    return {
        "operators": side.operators,
        "tensors": side.tensors,
        "file_bytes": side.file_bytes,
        "macs": side.macs,
        "arena": arena_figures(side.arena),
        "wheel": {
            "predicted_head": side.host.predicted_head,
            "predicted_tail": side.host.predicted_tail,
            "measured_head": side.host.measured_head,
            "measured_tail": side.host.measured_tail,
        },
        "map": map_to_json(side.map),
    }


def arena_to_json(arena: Arena, target: Target) -> JsonObject:
    """What `arena` says of a model on a target. All sizes are bytes; `arena` is the smallest that
    works, its start aligned to 16, if `exact`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "target": target.id,
        "board": None if target.board is None else target.board.id,
        **arena_figures(arena),
        "tail_parts": dict(arena.tail_parts),
        "scratch": [
            {"operator": _text(s.operator), "size": s.size, "offset": s.offset}
            for s in arena.scratch
        ],
        "warnings": [_text(warning) for warning in arena.warnings],
        "cannot_run": [_text(reason) for reason in arena.cannot_run],
    }


def arena_figures(arena: Arena) -> JsonObject:
    """An arena and its parts. exact, bound: how far it is known. reserved: what firmware should
    give, with a margin where it is not."""
    bound = bound_of(arena.uncertainties)
    return {
        "head": arena.head,
        "tail": arena.tail,
        "planning_temp": arena.planning_temp,
        "prepare_temp": arena.prepare_temp,
        "arena": arena.arena,
        "exact": bound == "exact",
        "bound": bound,
        "reserved": arena.reserved,
        "alignment_slack": arena.alignment_slack,
    }


def map_to_json(memory_map: MemoryMap) -> JsonObject:
    """A memory map alone, as it stands under `before.map` and `after.map`."""
    return {
        "head": memory_map.head,
        "bound": memory_map.bound,
        "steps": [
            {
                "index": step.index,
                "operator": _text(step.operator),
                "name": _text(step.name),
                "graph": step.graph,
                "input_bytes": step.input_bytes,
                "output_bytes": step.output_bytes,
                "other_bytes": step.other_bytes,
                "workspace_bytes": step.workspace_bytes,
                "shared_bytes": step.shared_bytes,
                "live_bytes": step.live_bytes,
                "live": [_text(name) for name in step.live],
            }
            for step in memory_map.steps
        ],
        "blocks": [
            {
                "name": _text(block.name),
                "kind": block.kind,
                "size": block.size,
                "offset": block.offset,
                "start": block.start,
                "end": block.end,
            }
            for block in memory_map.blocks
        ],
    }


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
