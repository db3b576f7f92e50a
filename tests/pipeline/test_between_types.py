"""Models whose ends are of other types: the memory of an input or an output that no other type
needs any more is used again, in the plan and in what tiles are thought to need."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.fuzz.random_models import check, model_of, types_in_place
from tests.model_replay import replay
from tests.models.small import type_chain
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.report.document import Report
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.options import TilingOptions

STUDIED = ["x86-64/reference", "cortex-m4/cmsis-nn", "cortex-m55/cmsis-nn", "cortex-m/any"]
SHAPE = (1, 16, 16, 4)
BYTES = 1024


def planned(data: bytes, target: str, *, overlap: bool = True, prove: bool = False) -> Report:
    on = kernels_of(api.load_target(target))
    options = api.MemoryOptions(time_limit=5.0, kernels=on, overlap=overlap)
    verify = api.VerifyOptions(inputs=4) if prove else None
    return api.plan(data, None, api.PlanOptions(options, verify=verify)).report


@needs_tflm
@pytest.mark.parametrize(
    ("types", "widest"),
    [
        (("uint8", "int8", "uint8"), 1),
        (("float32", "int8"), 4),
        (("int8", "float32"), 4),
        (("float32", "int8", "uint8", "float32"), 4),
        (("int16", "int8", "float32"), 4),
    ],
)
def test_all_tensors_of_a_chain_fit_into_the_widest(types: tuple[str, ...], widest: int) -> None:
    data = type_chain(*types)
    for target in STUDIED:
        report = planned(data, target, prove=target == STUDIED[-1])
        assert report.verified == (target == STUDIED[-1])
        assert report.after.head == widest * BYTES < report.before.head
        assert 0 < len(report.allocation.input_overlaps) == report.allocation.replayed
        assert not planned(data, target, overlap=False).allocation.input_overlaps
    unknown = planned(data, "cortex-m4/unknown")
    assert unknown.after.head > widest * BYTES and not unknown.allocation.input_overlaps


def test_types_over_which_compilers_keep_no_order_stay_apart() -> None:
    report = planned(type_chain("float32", "int16", "float32"), "cortex-m4/cmsis-nn")
    assert report.after.head == 6 * BYTES and not report.allocation.input_overlaps


@needs_tflm
def test_an_operand_that_is_needed_stays() -> None:
    data = type_chain("int8", "float32", extra_output=0)
    report = planned(data, "cortex-m4/cmsis-nn", prove=True)
    assert report.verified and report.after.head == 5 * BYTES


def test_estimates_know_what_a_result_takes_over() -> None:
    model = read_model(type_chain("float32", "int8", "float32"))
    for target, gains in (("cortex-m4/cmsis-nn", [BYTES, BYTES]), ("cortex-m4/unknown", [0, 0])):
        on = kernels_of(api.load_target(target))
        line = LinearSchedule(model, range(2), TilingOptions(on, on.input_overlaps_of))
        assert [max(saved.values(), default=0) for saved in line.reused_bytes] == gains
        assert line.live_bytes == [5 * BYTES - gain for gain in gains]


def test_the_replay_sees_an_operand_in_the_wrong_place() -> None:
    data = type_chain("int8", "float32")
    right = {(0, 0): 3 * BYTES, (0, 1): 0}
    assert replay(data, right) == []
    assert replay(data, {**right, (0, 0): 3 * BYTES - 16})
    assert replay(data, dict.fromkeys(right, 0))
    assert replay(type_chain("int16", "float32"), {(0, 0): 2 * BYTES, (0, 1): 0})


@needs_tflm
@pytest.mark.slow
def test_random_models_of_many_types() -> None:
    """Planned, replayed byte by byte, run on both runtimes."""
    in_place = 0
    for seed in range(5):
        data = model_of(seed, types=True)
        assert check(data) == []
        in_place += types_in_place(data)[1]
    assert in_place > 2
