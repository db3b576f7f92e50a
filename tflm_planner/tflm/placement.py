"""The offset of every buffer of a model after TFLM's planner has run, with or without an offline
plan.

    timeline --requests--> TFLM's planner --offsets--> head
                                 plan ----'

Only this module turns a plan of tensors into an offset for each buffer, scratch included. It must
not know where a plan comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflm_planner.memory.problem import Plan, Violation, validate
from tflm_planner.model.ir import Tensor
from tflm_planner.tflm import greedy
from tflm_planner.tflm.greedy import ONLINE, Request
from tflm_planner.tflm.liveness import (
    InputOverlapRule,
    Timeline,
    planning_problem,
)


@dataclass(frozen=True, slots=True)
class Placement:
    """The requests to TFLM's memory planner, and its answer.

    timeline: the life spans. requests: one for every planned tensor, then one for every scratch
    buffer. offsets: of each request, in bytes from the start of the head. head: bytes of the head.
    """

    timeline: Timeline
    requests: tuple[Request, ...]
    offsets: tuple[int, ...]
    head: int

    @property
    def plan(self) -> Plan:
        """The offsets as a plan for `planning_problem(timeline)`."""
        return Plan(self.offsets)

    @property
    def scratch_offsets(self) -> tuple[int, ...]:
        """The offsets of scratch only, in the timeline's order."""
        return self.offsets[len(self.timeline.planned) :]

    def violations(self, input_overlaps_of: InputOverlapRule) -> list[Violation]:
        """Pairs that share memory although the target's contracts do not permit it."""
        return validate(planning_problem(self.timeline, input_overlaps_of), self.plan)


def placement_requests(timeline: Timeline, offsets: Mapping[Tensor, int]) -> list[Request]:
    """The requests to TFLM's planner: every planned tensor, at its offset if the plan (tensor ->
    bytes) has one, then every scratch buffer."""
    tensors = [
        Request(
            timeline.sizes[t],
            (span := timeline.spans[t]).first,
            span.last,
            offsets.get(t, ONLINE),
        )
        for t in timeline.planned
    ]
    return tensors + [Request(s.size, s.span.first, s.span.last) for s in timeline.scratch]


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
