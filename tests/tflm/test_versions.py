"""TFLM of another day: which operators it has, and which plans it understands."""

from __future__ import annotations

from datetime import date

import pytest

from tests.models.handmade import MODELS
from tests.models.small import One, swapping
from tflm_planner.cost import latency_of
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning.versions import refuse_plan, version_notes
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.kernels.operator_allocations import OPERATORS
from tflm_planner.tflm.sharing import RemainingCopies
from tflm_planner.tflm.targets import Target, load_target
from tflm_planner.tflm.versions import can, day_of, has_operator, since, with_tflm
from tflm_planner.tiling.estimate.loops import allows_loops
from tflm_planner.tiling.options import TilingOptions


def of(day: str, target: str = "cortex-m4/cmsis-nn") -> Target:
    return with_tflm(load_target(target), day)


def test_days() -> None:
    assert day_of(of("2025-06")) == date(2025, 6, 1)
    assert day_of(of("2025-06-30")) == date(2025, 6, 30)
    assert day_of(of("current")) == day_of(load_target("cortex-m4/cmsis-nn")) == date(2026, 8, 20)
    assert day_of(load_target("arduino-2023")) == date(2023, 2, 27)
    assert day_of(of("2025-06", "arduino-2023")) == date(2025, 6, 1)


@pytest.mark.parametrize("text", ["2019-01", "2025", "June", "2025-13", "", "2025-06-31"])
def test_days_that_are_none(text: str) -> None:
    if text:
        with pytest.raises(UsageError, match="TFLM"):
            of(text)
    else:
        assert day_of(of(text)) == date(2026, 8, 20), "nothing named is what the target says"


def test_every_operator_of_the_table_is_one_that_tflm_registers_today() -> None:
    new = {k for k in OPERATORS if since(k) > date.min}
    assert {"DYNAMIC_UPDATE_SLICE", "BATCH_MATMUL", "TFLM_DECODE", "SignalRfft"} <= new
    assert all(has_operator(k, load_target("cortex-m4/cmsis-nn")) for k in OPERATORS)
    old = load_target("arduino-2023")
    assert {k for k in OPERATORS if not has_operator(k, old)} == new
    assert not has_operator("DYNAMIC_UPDATE_SLICE", of("2025-11"))
    assert has_operator("DYNAMIC_UPDATE_SLICE", of("2025-11-10"))


def permitted(target: Target) -> TilingOptions:
    on = api.kernels_of(target)
    return TilingOptions(on, on.input_overlaps_of, operators=api.AllowedOperators.ALL)


def test_the_search_uses_no_operator_that_the_version_lacks() -> None:
    used = frozenset({"CONV_2D", "RESHAPE"})
    assert allows_loops(permitted(of("current")), used)
    assert allows_loops(permitted(of("2025-12")), used)
    assert not allows_loops(permitted(of("2025-06")), used)
    old = permitted(of("2025-06"))
    assert not old.allows("DYNAMIC_UPDATE_SLICE", used) and old.allows("GATHER", used)
    assert old.allows("DYNAMIC_UPDATE_SLICE", used | {"DYNAMIC_UPDATE_SLICE"})


def test_the_tail_of_a_graph_is_uncertain_where_the_version_is_another() -> None:
    model = read_model(MODELS["while_loop"].make())
    assert version_notes(model, load_target("arduino-2023")) == []
    assert arena_of(model, load_target("arduino-2023")).uncertainties == ()
    (uncertainty,) = arena_of(model, of("2024-01")).uncertainties
    assert "measure" in uncertainty.words and not uncertainty.in_head


def test_a_model_that_needs_a_newer_operator_is_told() -> None:
    one, shape = One((1, 2, 6, 6)), (1, 2, 6, 6)
    product = one.tensor(shape)
    fields = {"adjX": False, "adjY": False, "asymmetricQuantizeInputs": False}
    one.graph.op("BATCH_MATMUL", [one.x, one.x], [product], "BatchMatMulOptions", **fields)
    model = read_model(one.finish((product, shape)))
    (note,) = version_notes(model, load_target("arduino-2023"))
    assert "BATCH_MATMUL" in note and "2023-09-06" in note
    assert version_notes(model, load_target("cortex-m4/cmsis-nn")) == []


def test_plans_of_several_graphs_need_march_2023() -> None:
    model = read_model(swapping(swapped=True))
    refuse_plan(model, of("2023-03-29"))
    with pytest.raises(ModelError, match=r"3 sub-graphs.*--tflm"):
        refuse_plan(model, load_target("arduino-2023"))
    refuse_plan(read_model(MODELS["chain"].make()), load_target("arduino-2023"))
    memory = api.MemoryOptions(kernels=api.kernels_of(load_target("arduino-2023")))
    with pytest.raises(ModelError, match="would corrupt memory"):
        api.plan(swapping(swapped=False), None, api.PlanOptions(memory, verify=None))


def test_copies_onto_themselves_cost_time_before_july_2026() -> None:
    model = read_model(swapping(swapped=False))
    (loop,) = (op for op in model.ops() if op.kind == "WHILE")
    offsets = dict.fromkeys(model.tensors(), 0)
    assert can(of("2026-08"), "skips_copies") and not can(of("2026-01"), "skips_copies")
    assert RemainingCopies(offsets, skips=True).turn_bytes(loop) == 0
    assert RemainingCopies(offsets, skips=False).turn_bytes(loop) == sum(
        t.nbytes for t in loop.outputs
    )


def test_copies_of_a_loop_cost_instructions_where_a_version_makes_them() -> None:
    """Wherever a plan is weighed, in the search and for the final ranks."""
    model = read_model(swapping(swapped=False))
    offsets = dict.fromkeys(model.tensors(), 0)
    older, newer = (latency_of(model, of(day), offsets) for day in ("2026-01", "2026-08"))
    assert older.instructions > newer.instructions
