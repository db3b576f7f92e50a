"""Renders the verdict of `verify` on the plan in one model: what is wrong and where, the scratch,
which TFLM reads it, and the conclusion."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tflm_planner.report.text.bounds import long_figure
from tflm_planner.report.text.safe import safe_text
from tflm_planner.support.words import count
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import FIRST_KNOWN
from tflm_planner.verification.planned import PlanVerdict

_SCRATCH_SHOWN = 6


def render_plan_verdict(name: str, verdict: PlanVerdict, arena: Arena, target: Target) -> str:
    """The verdict as text, ending in the conclusion and a line break. name: the name of the model.
    arena: its arena with the plan, or without it if the plan is wrong."""
    return "\n".join(_lines(safe_text(name), verdict, arena, target)) + "\n"


def _lines(name: str, verdict: PlanVerdict, arena: Arena, target: Target) -> Iterator[str]:
    yield f"{name} on {safe_text(target.id)} ({safe_text(target.name)})"
    if not verdict.has_plan:
        yield "  plan     none: TFLM's own memory planner places everything when it starts"
    else:
        yield from _plan_lines(verdict)
    yield from _scratch_lines(verdict)
    if verdict.sound:
        yield f"  arena    {long_figure(arena.arena, arena.bound)}"
    for fault in verdict.faults:
        yield f"  WRONG    {safe_text(fault.said)}"
    for note in verdict.notes:
        yield f"  note     {safe_text(note)}"
    yield _conclusion(verdict)


def _plan_lines(verdict: PlanVerdict) -> Iterator[str]:
    placed = verdict.tensors - verdict.left
    if any(fault.kind == "count" for fault in verdict.faults):
        yield "  plan     there is one, and TFLM refuses it"
    else:
        remainder = f", {verdict.left:,} are left to TFLM" if verdict.left else ""
        tensors = count(verdict.tensors, "tensor", "tensors")
        yield f"  plan     offsets for {placed:,} of {tensors} in the arena{remainder}"
    since = verdict.reads_since
    every = "every version that is known, from" if since == FIRST_KNOWN else "from"
    yield f"  TFLM     {every} {since} on reads it"
    if verdict.terms is not None:
        yield f"  bytes    {_terms(verdict)}"


def _terms(verdict: PlanVerdict) -> str:
    terms = verdict.terms
    if terms is None or terms.status == "not run":
        return safe_text(f"not followed: {'' if terms is None else terms.detail}")
    if terms.status == "different":
        return safe_text(f"WRONG in the planned arena: {terms.detail}")
    error = f"chance of error < 2^{math.floor(terms.error_log2 or 0) + 1}"
    return f"right for every input, followed through the planned arena ({error})"


def _scratch_lines(verdict: PlanVerdict) -> Iterator[str]:
    if not verdict.scratch or any(f.kind == "count" for f in verdict.faults):
        return
    top = max(s.offset + s.size for s in verdict.scratch)
    outcome = "finds room"
    if verdict.has_plan and verdict.left == 0:
        above = top - verdict.planned
        outcome += " within the plan" if above <= 0 else f" only {above:,} B above the plan"
    total = count(len(verdict.scratch), "buffer", "buffers")
    yield f"  scratch  {total}, for which TFLM's first fit {outcome}; the largest:"
    for use in sorted(verdict.scratch, key=lambda s: -s.size)[:_SCRATCH_SHOWN]:
        label = safe_text(use.operator)[:80]
        yield f"           {use.size:>9,} B at {use.offset:>9,}  {label}"


def _conclusion(verdict: PlanVerdict) -> str:
    if not verdict.has_plan:
        return "NO PLAN: TFLM's own plan is what runs; `tflm-plan IN OUT` makes one"
    if verdict.faults:
        total = count(len(verdict.faults), "fault", "faults")
        return f"WRONG: {total}; `tflm-plan IN OUT` makes another plan"
    if not verdict.sound:
        return "WRONG: what the model computes changes in the planned arena"
    if verdict.terms is None or verdict.terms.status == "not run":
        return "SOUND: no rule is broken; the bytes were not followed"
    return "SOUND: no rule is broken, and every byte is right"
