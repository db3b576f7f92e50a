"""Random models, planned: replayed byte by byte, and run on both runtimes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import needs_tflm
from tests.fuzz.random_models import check, model_of, search_options, shuffled
from tests.model_replay import plan_in, replay
from tests.models.build import unpack
from tests.models.handmade import MODELS
from tests.models.strategies import PATIENT, models
from tests.placed_replay import placement
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError
from tflm_planner.transforms.attach_plan import carried_plan


@needs_tflm
@settings(PATIENT, max_examples=15)
@given(models(), st.integers(0, 2**32 - 1), st.booleans())
@pytest.mark.slow
def test_a_planned_model_is_right(data: bytes, seed: int, in_another_order: bool) -> None:
    """Replay clean, outputs equal on LiteRT and TFLM, heads as predicted and no larger,
    the same bytes again; in file order and in random orders."""
    assert check(shuffled(data, seed) if in_another_order else data) == []


@needs_tflm
@pytest.mark.parametrize("seed", [0, 1])
def test_a_planned_model_is_proved_by_the_tool_itself(seed: int) -> None:
    """The whole way: the runtimes in child processes."""
    options = api.PlanOptions(search_options(), verify=api.VerifyOptions(inputs=4))
    report = api.plan(model_of(seed), None, options).report
    assert report.verified
    assert [c.status for c in report.checks] == ["equal", "equal"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.mostly_slow(fast=6)
def test_hand_made_models_replay(name: str) -> None:
    """As stock TFLM places them, and as planned: control flow, state, odd layouts."""
    data = MODELS[name].make()
    try:
        result = api.plan(data, None, api.PlanOptions(search_options(), verify=None))
    except ModelError:
        assert name in {"strings", "bad_order"}
        return
    assert replay(data, *placement(data)) == []
    offsets, scratch = placement(result.data)
    if carried_plan(read_model(result.data)) is None:  # it would only have cost memory
        assert name == "bad_order"
        return
    assert replay(result.data, scratch=scratch) == []
    assert replay(result.data, offsets, scratch) == []


@pytest.mark.parametrize("name", ["while_loop", "if_else", "chain", "views_on_the_outer_axis"])
def test_the_replay_sees_what_is_wrong(name: str) -> None:
    """Everything at offset 0 cannot run."""
    result = api.plan(MODELS[name].make(), None, api.PlanOptions(search_options(), verify=None))
    offsets = dict.fromkeys(plan_in(unpack(result.data)), 0)
    assert replay(result.data, offsets)


def test_shuffling_changes_the_order_only() -> None:
    data = model_of(30)
    first, second = (unpack(d).subgraphs[0] for d in (data, shuffled(data, 3)))
    orders = [[tuple(int(t) for t in o.outputs) for o in g.operators] for g in (first, second)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert np.array_equal(first.outputs, second.outputs)
