"""Checks the plan that a model carries, from any tool.

    file --> entries --counts--> offsets --first fit--> placement --> faults: pair, place, time
         `-> without its plan ------------------------- terms ------> the same bytes?

Life spans and overlaps are those of the planning problem. Scratch lies where TFLM's first fit puts
it. It must not know how plans are made.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import product
from typing import TYPE_CHECKING, Literal

from tflm_planner.memory.problem import Violation
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import remove_metadata
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.ops import sharings
from tflm_planner.support.units import ALIGNMENT, align_up
from tflm_planner.tflm.liveness import Timeline, planned_bytes, timeline_of
from tflm_planner.tflm.placement import (
    Placement,
    placed_variables,
    placement_of,
    variables_without_memory,
)
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import FIRST_KNOWN, day_of, since_behaviour
from tflm_planner.transforms.attach_plan import PLAN_METADATA, carried_plan, plan_entries

if TYPE_CHECKING:
    from tflm_planner.verification.terms import TermsProof

FaultKind = Literal["count", "negative", "alignment", "far", "collision", "version"]
_RUNS_PROOF: frozenset[FaultKind] = frozenset({"alignment", "collision", "version"})
"""The kinds of fault with which the arena's bytes can still be traced, because all offsets are
known and of a plausible size."""

_FAR_FACTOR, _LEAST_FAR_BYTES = 16, 1 << 20
"""An offset counts as an error if it is at least this many times the size of all buffers side by
side, and at least this many bytes. A plan with gaps is not an error: its cost shows in the arena,
and if tensors were removed from a file, its plan may reach beyond the remaining ones."""


@dataclass(frozen=True, slots=True)
class PlanFault:
    """What is wrong with a plan, and where. said: the fault in words. first, second: names of the
    buffers involved, or empty. bytes_from, bytes_to: the range of the head. operators: the first
    and the last operator during which the fault holds, as positions in the order of execution; None
    if it holds at any time."""

    kind: FaultKind
    said: str
    first: str = ""
    second: str = ""
    bytes_from: int = 0
    bytes_to: int = 0
    operators: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PlacedScratch:
    """A scratch buffer where TFLM's first fit puts it, in bytes."""

    operator: str
    size: int
    offset: int


@dataclass(frozen=True)
class PlanVerdict:
    """The verdict on the plan in a model."""

    has_plan: bool
    """Whether the model carries a plan."""
    tensors: int = 0
    """Tensors that need memory."""
    left: int = 0
    """Tensors among them that the plan leaves to TFLM's planner."""
    head: int = 0
    """Bytes of the head, including all buffers that TFLM places itself."""
    planned: int = 0
    """Bytes of the head that the planned tensors alone reach."""
    scratch: tuple[PlacedScratch, ...] = ()
    """The scratch buffers, where TFLM's first fit puts them."""
    reads_since: date = FIRST_KNOWN
    """The date from which on TFLM understands the plan."""
    faults: tuple[PlanFault, ...] = ()
    """What is wrong with the plan."""
    terms: TermsProof | None = None
    """The proof that the model with its plan computes the same as without it. None if it could not
    be run."""
    notes: tuple[str, ...] = field(default=())
    """What could not be checked."""

    @property
    def sound(self) -> bool:
        """Whether no fault was found, as far as the plan could be checked."""
        return not self.faults and (self.terms is None or self.terms.status != "different")


def verify_plan(model: Model, kernels: TargetKernels) -> PlanVerdict:
    """Check the plan that a model carries, for a target."""
    from tflm_planner.verification.terms import prove_by_terms  # it imports numpy

    if not plan_entries(model):
        return _without_plan(model, kernels)
    timeline = timeline_of(model, kernels.scratch_of, entries=entry_graphs(model))
    offsets, faults = carried_plan(model), tuple(plan_faults(model, kernels, timeline))
    since = reads_since(model)
    if offsets is None:
        return PlanVerdict(True, len(timeline.planned), reads_since=since, faults=faults)
    placement = placement_of(timeline, offsets)
    ends = [offsets[t] + timeline.sizes[t] for t in timeline.planned if t in offsets]
    notes = (_DIALECT,) if model.has_views else ()
    can_run = not model.has_views and {f.kind for f in faults} <= _RUNS_PROOF
    return PlanVerdict(
        has_plan=True,
        tensors=len(timeline.planned),
        left=len(timeline.planned) - len(ends),
        head=placement.head,
        planned=max(ends, default=0),
        scratch=_scratch(placement),
        reads_since=since,
        faults=faults,
        terms=prove_by_terms(_strip_plan(model), model, kernels) if can_run else None,
        notes=notes,
    )


_DIALECT = (
    "the model is in the TFLM dialect: views share memory with what they are views of, so that "
    "only what one operator reads and writes was checked for collisions; "
    "`tflm-plan verify ORIGINAL MODEL` compares what it computes"
)


def _without_plan(model: Model, kernels: TargetKernels) -> PlanVerdict:
    timeline = timeline_of(model, kernels.scratch_of)
    own, tensors = placement_of(timeline), len(timeline.planned)
    return PlanVerdict(False, tensors, tensors, own.head, scratch=_scratch(own))


def _strip_plan(model: Model) -> Model:
    bare = clone(model)
    remove_metadata(bare, PLAN_METADATA)
    return bare


def _scratch(placement: Placement) -> tuple[PlacedScratch, ...]:
    return tuple(
        PlacedScratch(s.op.label, s.size, at)
        for s, at in zip(placement.timeline.scratch, placement.scratch_offsets, strict=True)
    )


def reads_since(model: Model) -> date:
    """The date from which on TFLM reads a plan for this model correctly."""
    several = len(model.graphs) > 1
    return max(FIRST_KNOWN, since_behaviour("plans_of_subgraphs")) if several else FIRST_KNOWN


def plan_faults(
    model: Model, kernels: TargetKernels, timeline: Timeline | None = None
) -> Iterator[PlanFault]:
    """Yield the faults of the plan that a model carries; none if it carries no plan. timeline: the
    model's timeline with its entry graphs, if the caller has it. In the TFLM dialect, where a view
    lies inside the tensor that it is a view of, collisions are looked for only between what one
    operator reads and what it writes."""
    entries, tensors = plan_entries(model), sum(1 for _ in model.tensors())
    for entry in entries:
        if not entry.fits(tensors):
            yield _count_fault(entry.count, len(entry.offsets), tensors)
            return
    offsets = carried_plan(model)
    if offsets is None:
        return
    yield from _version_faults(model, kernels.target)
    if timeline is None:
        timeline = timeline_of(model, kernels.scratch_of, entries=entry_graphs(model))
    yield from (PlanFault("version", lost) for lost in variables_without_memory(model, offsets))
    at = {t: offsets[t] for t in timeline.planned if t in offsets}
    variables = placed_variables(offsets)
    yield from _offset_faults(timeline, at | {t: offsets[t] for t in variables})
    if variables:
        yield from _overwritten_variables(placement_of(timeline, offsets), offsets)
    if model.has_views:
        yield from _operator_collisions(timeline, at, kernels)
        return
    for wrong in placement_of(timeline, offsets).violations(kernels.input_overlaps_of):
        if wrong.second is not None:
            yield _collision(timeline, wrong)


def _count_fault(count: int | None, there: int, tensors: int) -> PlanFault:
    if count is None:
        what = "is too short to have a header of three words"
    elif count != tensors:
        what = f"has {count:,} offsets, and the model {tensors:,} tensors"
    else:
        what = f"says that it has {count:,} offsets, and only {there:,} are there"
    return PlanFault("count", f"it {what}: TFLM takes none such")


def _version_faults(model: Model, target: Target) -> Iterator[PlanFault]:
    since = reads_since(model)
    if day_of(target) < since:
        yield PlanFault(
            "version",
            f"the model has {len(model.graphs)} sub-graphs, and TFLM of {day_of(target)} confuses "
            f"their offsets; TFLM from {since} on does not",
        )


def _offset_faults(timeline: Timeline, at: Mapping[Tensor, int]) -> Iterator[PlanFault]:
    """Yield the faults of offsets that are wrong by themselves, regardless of other buffers."""
    beside = sum(timeline.sizes.values()) + sum(s.size for s in timeline.scratch)
    room = max(_FAR_FACTOR * beside, _LEAST_FAR_BYTES)
    for tensor, offset in at.items():
        end = offset + timeline.sizes.get(tensor, align_up(tensor.nbytes))
        if offset < 0:
            kind, why = "negative", "below the arena"
        elif offset >= room:
            kind = "far"
            why = f"far beyond the {beside:,} bytes that all buffers side by side would take"
        elif offset % ALIGNMENT:
            kind, why = "alignment", f"which is no multiple of {ALIGNMENT}, as kernels may expect"
        else:
            continue
        said = f"{tensor.name!r} lies at offset {offset:,}, {why}"
        yield PlanFault(kind, said, tensor.name, bytes_from=offset, bytes_to=end)


def _overwritten_variables(
    placement: Placement, offsets: Mapping[Tensor, int]
) -> Iterator[PlanFault]:
    """Yield a fault for each buffer that lies on a variable, which keeps its bytes at all times."""
    timeline = placement.timeline
    names = [t.name for t in timeline.planned]
    names += [f"scratch of {s.op.label}" for s in timeline.scratch]
    names += [t.name for t in placed_variables(offsets)]
    spans = [
        (name, at, at + request.size)
        for name, at, request in zip(names, placement.offsets, placement.requests, strict=True)
    ]
    first = len(timeline.planned) + len(timeline.scratch)
    for number, (variable, begin, end) in enumerate(spans[first:], start=first):
        for name, other_begin, other_end in spans[:number]:
            low, high = max(begin, other_begin), min(end, other_end)
            if low < high:
                said = (
                    f"variable {variable!r} and {name!r} share bytes {low:,} to {high:,}; a "
                    "variable keeps its bytes from one Invoke to the next"
                )
                yield PlanFault("collision", said, variable, name, low, high)


def _collision(timeline: Timeline, wrong: Violation) -> PlanFault:
    second = "" if wrong.second is None else wrong.second.name
    running = _running(timeline)
    starts = [timeline.scopes[op][0][0] for op in running]
    first = max(bisect.bisect_right(starts, wrong.time_from) - 1, 0)
    last = max(bisect.bisect_left(starts, wrong.time_to) - 1, first)
    when = f"operator {first}" if first == last else f"operators {first} to {last}"
    kinds = f" ({running[first].kind})" if running and first == last else ""
    return PlanFault(
        kind="collision",
        said=f"{wrong.first.name!r} and {second!r} share bytes {wrong.bytes_from:,} to "
        f"{wrong.bytes_to:,} during {when}{kinds}",
        first=wrong.first.name,
        second=second,
        bytes_from=wrong.bytes_from,
        bytes_to=wrong.bytes_to,
        operators=(first, last),
    )


def _operator_collisions(
    timeline: Timeline, at: Mapping[Tensor, int], kernels: TargetKernels
) -> Iterator[PlanFault]:
    """Yield a fault for each operand and result of an operator that share bytes at a distance at
    which the target's kernel may overwrite what it has yet to read. Operators that run graphs are
    left out: what these read and write is their own operators'."""
    for position, op in enumerate(_running(timeline)):
        if op.graphs:
            continue
        permitted = _permitted_distances(op, kernels)
        for operand, result in product(dict.fromkeys(op.operands()), op.outputs):
            if operand not in at or result not in at:
                continue
            below = at[operand] - at[result]
            low = max(at[operand], at[result])
            high = min(at[t] + planned_bytes(t) for t in (operand, result))
            allowed = permitted.get((operand, result), ())
            if low < high and not any(least <= below <= most for least, most in allowed):
                yield PlanFault(
                    kind="collision",
                    said=f"{operand.name!r} and {result.name!r} share bytes {low:,} to {high:,} "
                    f"during operator {position} ({op.kind})",
                    first=operand.name,
                    second=result.name,
                    bytes_from=low,
                    bytes_to=high,
                    operators=(position, position),
                )


def _permitted_distances(
    op: Op, kernels: TargetKernels
) -> dict[tuple[Tensor, Tensor], list[tuple[int, int]]]:
    """(operand, result) -> the least and the largest number of bytes by which the result may start
    below the operand."""
    permitted: dict[tuple[Tensor, Tensor], list[tuple[int, int]]] = defaultdict(list)
    for overlap in kernels.input_overlaps_of(op):
        permitted[overlap.operand, overlap.result].append((overlap.low, overlap.high))
    for shared in sharings(op):
        permitted[shared.operand, shared.result].append((-shared.distance, -shared.distance))
    return permitted


def _running(timeline: Timeline) -> Sequence[Op]:
    """The operators in the order of execution, which is how memory maps number them."""
    run = (op for op in timeline.ops if op in timeline.scopes)
    return sorted(run, key=lambda op: timeline.scopes[op][0][0])
