"""Plans that lose a byte make other terms, whoever loses it: tensors, kernels, scratch, copies."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.models.random_loops import random_loops_model
from tests.models.small import One, small_network
from tests.transforms.row_loops import chain, planned
from tests.transforms.tiled import quick_differences
from tests.verification.terms.proofs import HOST, changed, forged, proof
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.liveness import timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.sharing import taken_input_overlaps
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.verification.terms import layout


def moved(data: bytes, seed: int) -> tuple[bytes, bool]:
    """The plan of a file with one tensor moved, and whether that is legal."""
    rng = random.Random(seed)
    model = read_model(data)
    offsets = carried_plan(model)
    assert offsets is not None
    tensor = rng.choice(sorted(offsets, key=lambda t: t.name))
    offsets[tensor] = max(offsets[tensor] + rng.choice((-64, -32, -16, 16, 16, 32, 48)), 0)
    line = timeline_of(model, HOST.scratch_of)
    placement = placement_of(line, offsets)
    legal = not placement.violations(HOST.input_overlaps_of)
    run(model, AttachPlan(offsets))
    return write_model(model), legal


@needs_tflm
def test_plans_with_one_offset_moved() -> None:
    """Legal ones are equal; and of those that TFLM shows to be wrong, all are different."""
    seen: Counter[str] = Counter()
    for seed in range(8):
        data = small_network(seed)
        made = planned(data, seconds=0.2).data
        for i in range(6):
            other, legal = moved(made, 10 * seed + i)
            status = proof(data, other, HOST).status
            shown = bool(quick_differences(data, other, ("TFLM",)))
            assert not (legal and status != "equal"), (seed, i)
            assert not (shown and status != "different"), (seed, i)
            seen[f"{status}, {'shown' if shown else 'not shown'}"] += 1
    assert seen["different, shown"] >= 12


def test_a_loops_plan_with_one_offset_moved() -> None:
    found = Counter[str]()
    for seed in range(3):
        data = random_loops_model(seed, choices=seed % 2 == 0)
        made = planned(data, seconds=0.2).data
        for i in range(4):
            other, legal = moved(made, 10 * seed + i)
            status = proof(data, other, HOST).status
            assert not (legal and status != "equal"), (seed, i)
            found[status] += 1
    assert found["different"] >= 3


@pytest.mark.parametrize("target", ["x86-64/wheel", "cortex-m4/cmsis-nn", "cortex-m55/cmsis-nn"])
def test_an_overlap_inside_a_kernel_is_as_close_as_it_may_be(target: str) -> None:
    """A result that trails its operand 16 bytes too closely: nothing else lies there."""
    on = api.kernels_of(api.load_target(target))
    found = 0
    for layers in (((3, 1, 3),), ((3, 1, 2), (1, 1, 2)), ((3, 2, 4),), ((1, 1, 3),), ((5, 1, 3),)):
        data = chain(*layers, size=24)
        options = api.MemoryOptions(kernels=on, time_limit=1.0)
        made = api.plan(data, None, api.PlanOptions(memory=options, verify=None)).data
        assert proof(data, made, on).status == "equal"
        model = read_model(made)
        offsets = plan_of_model(model)
        line = timeline_of(model, on.scratch_of)
        for shared in taken_input_overlaps(line, offsets, on):
            operand, result = (_index(model, t) for t in (shared.operand, shared.result))
            closer = forged(made, lambda m, at, o=operand, r=result: _closer(m, at, o, r))
            (limit,) = (o.low for o in on.input_overlaps_of(shared.op))
            if shared.below - 16 < limit:
                assert proof(data, closer, on).status == "different"
                found += 1
    assert found >= 2


def plan_of_model(model):
    offsets = carried_plan(model)
    assert offsets is not None
    return offsets


def _index(model, tensor) -> int:
    return next(i for i, t in enumerate(model.tensors()) if t is tensor)


def _closer(model, offsets, operand: int, result: int):
    """The result 16 bytes nearer to its operand: by that much higher, all above it as well."""
    tensors = list(model.tensors())
    floor, moving = offsets[tensors[operand]], tensors[result]
    at = offsets[moving]
    assert at <= floor
    return {**offsets, moving: at + 16}


def test_a_result_over_the_middle_of_an_operand_that_no_kernel_allows() -> None:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 64), scale=0.1)
    w = graph.constant("w", np.ones((64, 64)), "int8", scale=0.1)
    y = graph.tensor("y", (1, 64), scale=0.1)
    graph.op("FULLY_CONNECTED", [x, w], [y], "FullyConnectedOptions")
    graph.outputs(y)
    data = net.finish()
    made = planned(data).data
    apart = forged(made, lambda m, at: {m.main.inputs[0]: 0, m.main.outputs[0]: 64})
    over = forged(made, lambda m, at: {m.main.inputs[0]: 0, m.main.outputs[0]: 48})
    onto = forged(made, lambda m, at: {m.main.inputs[0]: 0, m.main.outputs[0]: 0})
    assert [proof(data, d, HOST).status for d in (apart, over, onto)] == [
        "equal", "different", "different",
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "status"), [("RELU", "equal"), ("L2_NORMALIZATION", "different")])
def test_only_some_kernels_work_in_place(kind: str, status: str) -> None:
    one = One((1, 32), "float32")
    y = one.tensor((1, 32))
    options = "L2NormOptions" if kind == "L2_NORMALIZATION" else None
    one.graph.op(kind, [one.x], [y], options)
    data = one.finish((y, (1, 32)))
    onto = forged(planned(data).data, lambda m, at: dict.fromkeys(at, 0))
    assert proof(data, onto, HOST).status == status


def test_scratch_over_an_operand_is_seen() -> None:
    """TFLM's planner finds room for scratch: elsewhere it would lie over what is needed."""
    on = api.kernels_of(api.load_target("cortex-m4/cmsis-nn"))
    data = chain((3, 1, 16), (3, 1, 8), size=16)
    options = api.PlanOptions(memory=api.MemoryOptions(kernels=on), verify=None)
    made = api.plan(data, None, options).data
    assert timeline_of(read_model(made), on.scratch_of).scratch
    status = []
    for shift in (0, -512):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "placement_of", _shifted_scratch(shift))
            status.append(proof(data, made, on).status)
    assert status == ["equal", "different"]


def _shifted_scratch(by: int):
    """TFLM's planner, if it put scratch elsewhere."""

    def place(timeline, offsets):
        found = placement_of(timeline, offsets)
        count = len(timeline.planned)
        scratch = (max(o + by, 0) for o in found.offsets[count:])
        return replace(found, offsets=(*found.offsets[:count], *scratch))

    return place


def test_what_nobody_wrote_is_never_equal_to_anything() -> None:
    original = chain((1, 1, 2), size=4)
    made = planned(original).data
    model = read_model(made)
    model.main.ops.clear()
    for tensor in model.main.tensors:
        tensor.producer, tensor.consumers = None, []
    assert proof(original, write_model(model), HOST).status == "different"


def test_two_proofs_of_one_file_are_the_same() -> None:
    data = small_network(3)
    made = planned(data).data
    assert proof(data, made, HOST) == proof(data, made, HOST)


def test_a_file_without_a_plan_has_no_arena() -> None:
    data = small_network(3)
    found = proof(data, data, HOST)
    assert (found.status, found.error_log2) == ("not run", None) and "plan" in found.detail


def test_a_wrong_operand_that_the_plan_lays_over_the_right_one_is_found() -> None:
    """TFLM computes the same; runtimes that take no notice of plans do not."""
    one = One((1, 4, 4, 2), "int8")
    y = one.tensor((1, 4, 4, 2))
    one.graph.op("RELU", [one.x], [y])
    z = one.tensor((1, 4, 4, 2))
    one.graph.op("RELU", [y], [z])
    data = one.finish((z, (1, 4, 4, 2)))

    def reads_the_input(model: Model) -> None:
        first, second = model.main.ops[:2]
        second.inputs[0] = first.inputs[0]

    made = forged(planned(data).data, lambda m, at: dict.fromkeys(at, 0))
    wrong = changed(made, reads_the_input)
    found = proof(data, wrong, HOST)
    assert found.status == "different" and found.detail.startswith("where no plan is")
    assert (
        not quick_differences(data, wrong, ("TFLM",)) and proof(data, made, HOST).status == "equal"
    )


def test_a_part_of_what_lies_in_a_result_may_go_elsewhere_into_it() -> None:
    """result = [ second half of x | x ], with x and both of its halves where x is."""
    one = One((4, 8), "int8")
    halves = [one.tensor((2, 8)) for _ in range(2)]
    axis = one.graph.constant("axis", np.int32(0))
    one.graph.op("SPLIT", [axis, one.x], halves, "SplitOptions", numSplits=2)
    y = one.tensor((6, 8))
    one.graph.op("CONCATENATION", [halves[1], one.x], [y], "ConcatenationOptions")
    data = one.finish((y, (6, 8)))

    def inside(model: Model, at: dict) -> dict:
        split = next(op for op in model.main.ops if op.kind == "SPLIT")
        joined = next(op for op in model.main.ops if op.kind == "CONCATENATION")
        whole, (first, second) = split.inputs[1], split.outputs
        return {**dict.fromkeys(at, 256), whole: 16, first: 16, second: 32, joined.outputs[0]: 0}

    made = forged(planned(data).data, inside)
    assert proof(data, made, HOST).status == "equal"
    assert not quick_differences(data, made, ("TFLM",))


def test_two_views_of_one_tensor_lie_in_one_place_in_a_result() -> None:
    """The last part of the result is the operand itself; the second one has the same bytes."""
    one = One((1, 4, 8), "int8")
    views = [one.tensor((4, 8)) for _ in range(2)]
    for view in views:
        one.graph.op("SQUEEZE", [one.x], [view], "SqueezeOptions", squeezeDims=[0])
    y = one.tensor((12, 8))
    one.graph.op("CONCATENATION", [views[0], views[1], views[0]], [y], "ConcatenationOptions")
    data = one.finish((y, (12, 8)))

    def together(model: Model, at: dict) -> dict:
        squeezed = [op.outputs[0] for op in model.main.ops if op.kind == "SQUEEZE"]
        (joined,) = (op.outputs[0] for op in model.main.ops if op.kind == "CONCATENATION")
        inside = dict.fromkeys((squeezed[0].producer.inputs[0], *squeezed), 64)
        return {**dict.fromkeys(at, 0), **inside, joined: 0}

    made = forged(planned(data).data, together)
    assert proof(data, made, HOST).status == "equal"
    assert not quick_differences(data, made, ("TFLM",))


@pytest.mark.parametrize("read", [0, 1])
@pytest.mark.parametrize(("second", "status"), [(80, "equal"), (48, "equal"), (72, "different")])
def test_two_results_over_each_other_are_seen(second: int, status: str, read: int) -> None:
    """Whichever is read: nobody knows which of them a kernel writes last."""
    one = One((4, 8), "int8")
    halves = [one.tensor((2, 8)) for _ in range(2)]
    axis = one.graph.constant("axis", np.int32(0))
    one.graph.op("SPLIT", [axis, one.x], halves, "SplitOptions", numSplits=2)
    data = one.finish((halves[read], (2, 8)))

    def over(model: Model, at: dict) -> dict:
        apart = {t: 256 + 64 * i for i, t in enumerate(at)}
        split = next(op for op in model.main.ops if op.kind == "SPLIT")
        return {**apart, split.outputs[0]: 64, split.outputs[1]: second}

    assert proof(data, forged(planned(data).data, over), HOST).status == status


@pytest.mark.parametrize(("other", "status"), [(64, "equal"), (0, "equal"), (16, "different")])
def test_a_result_in_one_operand_may_not_lie_over_another(other: int, status: str) -> None:
    one = One((8, 8), "int8")
    y, z = one.relu(one.x, (8, 8)), one.tensor((8, 8))
    w = one.relu(one.x, (8, 8))
    one.graph.op("ADD", [w, y], [z], "AddOptions", version=2)
    data = one.finish((z, (8, 8)))

    def over(model: Model, at: dict) -> dict:
        apart = {t: 256 + 64 * i for i, t in enumerate(at)}
        add = next(op for op in model.main.ops if op.kind == "ADD")
        first, second = add.inputs
        return {**apart, second: 0, add.outputs[0]: 0, first: other}

    assert proof(data, forged(planned(data).data, over), HOST).status == status


def test_a_part_that_lies_in_the_place_of_another_part_is_lost() -> None:
    """result = [ a | b ], with b where a goes."""
    one = One((2, 8), "int8")
    a, b = one.x, one.relu(one.x, (2, 8))
    y = one.tensor((4, 8))
    one.graph.op("CONCATENATION", [a, b], [y], "ConcatenationOptions")
    data = one.finish((y, (4, 8)))

    def over(model: Model, at: dict) -> dict:
        apart = {t: 256 + 64 * i for i, t in enumerate(at)}
        joined = next(op for op in model.main.ops if op.kind == "CONCATENATION")
        return {**apart, joined.inputs[1]: 0, joined.outputs[0]: 0}

    assert proof(data, forged(planned(data).data, over), HOST).status == "different"


@needs_tflm
@pytest.mark.parametrize(("itself", "status"), [(True, "equal"), (False, "different")])
def test_an_operand_may_be_written_over_by_the_bytes_that_it_has(itself: bool, status: str) -> None:
    """result = [ pair | x ] and pair = [ x | x ], which lies elsewhere; x lies where the first byte
    of the pair goes. Not so where pair = [ x - x | x ]."""
    one = One((2, 8), "int8")
    first = one.x
    if not itself:
        first = one.tensor((2, 8))
        one.graph.op("SUB", [one.x, one.x], [first], "SubOptions")
    pair, y = one.tensor((4, 8)), one.tensor((6, 8))
    one.graph.op("CONCATENATION", [first, one.x], [pair], "ConcatenationOptions")
    one.graph.op("CONCATENATION", [pair, one.x], [y], "ConcatenationOptions")
    data = one.finish((y, (6, 8)))

    def over(model: Model, at: dict) -> dict:
        apart = {t: 256 + 64 * i for i, t in enumerate(at)}
        joined = next(op for op in model.main.ops if op.outputs[0].shape == (6, 8))
        return {**apart, joined.inputs[1]: 0, joined.outputs[0]: 0}

    made = forged(planned(data).data, over)
    assert proof(data, made, HOST).status == status
    assert bool(quick_differences(data, made, ("TFLM",))) == (status == "different")
