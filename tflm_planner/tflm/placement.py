"""The offset of every buffer of a model after TFLM's planner has run, with or without an offline
plan.

    timeline --requests--> TFLM's planner --offsets--> head
                                 plan ----'

Only this module turns a plan of tensors into an offset for each buffer, scratch included. It must
not know where a plan comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tflm_planner.memory.problem import Plan, Violation, validate
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.support.units import align_up
from tflm_planner.tflm import greedy
from tflm_planner.tflm.greedy import ONLINE, Request
from tflm_planner.tflm.liveness import (
    UNUSED,
    InputOverlapRule,
    Timeline,
    planning_problem,
)


@dataclass(frozen=True, slots=True)
class Placement:
    """The requests to TFLM's memory planner, and its answer.

    timeline: the life spans. requests: one for every planned tensor, one for every scratch buffer,
    then one for every variable that the plan places. offsets: of each request, in bytes from the
    start of the head. head: bytes of the head.
    """

    timeline: Timeline
    requests: tuple[Request, ...]
    offsets: tuple[int, ...]
    head: int

    @property
    def plan(self) -> Plan:
        """The offsets as a plan for `planning_problem(timeline)`."""
        return Plan(self.offsets[: len(self.timeline.planned) + len(self.timeline.scratch)])

    @property
    def scratch_offsets(self) -> tuple[int, ...]:
        """The offsets of scratch only, in the timeline's order."""
        first = len(self.timeline.planned)
        return self.offsets[first : first + len(self.timeline.scratch)]

    def violations(self, input_overlaps_of: InputOverlapRule) -> list[Violation]:
        """Pairs that share memory although the target's contracts do not permit it."""
        return validate(planning_problem(self.timeline, input_overlaps_of), self.plan)


def placement_requests(timeline: Timeline, offsets: Mapping[Tensor, int]) -> list[Request]:
    """The requests to TFLM's planner: every planned tensor, at its offset if the plan (tensor ->
    bytes) has one, every scratch buffer, then every variable that the plan places."""
    tensors = [
        Request(
            timeline.sizes[t],
            (span := timeline.spans[t]).first,
            span.last,
            offsets.get(t, ONLINE),
        )
        for t in timeline.planned
    ]
    scratch = [Request(s.size, s.span.first, s.span.last) for s in timeline.scratch]
    placed = placed_variables(offsets)
    return tensors + scratch + [_variable_request(t, timeline, offsets[t]) for t in placed]


def placed_variables(offsets: Mapping[Tensor, int]) -> list[Tensor]:
    """Variables that a plan (tensor -> bytes) places in the head, where otherwise they lie in the
    tail. They must share their bytes with nothing: they keep them from one Invoke to the next."""
    return [t for t in offsets if t.is_variable]


def _variable_request(tensor: Tensor, timeline: Timeline, offset: int) -> Request:
    """For TFLM's planner a variable is never created, and lives until it is last read. Source:
    micro_allocation_info.cc, MarkAllocationLifetimes."""
    ends = (last for op in tensor.consumers for _, last in timeline.scopes.get(op, ()))
    return Request(align_up(tensor.nbytes), UNUSED, max(ends, default=UNUSED), offset)


def variables_without_memory(model: Model, offsets: Mapping[Tensor, int]) -> Iterator[str]:
    """The variables to which TFLM gives no memory with a plan (tensor -> bytes), in words. It looks
    a variable up by its number in its own sub-graph, in a list that begins with the tensors of the
    first one: if that entry is planned, it takes the variable for planned, too. Source:
    micro_allocator.cc, AllocateVariables."""
    listed = list(model.tensors())
    for graph in model.graphs:
        for taken_for, tensor in zip(listed, graph.tensors, strict=False):
            if tensor.is_variable and taken_for in offsets and tensor not in offsets:
                yield (
                    f"variable {tensor.name!r} gets no memory: TFLM takes it for "
                    f"{taken_for.name!r} of the first sub-graph, which the plan places"
                )


def placement_of(timeline: Timeline, offsets: Mapping[Tensor, int] | None = None) -> Placement:
    """The offsets that TFLM assigns: tensors at their offsets in the plan (tensor -> bytes), the
    rest and all scratch by its planner."""
    requests = tuple(placement_requests(timeline, offsets or {}))
    placed = tuple(greedy.place(requests))
    return Placement(timeline, requests, placed, greedy.head(requests, placed))


def tensor_offsets(timeline: Timeline, plan: Plan) -> dict[Tensor, int]:
    """Tensor -> bytes, from a plan for `planning_problem(timeline)`: the part that an offline plan
    can express. The offsets of scratch, which follow those of tensors, are left out."""
    return dict(zip(timeline.planned, plan.offsets, strict=False))
