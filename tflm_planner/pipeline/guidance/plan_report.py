"""Makes the report of a plan: before and after, what was chosen, what was proved, and notes.

It must not decide anything; it combines the results of other parts of the pipeline.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tflm_planner.cost import latency_of, profile_notes
from tflm_planner.model.ir import Model
from tflm_planner.pipeline.guidance.layouts import channels_first_notes
from tflm_planner.pipeline.guidance.paste import paste_of
from tflm_planner.pipeline.guidance.point_commands import with_commands
from tflm_planner.pipeline.inspection.inspect_model import Inspection, shares_by_calls
from tflm_planner.pipeline.options import PlanOptions
from tflm_planner.pipeline.planning.pareto import with_stock
from tflm_planner.pipeline.planning.planned_file import PlannedFile
from tflm_planner.pipeline.planning.planning_result import PlanningResult
from tflm_planner.pipeline.planning.versions import version_notes
from tflm_planner.report.document import (
    Allocation,
    HeadLimits,
    ModelFigures,
    ParetoFront,
    Report,
    Rung,
    SmallerFile,
)
from tflm_planner.support.stopping import Stop
from tflm_planner.support.version import __version__
from tflm_planner.support.words import count
from tflm_planner.tflm.arena.uncertainty import bound_of
from tflm_planner.tflm.targets import Target
from tflm_planner.verification import HostAllocation, Verdict, installed_versions
from tflm_planner.verification.terms import TermsProof

_INEXACT = "NOT EXACT: a sum was split, as --allow-inexact permits; see the checks for how far"


@dataclass(frozen=True)
class ReportParts:
    """The inputs of a report."""

    source: str
    """Its name in the report."""
    destination: str
    """Its name in the report."""
    options: PlanOptions
    """The options of the run."""
    original: bytes
    """The original file."""
    before: Inspection
    """The inspection of the original."""
    dropped: tuple[str, ...]
    """Notes on what was dropped from the original."""
    result: PlanningResult
    """The file, its proof and the search for it."""
    ladder: tuple[Rung, ...]
    """The rungs of further permissions."""
    smaller_file: SmallerFile | None
    """How to make the file smaller, if it exceeds the flash."""
    seconds: dict[str, float]
    """Seconds of planning and of proving."""
    stop: Stop
    """The stop of the search."""


def plan_report(parts: ReportParts) -> Report:
    """The report."""
    planned, proof = parts.result.file, parts.result.proof
    verdict = proof.verdict
    target = parts.options.target
    before = _side(parts.before, len(parts.original), target)
    after = _side(planned.inspection, len(planned.data), target)
    if verdict is not None:
        before = _with_measured_arena(before, verdict.original_arena)
        after = _with_measured_arena(after, verdict.result_arena)
    return Report(
        version=__version__,
        target=target.id,
        source=parts.source,
        destination=parts.destination,
        sha256_before=hashlib.sha256(parts.original).hexdigest(),
        sha256_after=hashlib.sha256(planned.data).hexdigest(),
        before=before,
        after=after,
        limits=_limits(parts.before, planned),
        order=planned.memory_plan.order,
        allocation=_allocation(planned),
        checks=() if verdict is None else verdict.checks,
        terms=proof.terms,
        verified=_is_verified(planned, verdict, proof.terms),
        converted=parts.result.converted,
        budget=parts.options.given_arena_limit,
        stopped=parts.stop.reason,
        notes=_notes(parts, target),
        seconds={**parts.seconds, "total": sum(parts.seconds.values())},
        front=_front(parts, before, after),
        trials=parts.result.search.trials,
        tflm_only=planned.twin is not None,
        board=target.board,
        ladder=parts.ladder,
        smaller_file=parts.smaller_file,
        paste=paste_of(planned.inspection.model, after.arena, target, parts.options.arena_limit),
        command=shlex.join(parts.options.given),
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        versions=installed_versions(),
    )


def _side(inspection: Inspection, file_bytes: int, target: Target) -> ModelFigures:
    return ModelFigures(
        operators=sum(1 for _ in inspection.model.ops()),
        tensors=sum(1 for _ in inspection.model.tensors()),
        file_bytes=file_bytes,
        arena=inspection.arena,
        host=inspection.host,
        map=inspection.map,
        macs=latency_of(inspection.model, target).total.macs,
    )


def _with_measured_arena(side: ModelFigures, allocation: HostAllocation | None) -> ModelFigures:
    """The side with the arena that TFLM on this machine reported, if it ran."""
    if allocation is None:
        return side
    return replace(side, host=replace(side.host, measured=allocation))


def _limits(before: Inspection, planned: PlannedFile) -> HeadLimits:
    """Lower bounds of the head. If operators call graphs, the bound for the best order is
    unknown."""
    by_calls = shares_by_calls(planned.inspection.model)
    return HeadLimits(
        input_bytes=before.limits.input_bytes,
        file_order_bytes=before.limits.file_order_bytes,
        best_order_bytes=None if by_calls else planned.memory_plan.order.lower_bound,
        overlap_bytes=planned.inspection.limits.overlap_bytes,
    )


def _allocation(planned: PlannedFile) -> Allocation:
    solution, sharing = planned.memory_plan.solution, planned.sharing
    return Allocation(solution, sharing.aliases, sharing.input_overlaps, sharing.replayed)


def _is_verified(planned: PlannedFile, verdict: Verdict | None, terms: TermsProof | None) -> bool:
    """Whether the outputs are proved equal, and the target's TFLM can run the file."""
    if verdict is None or planned.inspection.arena.cannot_run:
        return False
    if terms is not None and terms.status == "equal" and not verdict.differs:
        return True
    return verdict.proved and verdict.exact


def _loop_notes(model: Model, target: Target) -> Iterator[str]:
    """A note if the model has loops whose number of iterations is unknown, which figures count
    once."""
    unknown = latency_of(model, target).unknown_loops
    if unknown:
        yield (
            f"{count(unknown, 'loop runs', 'loops run')} as often as inputs say: instructions and "
            "multiply-accumulates count one turn of each"
        )


def _notes(parts: ReportParts, target: Target) -> tuple[str, ...]:
    result, planned = parts.result, parts.result.file
    model = planned.inspection.model
    return (
        *parts.stop.notes,
        *map(str, result.converted),
        *_conversion_notes(parts),
        *result.search.refused,
        *(() if planned.exact else (_INEXACT,)),
        *planned.inspection.arena.warnings,
        *version_notes(model, target),
        *profile_notes(target, model),
        *_loop_notes(model, target),
        *planned.memory_plan.notes,
        *_slowdown_notes(planned),
        *channels_first_notes(parts.before.model),
        *parts.dropped,
        *result.notes,
    )


def _slowdown_notes(planned: PlannedFile) -> Iterator[str]:
    """A note on predicted instructions relative to the original, if they changed."""
    if planned.slowdown != 1:
        yield f"predicted instructions: {100 * (planned.slowdown - 1):+.1f} %"


def _conversion_notes(parts: ReportParts) -> tuple[str, ...]:
    if parts.options.io == "keep" or parts.result.converted:
        return ()
    return ("--io int8 changed nothing: no conversion stands at an input or an output alone",)


def _front(parts: ReportParts, before: ModelFigures, after: ModelFigures) -> ParetoFront | None:
    """The Pareto front of the search for tiles, with the original model as one of its points, and
    with commands for the other points."""
    front = parts.result.search.front
    if front is None:
        return None
    stock = before.arena.arena if front.objective == "arena" else before.head
    bound = bound_of([*before.arena.uncertainties, *after.arena.uncertainties])
    whole = with_stock(front, stock, bound)
    return with_commands(whole, parts.options, parts.source)
