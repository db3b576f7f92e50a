"""A placement is what TFLM makes of a plan: tensors where the plan says, scratch in the gaps."""

from __future__ import annotations

from tests.models.handmade import MODELS
from tflm_planner.memory.problem import Plan, validate
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.tflm.liveness import Timeline, no_input_overlaps, planning_problem, timeline_of
from tflm_planner.tflm.placement import placement_of


def _line(scratch: int) -> Timeline:
    """Of the handmade chain, each operator with so many bytes of scratch."""
    return timeline_of(read_model(MODELS["chain"].make()), lambda _: [scratch])


def test_without_a_plan_everything_finds_a_place_of_its_own() -> None:
    placement = placement_of(_line(scratch=48))
    assert len(placement.offsets) == len(placement.requests)
    assert len(placement.scratch_offsets) == len(placement.timeline.scratch) > 0
    assert placement.head == max(
        o + r.size for o, r in zip(placement.offsets, placement.requests, strict=True)
    )
    assert placement.violations(no_input_overlaps) == []


def test_a_plan_is_kept_and_scratch_is_put_beside_it() -> None:
    line = _line(scratch=48)
    apart = {t: 4096 * (i + 1) for i, t in enumerate(line.planned)}
    placement = placement_of(line, apart)
    assert list(placement.offsets[: len(line.planned)]) == list(apart.values())
    assert all(offset < 4096 for offset in placement.scratch_offsets)
    assert placement.violations(no_input_overlaps) == []


def test_a_plan_that_shares_what_must_not_be_shared_is_told_by_what_it_violates() -> None:
    line = _line(scratch=0)
    together = placement_of(line, dict.fromkeys(line.planned, 0))
    wrong = together.violations(no_input_overlaps)
    assert wrong
    assert wrong == validate(planning_problem(line), Plan((0,) * len(line.planned)))


def test_the_plan_that_the_search_reports_has_the_head_that_is_placed() -> None:
    found = plan_memory(read_model(MODELS["branches_of_different_depth"].make()), MemoryOptions())
    placement = placement_of(found.timeline, found.offsets)
    assert placement.head == found.head
    assert placement.plan == found.solution.plan
