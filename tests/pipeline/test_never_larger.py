"""No file is written whose arena is larger than that of the model as it came."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import CNN, needs_tflm
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning import planned_file
from tflm_planner.transforms.attach_plan import carried_plan

DATA = CNN.read_bytes()


def _inflated(monkeypatch: pytest.MonkeyPatch, by: int) -> None:
    """Plans need `by` bytes more than TFLM's own placement, as where its planner's memory
    decides."""
    stock = api.arena(DATA).arena
    real = planned_file.inspect_model

    def inspect(model, kernels, **more):
        found = real(model, kernels, **more)
        if carried_plan(model) is None:
            return found
        return replace(found, arena=replace(found.arena, arena=stock + by))

    monkeypatch.setattr(planned_file, "inspect_model", inspect)


@needs_tflm
@pytest.mark.parametrize("strip", ["nothing", "unread"])
def test_a_plan_that_costs_memory_is_left_out(strip, monkeypatch: pytest.MonkeyPatch) -> None:
    _inflated(monkeypatch, 4)
    result = api.plan(DATA, None, api.PlanOptions(api.MemoryOptions(strip=strip)))
    report = result.report
    assert report.verified and report.after.arena.arena == report.before.arena.arena
    assert carried_plan(read_model(result.data)) is None
    assert any("would be 4 B larger" in note for note in report.notes)
    assert len(result.data) <= len(DATA)


def test_one_that_costs_nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    _inflated(monkeypatch, 0)
    assert carried_plan(read_model(api.plan(DATA, None, api.PlanOptions(verify=None)).data))
