"""Constants of float16, of int4, and of several scales become float32, number by number, and every
bit of the outputs is equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.constants import pack_int4
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.substitutes.widen_constants import widen_constants
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.terms import prove_by_terms

HALVES = np.random.default_rng(3).normal(size=(4, 3, 3, 2)).astype(np.float16)
ODD = np.array([0.0, -0.0, 6e-8, -6e-8, 65504, np.inf, -np.inf, 1 / 3], np.float16)


def convolution(weights: np.ndarray = HALVES, *, offered: bool = False) -> bytes:
    """CONV_2D of weights and bias of float16, as a converter optimises by tf.float16. offered: the
    widened bias is an output, too."""
    net = Net()
    graph = net.graph()
    x, y = graph.input("x", (1, 8, 8, 2), "float32"), graph.tensor("y", (1, 8, 8, 4), "float32")
    bias = np.array([0.5, -1.25, 0, 1 / 3], np.float16)
    widened: list[int] = []
    for name, values in (("w", weights), ("b", bias)):
        half = graph.constant(name, values, "float16")
        widened.append(graph.tensor(f"{name}32", values.shape, "float32"))
        graph.op("DEQUANTIZE", [half], [widened[-1]], version=3)
    options = {"padding": 0, "strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    graph.op("CONV_2D", [x, *widened], [y], "Conv2DOptions", **options)
    graph.outputs(y, *([widened[1]] if offered else []))
    return net.finish()


def cleaned(data: bytes) -> tuple[bytes, list[str]]:
    model = read_model(data)
    run(model, Normalize())
    return write_model(model), [op.kind for op in model.main.ops]


@needs_tflm
@pytest.mark.parametrize("tiles", [None, api.TilePermission(workers=1)])
def test_a_model_of_float16_is_planned_and_proved_on_both_runtimes(
    tiles: api.TilePermission | None,
) -> None:
    data = convolution()
    assert api.arena(data, api.load_target("cortex-m4/cmsis-nn")).cannot_run
    made = api.plan(data, None, api.PlanOptions(tiles=tiles))
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert made.report.terms is not None and made.report.terms.status == "equal"
    assert "2 constants of float16" in " ".join(made.report.notes)
    # what is saved is not that TFLM would have widened them in the arena
    assert made.report.before.operators == 1


def test_each_number_is_the_same() -> None:
    weights = np.resize(ODD, HALVES.shape)
    written, kinds = cleaned(convolution(weights))
    assert kinds == ["CONV_2D"]
    (tensor,) = (t for t in read_model(written).tensors() if t.name == "w32")
    assert tensor.buffer.data is not None
    values = tensor.buffer.data.view("<f4").reshape(HALVES.shape)
    assert values.tobytes() == weights.astype(np.float32).tobytes()


def test_other_numbers_are_found_different() -> None:
    other = HALVES.copy()
    other[1, 2, 0, 1] = np.nextafter(other[1, 2, 0, 1], np.float16(9))
    result = read_model(cleaned(convolution(other))[0])
    assert prove_by_terms(read_model(convolution()), result).status == "different"
    same = read_model(cleaned(convolution())[0])
    assert prove_by_terms(read_model(convolution()), same).status == "equal"


def test_nans_and_what_is_given_as_an_output_stay() -> None:
    nan = HALVES.copy()
    nan[0, 0, 0, 0] = np.nan
    assert cleaned(convolution(nan))[1] == ["DEQUANTIZE", "CONV_2D"]
    assert cleaned(convolution(offered=True))[1] == ["DEQUANTIZE", "CONV_2D"]


def weighted(
    dtype: str = "int8", *, scales: int = 4, axis: int = 0, zeros: bool = False, scale: float = 1.0
) -> bytes:
    """CONV_2D of float32 with weights in `dtype`, as AI Edge Quantizer writes "weight-only"
    quantisation. scales: how many. scale: a factor of all."""
    net = Net()
    graph, rng = net.graph(), np.random.default_rng(5)
    x, y = graph.input("x", (1, 8, 8, 2), "float32"), graph.tensor("y", (1, 8, 8, 4), "float32")
    shape, low, high = (4, 3, 3, 2), *((0, 255) if dtype == "uint8" else (-7, 8))
    numbers = rng.integers(low, high, shape).astype("i1" if dtype == "int4" else dtype)
    data = pack_int4(numbers.reshape(-1)) if dtype == "int4" else numbers
    steps = (rng.uniform(0.01, 0.3, scales) * scale).astype(np.float32)
    narrow = graph.tensor("w", shape, dtype, data=data, scale=steps, axis=axis)
    points = rng.integers(-5, 5, scales) if zeros else np.zeros(scales, np.int64)
    graph.table.tensors[narrow].quantization.zeroPoint = points
    wide = graph.tensor("w32", shape, "float32")
    graph.op("DEQUANTIZE", [narrow], [wide], version=6)
    bias = graph.constant("b", np.array([0.5, -1.25, 0, 1 / 3], np.float32) * scale, "float32")
    options = {"padding": 0, "strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    graph.op("CONV_2D", [x, wide, bias], [y], "Conv2DOptions", **options)
    graph.outputs(y)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_several_scales_are_garbage_on_tflm_and_right_once_widened(dtype: str) -> None:
    data = weighted(dtype)
    assert "a scale for each channel" in " ".join(api.arena(data).cannot_run)
    made = api.plan(data, None, api.PlanOptions(tiles=api.TilePermission(workers=1)))
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert made.report.terms is not None and made.report.terms.status == "equal"
    assert f"1 constant of {dtype}" in " ".join(made.report.notes)
    assert not api.arena(made.data).cannot_run


@needs_tflm
@pytest.mark.parametrize(
    "data",
    [
        weighted(axis=3, scales=2),
        weighted(zeros=True),
        weighted("int4"),
        weighted("int4", scales=1),
        weighted(scale=1e-42),  # subnormal
    ],
)
def test_numbers_are_those_of_litert(data: bytes) -> None:
    result, kinds = cleaned(data)
    assert kinds == ["CONV_2D"]
    assert prove_by_terms(read_model(data), read_model(result)).status == "equal"
    checks = verify(data, result, VerifyOptions(inputs=3)).checks
    assert {c.runtime: c.status for c in checks}["LiteRT"] == "equal", checks


@pytest.mark.parametrize("data", [weighted(scales=1), weighted("int16")])
def test_what_a_kernel_takes_or_litert_does_not_stays(data: bytes) -> None:
    assert cleaned(data)[1] == ["DEQUANTIZE", "CONV_2D"]


@pytest.mark.parametrize("change", ["axis", "scales", "points", "wide points", "shape"])
def test_scales_that_do_not_fit_stay(change: str) -> None:
    model = read_model(weighted())
    narrow = model.main.ops[0].inputs[0]
    assert narrow is not None
    if change == "axis":
        narrow.quantization = replace(narrow.quantization, axis=9)
    elif change == "scales":
        narrow.quantization = replace(narrow.quantization, scales=(0.5, 0.25))
    elif change == "points":
        narrow.quantization = replace(narrow.quantization, zero_points=(0, 0))
    elif change == "wide points":
        narrow.quantization = replace(narrow.quantization, zero_points=(0, 0, 1 << 33, 0))
    else:
        narrow.shape = (3, 3, 3, 2)
    assert widen_constants(model) == []


def test_other_scales_are_found_different() -> None:
    result = read_model(cleaned(weighted(scale=1.001))[0])
    assert prove_by_terms(read_model(weighted()), result).status == "different"
