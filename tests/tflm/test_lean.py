import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import published
from tests.models.generator import random_model
from tests.models.registry import conv, noise, start
from tflm_planner.model.edit import add_metadata, remove_metadata
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.api import MemoryOptions, PlanOptions, VerifyOptions, plan
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.kernels.operator_allocations import operator_allocations
from tflm_planner.tflm.lean.costs import lean_kept_bytes
from tflm_planner.tflm.lean.pool import (
    POOL_METADATA,
    Pool,
    WritePool,
    builtin_parameters,
    carried_pool,
    parameter_arrays,
    pool_records,
    quantize_multipliers,
)
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run

LEAN = "cortex-m4/cmsis-nn+lean"
CNN = Path(__file__).parents[1] / "models" / "cnn_int8.tflite"


def pooled(data: bytes) -> Model:
    model = read_model(data)
    run(model, WritePool())
    return read_model(write_model(model))


def predicted(model: Model, target: str = LEAN) -> Arena:
    return arena_of(model, load_target(target), carried_plan(model))


# --- arithmetic -----------------------------------------------------------------------------------


def quantize_multiplier(real: float) -> tuple[int, int]:
    """QuantizeMultiplier (quantization_util.cc), in exact fractions."""
    if real == 0:
        return 0, 0
    shift = 0
    fraction = abs(Fraction(real))
    while fraction >= 1:
        fraction, shift = fraction / 2, shift + 1
    while fraction < Fraction(1, 2):
        fraction, shift = fraction * 2, shift - 1
    fixed = math.floor(fraction * 2**31 + Fraction(1, 2))  # halves away from zero
    if fixed == 2**31:
        fixed, shift = fixed // 2, shift + 1
    if shift < -31:
        return 0, 0
    return (fixed if real > 0 else -fixed), shift


def test_multipliers_are_those_of_tflm() -> None:
    rng = np.random.default_rng(5)
    real = np.concatenate(
        [
            np.exp(rng.uniform(-25, 3, 4000)),
            rng.uniform(0, 1, 1000),
            2.0 ** np.arange(-40, 5),
            np.nextafter(2.0 ** np.arange(-33, 3), 0),
            [0.0, 1 - 2.0**-32, 1 - 2.0**-33, 0.5 + 2.0**-33, 1e-300],
        ]
    )
    multipliers, shifts = quantize_multipliers(real)
    for value, multiplier, shift in zip(real, multipliers, shifts, strict=True):
        assert (int(multiplier), int(shift)) == quantize_multiplier(float(value)), value


def test_scales_are_multiplied_as_doubles_in_tflms_order() -> None:
    model = read_model(CNN.read_bytes())
    seen = 0
    for op in model.ops():
        arrays = parameter_arrays(op)
        if arrays is None:
            continue
        tensors: list[Any] = [op.inputs[0], op.inputs[1], op.outputs[0]]
        given, known, made = (t.quantization.scales for t in tensors)
        for index, (multiplier, shift) in enumerate(
            zip(*(np.frombuffer(a, "<i4") for a in arrays), strict=True)
        ):
            real = given[0] * known[index if len(known) > 1 else 0] / made[0]
            assert (multiplier, shift) == quantize_multiplier(real)
            seen += 1
    assert seen > 20


def test_builtin_parameters_are_tflms_structures() -> None:
    model = read_model(CNN.read_bytes())
    conv = next(op for op in model.ops() if op.kind == "CONV_2D")
    conv.options = conv.options.changed(
        padding=1, stride_w=3, stride_h=2, fused_activation_function=3, dilation_w_factor=5,
        dilation_h_factor=4,
    )  # fmt: skip
    words = np.frombuffer(builtin_parameters(conv) or b"", "<i4")
    assert words.tolist() == [2, 3, 2, 3, 5, 4, 1]


# --- the pool -------------------------------------------------------------------------------------


def naive_find(records: list[bytes], hint: int, wanted: bytes) -> tuple[int, int] | None:
    """(record, byte in it) as the firmware's loop finds it."""
    for step in range(len(records)):
        index = (hint + step) % len(records)
        for at in range(0, len(records[index]) - len(wanted) + 1, 4):
            if records[index][at : at + len(wanted)] == wanted:
                return index, at
    return None


def packed(records: list[bytes]) -> bytes:
    return b"".join(np.uint32(len(r) // 4).tobytes() + r for r in records) + bytes(4)


@pytest.mark.parametrize("seed", range(40))
def test_search_is_the_firmwares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = [rng.integers(-2, 2, rng.integers(1, 7)).astype("<i4").tobytes() for _ in range(6)]
    starts = np.cumsum([4] + [len(r) + 4 for r in records])
    pool, hint = Pool(packed(records)), 0
    for _ in range(60):
        wanted = rng.integers(-2, 2, rng.integers(1, 4)).astype("<i4").tobytes()
        expected = naive_find(records, hint, wanted)
        found = pool.find(wanted)
        if expected is None:
            assert found is None
        else:
            assert found == starts[expected[0]] + expected[1]
            hint = (expected[0] + 1) % len(records)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(4),
        np.array([3, 1, 2], "<u4").tobytes(),  # a record beyond the end
        np.array([1, 7], "<u4").tobytes(),  # no end
        np.array([0xFFFFFFFF, 7, 0], "<u4").tobytes(),
        np.array([1, 7, 5, 0], "<u4").tobytes(),
    ],
)
def test_damaged_pools_are_refused_as_firmware_does(data: bytes) -> None:
    assert not Pool(data)
    assert Pool(data).find(np.array([7], "<i4").tobytes()) is None


def test_the_pool_holds_all_that_convolutions_ask_for() -> None:
    for seed in range(30):
        model = pooled(random_model(seed))
        pool = carried_pool(model)
        records = list(pool_records(model))
        for op in model.ops():
            wanted = [builtin_parameters(op), *(parameter_arrays(op) or ())]
            for one in wanted:
                assert one is None or pool.find(one) is not None
        for index, record in enumerate(records):  # nothing twice
            assert all(naive_find([other], 0, record) is None for other in records[:index])


def test_writing_the_pool_again_changes_nothing() -> None:
    once = write_model(pooled(CNN.read_bytes()))
    assert write_model(pooled(once)) == once
    assert len([m for m in read_model(once).metadata if m.name == POOL_METADATA]) == 1


# --- the lean arena -------------------------------------------------------------------------------

# Measured on an emulated Cortex-M4 with CMSIS-NN and the lean library: head, tail, smallest arena.
MEASURED = {
    "vww_96_int8.tflite": (73728, 4324, 78060),
    "pretrainedResnet_quant.tflite": (49728, 2324, 52056),
    "kws_ref_model.tflite": (16000, 1956, 17956),
    "micro_speech_quantized.tflite": (5968, 772, 6748),
    "ad01_int8.tflite": (768, 1812, 3012),
    "hello_world_float.tflite": (128, 704, 1156),
}


@pytest.mark.parametrize("name", MEASURED)
def test_measured_lean_arenas_are_exact(name: str) -> None:
    arena = predicted(pooled(published(name)))
    assert (arena.head, arena.tail, arena.arena) == MEASURED[name]


def test_the_measured_lean_arena_of_the_test_model_is_exact() -> None:
    arena = predicted(pooled(CNN.read_bytes()))
    assert (arena.head, arena.tail, arena.arena) == (104560, 4804, 109368)
    assert arena.need_prepare == 8416


def classifier(scales: int) -> bytes:
    """A convolution, and two layers of 40 classes over its 144 elements; the second as the first,
    of the same filter, so that firmware has a tile to share with."""
    net, graph, x = start((1, 6, 6, 4))
    y = conv(graph, x, (1, 6, 6, 4))
    found = []
    spread = np.linspace(0.7, 1.3, scales) / 900
    filter_ = graph.constant("classes/filter", noise((40, 144)), "int8", scale=spread)
    for k in range(2):
        out = graph.tensor(f"classes{k}", (1, 40), scale=0.1, zero=4)
        graph.op("FULLY_CONNECTED", [y, filter_, -1], [out], "FullyConnectedOptions", version=4)
        found.append(out)
    graph.outputs(*found)
    return net.finish()


@pytest.mark.parametrize(
    ("scales", "full", "other"), [(40, (648, 1552), (1032, 1936)), (1, (728, 1168), (792, 1232))]
)
def test_the_measured_lean_arena_of_fully_connected_layers_is_exact(
    scales: int, full: tuple[int, int], other: tuple[int, int]
) -> None:
    """As measured under emulation, like those above; with its own pool, and with a foreign one."""
    lean = predicted(pooled(classifier(scales)))
    assert (lean.tail, lean.arena) == full
    model = read_model(classifier(scales))
    pool = packed([np.arange(40, dtype="<i4").tobytes()])
    add_metadata(model, POOL_METADATA, np.frombuffer(pool, np.uint8).copy())
    lean = predicted(model)
    assert (lean.tail, lean.arena) == other


def test_a_foreign_pool_costs_memory_only() -> None:
    model = read_model(CNN.read_bytes())
    stock = predicted(model, "cortex-m4/cmsis-nn")
    full = predicted(pooled(CNN.read_bytes()))
    remove_metadata(model, POOL_METADATA)
    foreign = packed([np.arange(40, dtype="<i4").tobytes()])
    add_metadata(model, POOL_METADATA, np.frombuffer(foreign, np.uint8).copy())
    other = predicted(model)
    assert full.tail < other.tail <= stock.tail


@pytest.mark.slow
def test_lean_is_never_above_stock_in_the_tail() -> None:
    """But for alignment: OpData is allocated later, behind other pieces."""
    for seed in range(40):
        data = random_model(seed)
        for target in ("cortex-m4/cmsis-nn", "cortex-m4/reference", "arduino-2023"):
            stock = predicted(read_model(data), target)
            lean = predicted(pooled(data), target + "+lean")
            without = predicted(read_model(data), target + "+lean")
            assert lean.tail <= stock.tail + 16 and without.tail <= stock.tail + 16
            assert lean.head == stock.head


@pytest.mark.slow
def test_the_tail_of_one_operator_is_never_too_little() -> None:
    """Pieces are packed to their own alignment, so sums agree up to the rounding of each."""
    target, close = load_target(LEAN), 0
    for seed in range(30):
        model = pooled(random_model(seed))
        parts = predicted(model).tail_parts
        there = parts["builtin_data"] + parts["op_init"] + parts["op_prepare"]
        summed = sum(lean_kept_bytes(op, target) for op in model.ops())
        assert there <= summed + 16
        close += summed - there <= 16
        stock = load_target("cortex-m4/cmsis-nn")
        for op in model.ops():
            assert (
                lean_kept_bytes(op, stock)
                == operator_allocations(op, stock).kept
                >= lean_kept_bytes(op, target)
            )
    assert close > 10


# --- targets and planning -------------------------------------------------------------------------


def test_lean_targets_are_named() -> None:
    assert load_target("nano33ble+lean").id == "cortex-m4/cmsis-nn+lean"
    assert load_target("nano33ble+lean").board is not None
    assert load_target("arduino-2023", lean=True).lean
    assert load_target("cortex-m4/cmsis-nn+lean", lean=True).id == "cortex-m4/cmsis-nn+lean"


@pytest.mark.parametrize("name", ["cortex-m/any", "cortex-m4/unknown", "x86-64/wheel"])
def test_lean_needs_known_kernels(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be lean"):
        load_target(name + "+lean")


@pytest.mark.slow
def test_planning_for_lean_writes_the_pool_and_proves_the_model(tmp_path: Path) -> None:
    options = PlanOptions(
        MemoryOptions(kernels=kernels_of(load_target(LEAN))), verify=VerifyOptions(inputs=2)
    )
    out = tmp_path / "lean.tflite"
    result = plan(CNN, out, options)
    assert result.report.verified and result.report.target == LEAN
    model = read_model(out.read_bytes())
    assert carried_pool(model)
    arena = predicted(model)
    assert result.report.after.arena.arena == arena.arena
    assert arena.arena < predicted(model, "cortex-m4/cmsis-nn").arena
