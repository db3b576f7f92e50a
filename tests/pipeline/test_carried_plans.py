"""A plan that a model brings along and that is wrong: said to be so, dropped, and never compared
with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.command import Run
from tests.conftest import CNN, needs_tflm
from tflm_planner.model.edit import add_metadata, remove_metadata
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.attach_plan import PLAN_METADATA, carried_plan

PLANNED = api.plan(CNN, None, api.PlanOptions(verify=None)).data


def forged(offset: int) -> bytes:
    """A plan in which every tensor lies at one place."""
    model = read_model(PLANNED)
    tensors = list(model.tensors())
    own = carried_plan(model)
    assert own is not None
    words = [1, len(model.graphs), len(tensors), *(offset if t in own else -1 for t in tensors)]
    remove_metadata(model, PLAN_METADATA)
    add_metadata(model, PLAN_METADATA, np.array(words, "<i4").view(np.uint8))
    return write_model(model)


@pytest.mark.parametrize("offset", [0, 8, -16, 1 << 30])
def test_no_size_is_the_smallest_that_works(offset: int, tmp_path: Path, capsys) -> None:
    path = tmp_path / "forged.tflite"
    path.write_bytes(forged(offset))
    for verb in ("arena", "inspect"):
        said = Run([verb, path], capsys).out
        assert "CANNOT RUN" in said and "the plan that the model carries" in said
        assert "smallest that works" not in said
    assert 1 << 20 > api.arena(forged(offset)).arena > api.arena(PLANNED).arena
    assert "carries" in Run(["export", path, tmp_path / "cpp"], capsys).refused(5)


@needs_tflm
@pytest.mark.parametrize("offset", [0, -16])
def test_a_wrong_plan_is_dropped_and_another_made(offset: int) -> None:
    report = api.plan(forged(offset)).report
    assert report.verified and not report.cannot_run
    assert any(n.startswith("dropped: the plan that the model carries") for n in report.notes)
    assert report.after.arena.arena == api.arena(PLANNED).arena
    assert report.after.arena.arena < report.before.arena.arena


def test_a_right_plan_stays_what_is_shown() -> None:
    assert api.arena(PLANNED).arena < api.arena(CNN).arena
    assert not api.arena(PLANNED).cannot_run
