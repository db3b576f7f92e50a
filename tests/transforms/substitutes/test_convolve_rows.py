"""FULLY_CONNECTED with several scales as a convolution, for TFLM that takes one scale alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.tflm.test_channel_scales import SCALES, dense
from tests.transforms.substitutes.cleaning import kinds_but_reshapes
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.channel_scales import has_channel_scales
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.substitutes.convolve_rows import convolve_rows
from tflm_planner.verification.terms import prove_by_terms

OLD, NEW = load_target("arduino-2023"), load_target("cortex-m4/cmsis-nn")


def convolved(data: bytes) -> bytes:
    model = read_model(data)
    assert convolve_rows(model, has_channel_scales)
    return write_model(model)


def outputs_on_tflm(data: bytes, x: np.ndarray) -> np.ndarray:
    from tflite_micro import runtime

    interpreter: Any = runtime.Interpreter.from_bytes(data, arena_size=1 << 16)
    interpreter.set_input(x, 0)
    interpreter.invoke()
    return interpreter.get_output(0)


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "depth"), [(1, 12), (7, 40), (3, 1)])
def test_every_bit_is_the_one_that_tflm_computes(
    dtype: str, bias: bool, rows: int, depth: int
) -> None:
    data = dense(dtype, rows=rows, bias=bias, depth=depth)
    result = convolved(data)
    assert kinds_but_reshapes(result) == ["CONV_2D"]
    assert prove_by_terms(read_model(data), read_model(result)).status == "equal"
    limits, rng = np.iinfo(dtype), np.random.default_rng(depth)
    for _ in range(20):
        x = rng.integers(limits.min, limits.max + 1, (rows, depth)).astype(dtype)
        assert np.array_equal(outputs_on_tflm(data, x), outputs_on_tflm(result, x))


@needs_tflm
@pytest.mark.parametrize(("dtype", "target"), [("int8", OLD), ("int16", OLD), ("int16", NEW)])
@pytest.mark.parametrize("operators", [None, api.AllowedOperators.ALL])
def test_a_plan_for_such_tflm_has_a_convolution(
    dtype: str, target: Any, operators: api.AllowedOperators | None
) -> None:
    data = dense(dtype, rows=3)
    assert "a scale for each channel" in " ".join(api.arena(data, target).cannot_run)
    tiles = None if operators is None else api.TilePermission(operators=operators, workers=1)
    options = api.PlanOptions(api.MemoryOptions(kernels=api.kernels_of(target)), tiles)
    made = api.plan(data, options=options)
    assert kinds_but_reshapes(made.data) == ["CONV_2D"] and made.report.verified
    assert not made.report.after.arena.cannot_run
    assert "FULLY_CONNECTED with a scale for each channel" in " ".join(made.report.notes)
    equality = api.check_equal(data, made.data, target=target)
    assert equality.equal and equality.proved
    compared = api.compare(data, [target])
    assert [cell.arena is not None for cell in compared.rows[0].cells][:2] == [False, True]


@needs_tflm
def test_weights_of_int4_are_convolved_for_every_target() -> None:
    data = dense(weights="int4", rows=3)
    for target in (NEW, load_target("cortex-m4/reference")):
        options = api.PlanOptions(api.MemoryOptions(kernels=api.kernels_of(target)))
        made = api.plan(data, options=options)
        assert kinds_but_reshapes(made.data) == ["CONV_2D"]
        assert {c.status for c in made.report.checks} == {"equal"}
        assert api.check_equal(data, made.data, target=target).proved


@needs_tflm
def test_a_plan_for_tflm_that_takes_them_keeps_them() -> None:
    made = api.plan(dense())
    assert kinds_but_reshapes(made.data) == ["FULLY_CONNECTED"]
    assert "2024-09-27 and later (FULLY_CONNECTED with a scale" in " ".join(
        made.report.paste.remarks
    )
    assert api.check_equal(dense(), made.data).proved


def test_terms_tell_other_scales_and_weights_apart() -> None:
    data = dense()
    other = SCALES.copy()
    other[3] *= 1.01
    for changed in (dense(scales=other), dense(bias=False), dense(depth=11)):
        if read_model(changed).main.inputs[0].shape == (1, 12):
            proof = prove_by_terms(read_model(data), read_model(convolved(changed)))
            assert proof.status == "different"


@pytest.mark.parametrize("change", ["weights", "axis", "rows", "result", "zero", "scales", "bias"])
def test_what_is_odd_stays(change: str) -> None:
    model = read_model(dense())
    (op,) = model.ops()
    weights = op.inputs[1]
    assert weights is not None and op.inputs[0] is not None
    if change == "weights":
        weights.shape = (1, 5, 12)
    elif change == "axis":
        weights.quantization = type(weights.quantization).of(SCALES, 0, axis=1)
    elif change == "zero":
        weights.quantization = type(weights.quantization).of(SCALES, 1)
    elif change == "scales":
        weights.quantization = type(weights.quantization).of(SCALES[:2])
    elif change == "bias":
        assert op.inputs[2] is not None
        op.inputs[2].shape = (1,)
    elif change == "rows":
        op.inputs[0].shape = (1, 13)
    else:
        op.outputs[0].shape = (1, 6)
    assert convolve_rows(model, has_channel_scales) == []
    assert [op.kind for op in model.ops()] == ["FULLY_CONNECTED"]


@needs_tflm
def test_a_plan_with_products_of_both_types_is_equal_to_its_file() -> None:
    """Only that of int16 is a convolution then."""
    net = Net()
    graph = net.graph()
    for dtype, fine, wide in (("int8", 0.05, "int32"), ("int16", 0.0003, "int64")):
        x, y = (
            graph.input(f"x{dtype}", (1, 12), dtype, scale=fine),
            graph.tensor(f"y{dtype}", (1, 5), dtype, scale=fine * 4),
        )
        numbers = np.random.default_rng(5).integers(-127, 128, (5, 12))
        w = graph.constant(f"w{dtype}", numbers, "int8", scale=SCALES)
        b = graph.constant(f"b{dtype}", np.arange(5), wide, scale=np.float32(fine) * SCALES)
        graph.op("FULLY_CONNECTED", [x, w, b], [y], "FullyConnectedOptions")
        graph.table.outputs.append(y)
    data = net.finish()
    made = api.plan(data)
    assert sorted(kinds_but_reshapes(made.data)) == ["CONV_2D", "FULLY_CONNECTED"]
    assert api.check_equal(data, made.data).equal


def test_zero_points_of_weights_with_several_scales_are_not_known() -> None:
    """TFLM takes them for 0."""
    model, other = read_model(dense()), read_model(dense())
    for each, point in ((model, 0), (other, 1)):
        (op,) = each.ops()
        assert op.inputs[1] is not None
        op.inputs[1].quantization = type(op.inputs[1].quantization).of(SCALES, point)
        if point:
            data = op.inputs[1].buffer.data
            assert data is not None
            op.inputs[1].buffer.data = (data.view(np.int8) + 1).view(np.uint8)
    assert prove_by_terms(model, other).status == "different"


def test_one_scale_stays() -> None:
    model = read_model(dense(scales=0.01))
    assert convolve_rows(model, lambda _: True) == []
