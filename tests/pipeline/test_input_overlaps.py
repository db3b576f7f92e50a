"""Chains of convolutions and pools whose results trail their operands: same bits on the real
runtime, and no distance below the contract passes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.conftest import needs_tflm
from tests.models.generator import random_model
from tests.models.registry import SCALE, add, conv, start
from tflm_planner.memory.problem import Plan, validate
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.liveness import legal_input_overlaps, planning_problem, timeline_of
from tflm_planner.tflm.sharing import taken_input_overlaps
from tflm_planner.transforms.attach_plan import carried_plan

KINDS = {"conv_2d": 4, "depthwise_conv_2d": 4, "average_pool_2d": 1, "max_pool_2d": 1, "pad": 1}
TARGETS = ["x86-64/wheel", "cortex-m4/cmsis-nn", "cortex-m55/cmsis-nn"]

seeds = st.integers(0, 2**31)
slow = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def chain(seed: int) -> bytes:
    return random_model(seed, steps=6, kinds=KINDS)


def planned(data: bytes, target: str, verify: api.VerifyOptions | None) -> api.PlanResult:
    on = api.kernels_of(api.load_target(target))
    memory = api.MemoryOptions(kernels=on, time_limit=3.0)
    return api.plan(data, options=api.PlanOptions(memory, verify=verify))


@needs_tflm
@slow
@given(seeds)
@pytest.mark.slow
def test_overlapped_plans_compute_the_same_bits(seed):
    """On this machine's TFLM, where every such plan is legal too; `plan` raises if not."""
    result = planned(chain(seed), "x86-64/wheel", api.VerifyOptions(inputs=4))
    report = result.report
    assert report.verified and report.allocation.replayed == len(report.allocation.input_overlaps)
    assert report.after.host.measured_head == report.after.host.predicted_head


@slow
@given(seeds, st.sampled_from(TARGETS))
def test_a_forged_distance_is_caught(seed, target):
    """One step closer than the contract allows, the validator speaks up. Chains without a result
    that may trail its operand are passed over."""
    on = api.kernels_of(api.load_target(target))
    model = read_model(planned(chain(seed), target, None).data)
    line = timeline_of(model, on.scratch_of)
    problem = planning_problem(line, on.input_overlaps_of)
    index = {t: i for i, t in enumerate(line.planned)}
    base = sum(b.size for b in problem.buffers)
    input_overlaps = [*legal_input_overlaps(line, on.input_overlaps_of)]
    assume(input_overlaps)
    for input_overlap in input_overlaps:
        # Both alone in the arena: only their distance can be wrong.
        offsets = [4 * base + 16 * i * base for i in range(len(problem.buffers))]
        operand, result = index[input_overlap.operand], index[input_overlap.result]
        offsets[operand] = offsets[result] + input_overlap.low
        assert not validate(problem, Plan(tuple(offsets)))
        offsets[operand] -= 16
        if input_overlap.low == 0 and problem.buffers[operand].size <= 16:
            continue  # the result begins where the operand ends
        (found,) = validate(problem, Plan(tuple(offsets)))
        assert {found.first.name, found.second.name} == {
            input_overlap.operand.name,
            input_overlap.result.name,
        }


@needs_tflm
def test_gathered_rows_move_to_where_there_is_room():
    """4 of 16 rows, made 14: as a view they would keep their place in the middle of the image, and
    the result would lie above them. At the image's end they are the end of the result, too."""
    net, graph, x = start((1, 16, 16, 8))
    rows = graph.constant("rows", range(4, 8))
    part = graph.tensor("part", (1, 4, 16, 8), scale=SCALE, zero=-5)
    graph.op("GATHER", [add(graph, x, x, (1, 16, 16, 8)), rows], [part], "GatherOptions", axis=1)
    larger = graph.tensor("larger", (1, 14, 16, 8), scale=SCALE, zero=-5)
    size = graph.constant("size", [14, 16])
    kind = "RESIZE_NEAREST_NEIGHBOR"
    graph.op(kind, [part, size], [larger], "ResizeNearestNeighborOptions")
    graph.outputs(larger)
    result = planned(net.finish(), "cortex-m4/cmsis-nn", api.VerifyOptions(inputs=4))
    assert result.report.verified and result.report.after.arena.head == 16 * 16 * 8


@needs_tflm
def test_a_run_of_layers_slides_through_one_buffer():
    """Six 3x3 convolutions of 16x16x8: one image and a margin instead of two images.

    step   1    2    3     every result starts (W + 2) * C = 144 bytes below its operand,
         [  x0  ]          and where that would lead below 0, the run begins again above
        [  x1  ]
       [  x2  ]
    """
    shape = (1, 16, 16, 8)
    net, graph, x = start(shape)
    for i in range(6):
        x = conv(graph, x, shape, f"layer{i}")
    graph.outputs(x)
    result = planned(net.finish(), "x86-64/wheel", api.VerifyOptions())
    assert result.report.verified
    assert result.report.before.head == 2 * 2048
    assert result.report.after.head == 2048 + 6 * 144 < 1.5 * 2048
    model = read_model(result.data)
    line = timeline_of(model, api.kernels_of(api.load_target("x86-64/wheel")).scratch_of)
    on = api.kernels_of(api.load_target("x86-64/wheel"))
    assert len(list(taken_input_overlaps(line, carried_plan(model), on))) == 6


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.slow
def test_overlap_never_costs_memory(target):
    for seed in range(8):
        data = chain(seed)
        on = api.kernels_of(api.load_target(target))
        heads = [
            api.plan(
                data,
                options=api.PlanOptions(
                    api.MemoryOptions(kernels=on, overlap=overlap, time_limit=3.0), verify=None
                ),
            ).report.after.head
            for overlap in (True, False)
        ]
        assert heads[0] <= heads[1], seed
