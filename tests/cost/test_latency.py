"""The latency model: right on real models, monotone, the same every time, fast."""

import json
import random
import time
from pathlib import Path

import pytest

from tests.conftest import published
from tests.models.build import Net
from tests.tflm.operator_models import MODELS
from tests.tflm.recorded_arenas import records
from tflm_planner.cost import Case, Cost, Operand, case_of, cost_of, cost_of_case, latency_of
from tflm_planner.cost.case import from_row, to_row
from tflm_planner.cost.loops import turns
from tflm_planner.cost.profiles import all_profiles
from tflm_planner.cost.windows import taps_inside, window_counts
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.targets import all_targets, load_target
from tflm_planner.transforms.base import run
from tflm_planner.transforms.spelling import Respell, Spelling

M4 = load_target("cortex-m4/cmsis-nn")
TARGETS = {
    "m4-cmsis": "cortex-m4/cmsis-nn",
    "m4-ref": "cortex-m4/reference",
    "m3-cmsis": "cortex-m3/cmsis-nn",
    "m55-cmsis": "cortex-m55/cmsis-nn",
}
NETWORKS = ("vww_96_int8", "kws_ref_model", "pretrainedResnet_quant", "ad01_int8")


def conv(height: int, width: int, ci: int, co: int, kernel: int = 3, kind: str = "CONV_2D") -> Case:
    deep = (1, kernel, kernel, co) if kind != "CONV_2D" else (co, kernel, kernel, ci)
    return Case(
        kind,
        (
            Operand("int8", (1, height, width, ci), False, 1),
            Operand("int8", deep, True, co),
            Operand("int32", (co,), True, co),
        ),
        (Operand("int8", (1, height, width, co), False, 1),),
        (("strideH", 1), ("strideW", 1), ("dilationHFactor", 1), ("dilationWFactor", 1)),
    )


def image(kind: str, shape: tuple[int, ...], count: int = 1) -> Case:
    x = Operand("int8", shape, False, 1)
    return Case(kind, (x,) * count, (x,))


def cost(case: Case, target: str = "cortex-m4/cmsis-nn") -> Cost:
    return cost_of_case(case, load_target(target))


@pytest.mark.parametrize("target", sorted(TARGETS.values()))
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_a_larger_image_costs_more(target: str, kind: str, kernel: int) -> None:
    def of(height: int, width: int, channels: int) -> int:
        return cost(conv(height, width, channels, channels, kernel, kind), target).instructions

    for height in (1, 2, 3, 8, 17):
        for width in (1, 4, 9, 24):
            for channels in (1, 3, 8, 20):
                here = of(height, width, channels)
                assert here < of(2 * height, width, channels)
                assert here < of(height, 2 * width, channels)
                assert here <= of(height, width, 2 * channels)  # lanes of a vector are free


@pytest.mark.parametrize("kind", ["ADD", "RELU", "RESHAPE", "SOFTMAX", "LOGISTIC", "QUANTIZE"])
def test_more_elements_cost_more(kind: str) -> None:
    count = 2 if kind == "ADD" else 1
    costs = [cost(image(kind, (1, n, n, 16), count)).instructions for n in (1, 2, 4, 9, 30)]
    assert costs == sorted(costs) and len(set(costs)) == len(costs)


def test_rows_of_a_convolution_cost_no_less_than_the_whole() -> None:
    """Tiles of rows: the calls come on top."""
    whole = cost(conv(24, 24, 16, 16)).instructions
    halves = 2 * cost(conv(12, 24, 16, 16)).instructions
    assert 0.9 * whole < halves < 1.1 * whole


def test_copies_differ_as_kernels_do() -> None:
    """SLICE walks element by element, CONCATENATION copies runs (facts of the runtime)."""
    x, half = Operand("int8", (1, 24, 24, 16)), Operand("int8", (1, 12, 24, 16))
    numbers = Operand("int32", (4,), True, 0, (0, 0, 0, 0))
    slice_ = cost(Case("SLICE", (x, numbers, numbers), (half,)))
    joined = cost(Case("CONCATENATION", (half, half), (x,), (("axis", 1),)))
    assert slice_.instructions / half.elements > 4
    assert joined.instructions / x.elements < 1


def test_macs_and_bytes() -> None:
    found = cost(conv(10, 12, 8, 16))
    assert found.macs == 10 * 12 * 16 * 9 * 8
    assert found.bytes_written == 10 * 12 * 16
    assert found.bytes_read == 10 * 12 * 8 + 16 * 9 * 8 + 4 * 16


def test_taps_inside_are_counted_one_by_one() -> None:
    window = window_counts(conv(5, 4, 1, 1))
    assert window is not None
    inside = sum(
        0 <= y + ky < 5 and 0 <= x + kx < 4
        for y in range(5)
        for x in range(4)
        for ky in (-1, 0, 1)
        for kx in (-1, 0, 1)
    )
    assert window.inside == inside


def test_taps_inside_of_any_window_and_of_millions_of_rows() -> None:
    def one_by_one(size: int, out: int, kernel: int, stride: int, dilation: int, pad: int) -> int:
        at = [p * stride - pad + k * dilation for p in range(out) for k in range(kernel)]
        return sum(0 <= x < size for x in at)

    rng = random.Random(3)
    for _ in range(500):
        low = [rng.randrange(n) for n in (20, 20, 9)]
        window = (*low, rng.randrange(1, 5), rng.randrange(1, 5), rng.randrange(9))
        assert taps_inside(*window) == one_by_one(*window), window
    assert taps_inside(1 << 29, 1 << 29, 3, 1, 1, 1) == 3 * (1 << 29) - 2


def test_an_unknown_operator_is_an_estimate_that_grows() -> None:
    small, large = cost(image("NO_SUCH", (1, 8))), cost(image("NO_SUCH", (1, 800)))
    assert small.estimated and large.estimated
    assert small.instructions < large.instructions


def test_relatives_are_estimates() -> None:
    case = conv(8, 8, 8, 8)
    assert not cost(case).estimated
    assert cost(case, "cortex-m7/cmsis-nn").estimated
    assert cost(case, "cortex-m7/cmsis-nn").instructions == cost(case).instructions
    unknown = cost(case, "cortex-m4/unknown").instructions
    assert unknown >= max(cost(case).instructions, cost(case, "cortex-m4/reference").instructions)


def test_every_target_has_costs() -> None:
    for name in all_targets():
        assert cost(conv(8, 8, 8, 8), name).instructions > 0


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_operator_has_a_cost(name: str) -> None:
    model = read_model(MODELS[name]())
    for target in TARGETS.values():
        latency = latency_of(model, load_target(target))
        assert latency.instructions > 0
        assert len(latency.by_op) == 1


def test_constants_are_not_negative() -> None:
    for profile in all_profiles().values():
        assert all(v >= 0 for table in profile.paths.values() for v in table.values())


def test_a_case_survives_its_row() -> None:
    for name in sorted(MODELS):
        case = case_of(read_model(MODELS[name]()).main.ops[0])
        again = from_row(json.loads(json.dumps(to_row(case))))
        assert cost(again) == cost(case)


def test_in_place_copies_nothing() -> None:
    op = read_model(MODELS["reshape_int8"]()).main.ops[0]
    assert cost_of(op, M4, in_place=True).instructions < cost_of(op, M4).instructions


def loop(first: int, limit: int, step: int) -> Model:
    """A WHILE that counts from `first` while it is below (above, for a falling one) `limit`."""
    net = Net("loop")
    main, condition, body = net.graph("main"), net.graph("condition"), net.graph("body")
    i = condition.input("i", (1,), "int32")
    bound = condition.constant("limit", [limit])
    below = condition.tensor("below", (1,), "bool")
    condition.op("LESS", [i, bound] if step > 0 else [bound, i], [below])
    condition.outputs(below)
    i = body.input("i", (1,), "int32")
    after = body.tensor("after", (1,), "int32")
    body.op("ADD", [i, body.constant("step", [step])], [after], "AddOptions")
    body.outputs(after)
    last = main.tensor("last", (1,), "int32")
    graphs = {"condSubgraphIndex": condition.index, "bodySubgraphIndex": body.index}
    main.op("WHILE", [main.constant("first", [first])], [last], "WhileOptions", **graphs)
    main.outputs(last)
    return read_model(net.finish())


@pytest.mark.parametrize(
    ("first", "limit", "step", "expected"),
    [(0, 10, 1, 10), (0, 10, 3, 4), (9, -1, -3, 4), (10, 10, 1, 0), (0, 10, -1, 0)],
)
def test_turns_of_a_counting_loop(first: int, limit: int, step: int, expected: int) -> None:
    model = loop(first, limit, step)
    assert turns(model.main.ops[0]) == expected
    latency = latency_of(model, M4)
    runs = {row.op.kind: row.runs for row in latency.by_op}
    assert runs["WHILE"] == 1 and runs.get("ADD", 0) == expected and runs["LESS"] == expected + 1
    assert latency.unknown_loops == 0


def test_two_runs_give_the_same() -> None:
    model = read_model((Path(__file__).parents[1] / "models/cnn_int8.tflite").read_bytes())
    assert latency_of(model, M4).total == latency_of(model, M4).total


def test_ten_thousand_operators_take_little_time() -> None:
    model = read_model((Path(__file__).parents[1] / "models/cnn_int8.tflite").read_bytes())
    ops = (model.main.ops * 10_000)[:10_000]
    start = time.perf_counter()
    for op in ops:
        cost_of(op, M4)
    assert time.perf_counter() - start < 2.0


def _records() -> list[tuple[str, str, list[int], int]]:
    return [
        (r["model"], r["target"], r["instructions"], r["instructions_total"])
        for r in records()
        if r["model"].removesuffix(".tflite") in NETWORKS
        and r["target"] in all_profiles()
        and "instructions" in r
    ]


@pytest.mark.parametrize(("name", "target", "by_op", "total"), _records())
def test_real_networks_are_predicted(name: str, target: str, by_op: list[int], total: int) -> None:
    """None of them took part in the fit. Totals within 5 %, operators of weight within 15 %."""
    model = read_model(published(name))
    latency = latency_of(model, load_target(TARGETS[target]))
    assert abs(latency.instructions / total - 1) < 0.05
    for row, executed in zip(latency.by_op, by_op, strict=True):
        if executed > 0.02 * total:
            assert abs(row.each.instructions / executed - 1) < 0.15


@pytest.mark.parametrize(
    ("name", "executed"), [("vww_rev", 24.82e6), ("vww_mask", 25.47e6), ("resnet8_mask", 35.28e6)]
)
def test_loops_are_predicted(name: str, executed: float) -> None:
    """Rewritten models whose plans put loop variables in place; none took part in the fit."""
    model = read_model(published(name))
    latency = latency_of(model, M4, dict.fromkeys(model.tensors(), 0))
    assert latency.unknown_loops == 0
    assert abs(latency.instructions / executed - 1) < 0.06


RESPELLED = [
    ("vww_96_int8.tflite", [Spelling(2, "rows", 48)], 1.0026),
    ("vww_96_int8.tflite", [Spelling(2, "rows", 48), Spelling(4, "rows", 24)], 1.006),
    ("vww_96_int8.tflite", [Spelling(2, "dilated"), Spelling(4, "dilated")], 1.043),
    ("kws_ref_model.tflite", [Spelling(i, "rows", 25) for i in (2, 4, 6, 8)], 1.035),
    ("kws_ref_model.tflite", [Spelling(i, "rows", 5) for i in (2, 4, 6, 8)], 1.212),
    ("kws_ref_model.tflite", [Spelling(i, "dilated") for i in (2, 4, 6, 8)], 1.094),
]
"""Executed instructions on an emulated Cortex-M4, relative to the model as it was spelled."""


@pytest.mark.parametrize(("name", "spellings", "executed"), RESPELLED)
def test_spellings_are_predicted(name: str, spellings: list[Spelling], executed: float) -> None:
    """Within one per cent of the model; in rows the weights are summed up again at every row."""
    model = read_model(published(name))
    before = latency_of(model, M4).instructions
    run(model, Respell(spellings))
    assert abs(latency_of(model, M4).instructions / before - executed) < 0.01
