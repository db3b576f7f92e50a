"""What the package's own rewrites make is equal as terms: in files, and in planned arenas."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.conftest import published
from tests.fuzz.by_terms import SORTS
from tests.models.attention import attention
from tests.models.build import Net
from tests.models.generator import random_model
from tests.models.handmade import MODELS
from tests.models.random_loops import random_loops_model
from tests.models.small import bottleneck
from tests.tflm.custom_models import MODELS as OPERATORS
from tests.transforms.random_tiles import random_scheme
from tests.transforms.row_loops import chain, planned, random_blocks, random_loops, streamed
from tests.transforms.test_spelling import random_chain, random_spellings, respelled
from tests.transforms.tiled import RARE_KINDS, dialect_of, tiled
from tests.verification.terms.proofs import HOST, changed, proof
from tflm_planner.model.ir import Tensor
from tflm_planner.model.quantization import Quantization
from tflm_planner.ops.window import COLUMNS
from tflm_planner.pipeline import api
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.transforms.base import run
from tflm_planner.transforms.drop_conversions import drop_conversions
from tflm_planner.transforms.minify import KeepOneZeroPoint, Minify
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.row_loop import LOOP_BORDERS, LoopBorder, LoopedRegion
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification.terms import TermsProof

NOT_WRITTEN = {"strings", "external_buffers"} | {n for n in MODELS if n.startswith("sparse")}
"""Constants that nobody reads."""
REFUSED = {"ethos_u"}
"""Compiled for an Ethos-U: no rewrite may touch it."""


@pytest.mark.parametrize("name", sorted({*MODELS, *OPERATORS} - REFUSED))
@pytest.mark.mostly_slow(fast=80)
def test_every_operator_is_itself_and_what_normalizing_makes_of_it(name: str) -> None:
    data = OPERATORS[name]() if name in OPERATORS else MODELS[name].make()
    found = proof(data, data)
    assert found.status == ("not run" if name in NOT_WRITTEN else "equal"), found.detail
    if name not in NOT_WRITTEN:
        assert found.error_log2 is not None and found.error_log2 < -100
        normalized = changed(data, lambda model: run(model, Normalize()))
        assert proof(data, normalized).status == "equal"


@pytest.mark.parametrize("seed", range(24))
def test_tiles(seed: int) -> None:
    data = random_model(seed, steps=3 + seed % 6, kinds=RARE_KINDS)
    scheme = random_scheme(data, seed)
    assert scheme is not None
    made, _ = tiled(data, scheme)
    assert proof(data, made).status == "equal"


@pytest.mark.parametrize("seed", range(4))
def test_tiles_in_the_dialect_in_an_arena(seed: int) -> None:
    data = random_model(seed, steps=3 + seed % 6, kinds=RARE_KINDS)
    scheme = random_scheme(data, seed + 1)
    assert scheme is not None
    made, _ = tiled(data, scheme)
    found = dialect_of(made)
    assert proof(data, found.dialect, HOST).status == "equal"
    assert proof(data, found.portable, HOST).status == "equal"


@pytest.mark.parametrize("seed", range(8))
def test_row_loops(seed: int) -> None:
    data = random_blocks(seed, 3 + seed % 6)
    made, _ = streamed(data, *random_loops(data, random.Random(seed)))
    assert proof(data, made).status == "equal"
    assert proof(data, planned(made).data, HOST).status == "equal"


@pytest.mark.parametrize("border", LOOP_BORDERS)
@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("last", [(2, 1, 2), (3, 1, 2), (3, 2, 2), (2, 2, 2)], ids=str)
def test_loops_over_late_rows_meet_every_border(
    last: tuple[int, int, int], size: int, border: LoopBorder
) -> None:
    """Windows padded above, below or on both sides, over rows that a window before has delayed."""
    data = chain((1, 1, 3), (3, 1, 2), last, size=size)
    made, notes = streamed(data, LoopedRegion((0, 1, 2), 1, border))
    assert not any("not streamed" in note for note in notes)
    assert proof(data, made).status == "equal"


@pytest.mark.parametrize("seed", range(6))
def test_spellings(seed: int) -> None:
    data = random_chain(seed)
    made, _ = respelled(data, *random_spellings(data, seed))
    assert proof(data, made).status == "equal"


@pytest.mark.parametrize("seed", range(6))
def test_loops_and_branches_of_the_model_itself_in_an_arena(seed: int) -> None:
    data = random_loops_model(seed, choices=seed % 2 == 0)
    assert proof(data, planned(data).data, HOST).status == "equal"


@pytest.mark.parametrize("seed", [0, 88])
def test_results_of_a_loop_that_are_one_value_may_lie_in_one_place(seed: int) -> None:
    data = random_loops_model(seed)
    assert proof(data, planned(data).data, HOST).status == "equal"


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_types_of_activations(dtype: str) -> None:
    data = bottleneck(dtype)
    assert proof(data, planned(data).data, HOST).status == "equal"


@pytest.mark.parametrize("seed", [2100127, 2200049, 2200117])
def test_an_image_resized_to_places_that_are_rounded_in_tiles(seed: int) -> None:
    SORTS["tiles"](seed, _must_be_equal)


def _must_be_equal(found: TermsProof) -> None:
    assert found.status == "equal", found.detail


def test_a_transposed_convolution_whose_shape_is_an_input_in_tiles() -> None:
    data = published("seanet_transpose_conv0")
    made, (note, *_) = tiled(data, TiledRegion((0,), (Split(COLUMNS, 3),)))
    assert note.startswith("tiled")
    assert proof(data, made).status == "equal"


def test_a_transposed_product_is_turned() -> None:
    data = attention()
    made = changed(data, lambda model: run(model, Normalize()))
    assert proof(data, made).status == "equal"


def test_stripping() -> None:
    data = bottleneck()
    stripped = changed(data, lambda m: run(m, Minify(), KeepOneZeroPoint(), WritePool()))
    assert proof(data, stripped).status == "equal"


@pytest.mark.parametrize("name", ["float_ends", "unsigned_ends"])
def test_converted_ends(name: str) -> None:
    data = _with_ends("float32" if name == "float_ends" else "uint8")
    converted: list[object] = []
    made = changed(data, lambda model: converted.extend(drop_conversions(model)))
    assert len(converted) == 2
    assert proof(data, made).status == "equal"
    scaled = changed(made, lambda m: _scale(m.main.inputs[0], 1.5))
    assert proof(data, scaled).status != "equal"


def _with_ends(dtype: str) -> bytes:
    net = Net()
    graph = net.graph()
    shape, zero = (1, 4, 4, 2), {"uint8": 128}.get(dtype, 0)
    ends = {} if dtype == "float32" else {"scale": 0.1, "zero": zero}
    x = graph.input("x", shape, dtype, **ends)
    inside = [graph.tensor(f"t{i}", shape, scale=0.1, zero=0) for i in range(2)]
    y = graph.tensor("y", shape, dtype, **ends)
    graph.op("QUANTIZE", [x], [inside[0]])
    graph.op("RELU", [inside[0]], [inside[1]])
    graph.op("DEQUANTIZE" if dtype == "float32" else "QUANTIZE", [inside[1]], [y])
    graph.outputs(y)
    return net.finish()


def _scale(tensor: Tensor, factor: float) -> None:
    scales = Quantization.of(factor * s for s in tensor.quantization.scales).scales
    tensor.quantization = replace(tensor.quantization, scales=scales)


@pytest.mark.parametrize("target", ["cortex-m4/cmsis-nn", "cortex-m4/cmsis-nn+lean", "esp32s3"])
def test_plans_for_targets(target: str) -> None:
    on = api.kernels_of(api.load_target(target))
    options = api.PlanOptions(memory=api.MemoryOptions(kernels=on), verify=None)
    made = api.plan(bottleneck(), None, options).data
    assert proof(bottleneck(), made, on).status == "equal"


@pytest.mark.parametrize("sort", SORTS)
def test_the_command_that_proves_thousands(sort: str) -> None:
    found: list[TermsProof] = []
    for seed in range(4):
        SORTS[sort](seed, found.append)
    assert found and {p.status for p in found} == {"equal"}
