"""Stripped files: what goes, what stays, who still runs them, and what they compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import CNN, needs_tflm
from tests.models import handmade  # noqa: F401  (fills the registry)
from tests.models.build import Net
from tests.models.generator import random_model
from tests.models.handmade import MODELS
from tests.models.registry import conv, is_refused, noise
from tests.tflm.wheel import Wheel
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions, Stripping
from tflm_planner.tflm.lean.pool import POOL_METADATA
from tflm_planner.transforms.attach_plan import PLAN_METADATA
from tflm_planner.transforms.base import run
from tflm_planner.transforms.minify import KeepOneZeroPoint, Minify
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.verification.verdict import EQUAL

IMAGE = (1, 6, 6, 4)


def two_heads() -> bytes:
    """A convolution whose bias a FULLY_CONNECTED adds too, and one whose bias is its own."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", IMAGE, scale=0.05, zero=3)
    bias = graph.constant("shared", noise((4,), -900, 900), scale=np.float32(0.05 / 800))
    rows = graph.constant("rows", noise((4, 144)), "int8", scale=np.float32(1 / 800))
    kernel = graph.constant("kernel", noise((4, 3, 3, 4)), "int8", scale=np.float32(1 / 800))
    y = graph.tensor("y", IMAGE, scale=0.05, zero=3)
    strides = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    graph.op("CONV_2D", [x, kernel, bias], [y], "Conv2DOptions", version=3, **strides)
    z = conv(graph, y, IMAGE, "own")
    flat = graph.tensor("flat", (1, 4), scale=0.05, zero=3)
    graph.op("FULLY_CONNECTED", [z, rows, bias], [flat], "FullyConnectedOptions", version=4)
    graph.outputs(flat)
    net.metadata("min_runtime_version", b"1.14.0")
    net.metadata("reduced_precision_support", b"fp16_or_fp32_accfp32")
    return net.finish()


def planned(data: bytes, strip: Stripping, target: str = "x86-64/reference") -> api.PlanResult:
    on = api.kernels_of(api.load_target(target))
    memory = MemoryOptions(strip=strip, kernels=on, exact_effort=0.05)
    return api.plan(data, None, api.PlanOptions(memory, verify=api.VerifyOptions(inputs=3)))


def stripped(data: bytes) -> Model:
    model = read_model(data)
    run(model, Minify())
    return read_model(write_model(model))


def by_place(model: Model, op: int, operand: int) -> Tensor:
    tensor = model.main.ops[op].inputs[operand]
    assert tensor is not None
    return tensor


def test_what_goes_and_what_stays() -> None:
    model = stripped(two_heads())
    assert [m.name for m in model.metadata] == ["reduced_precision_support"]
    assert model.raw.description is None
    names = {t.name for t in model.tensors()}
    assert names == {"", "x", "flat"}
    assert len(by_place(model, 0, 2).quantization.scales) == 1, "FULLY_CONNECTED reads it"
    assert by_place(model, 1, 2).quantization.is_absent
    assert len(by_place(model, 1, 1).quantization.scales) == 4
    empty = {t.buffer for t in model.tensors() if not t.is_constant}
    assert empty == {model.buffers[0]}


def test_nothing_else_changes() -> None:
    """What is left computes by the same bytes: operators, options, shapes, types, constants."""
    before, after = read_model(CNN.read_bytes()), stripped(CNN.read_bytes())
    for a, b in zip(before.tensors(), after.tensors(), strict=True):
        assert (a.shape, a.type, a.is_variable) == (b.shape, b.type, b.is_variable)
        data = [None if t.buffer.data is None else t.buffer.data.tobytes() for t in (a, b)]
        assert data[0] == data[1] or not any(data)
    for one, other in zip(before.ops(), after.ops(), strict=True):
        assert one.kind == other.kind
        assert one.options.key() == other.options.key()


PLANNED = [n for n, m in MODELS.items() if m.runs_on_litert and not is_refused(n)]


@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.mostly_slow(fast=6)
def test_hand_made_models_stay_equal(name: str) -> None:
    kinds: tuple[Stripping, ...] = ("nothing", "unread", "unread by TFLM")
    kinds = kinds if MODELS[name].runs_on_tflm else kinds[:2]
    results = [planned(MODELS[name].make(), kind) for kind in kinds]
    assert all(r.report.verified for r in results)
    sizes = [len(r.data) for r in results]
    assert sizes == sorted(sizes, reverse=True)
    arenas = [r.report.after.arena.arena for r in results]
    assert arenas == sorted(arenas, reverse=True), "without quantisation Prepare needs no more"
    for result in results:
        host = result.report.after.host
        assert host.measured_head in (None, host.predicted_head)
        assert host.measured_tail in (None, host.predicted_tail)
        again = write_model(read_model(result.data))
        assert write_model(read_model(again)) == again


@needs_tflm
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.mostly_slow(fast=1)
def test_random_models_stay_equal(seed: int) -> None:
    assert planned(random_model(seed), "unread by TFLM").report.verified


@needs_tflm
@pytest.mark.slow
def test_squeezed_files_are_for_tflm_alone() -> None:
    data = CNN.read_bytes()
    result = planned(data, "unread by TFLM")
    (note,) = [n for n in result.report.notes if n.startswith("stripped")]
    assert "LiteRT" in note and "--portable" in note
    checks = {c.runtime: c.status for c in result.report.checks}
    assert checks == {
        "LiteRT, portable twin": EQUAL,
        "TFLM, portable twin": EQUAL,
        "TFLM": EQUAL,
    }
    wheel = api.load_target("x86-64/wheel")
    verdict = api.check_equal(data, result.data, target=wheel)
    assert verdict.proved
    elsewhere = api.check_equal(data, result.data)  # other kernels read in another order
    assert elsewhere.refuted and "with the kernels of cortex-m4/cmsis-nn" in elsewhere.terms.detail
    assert {c.runtime for c in verdict.checks if c.status == EQUAL} == {"TFLM"}
    portable = planned(data, "unread")
    assert len(result.data) < len(portable.data) < len(planned(data, "nothing").data)
    assert all(c.status == EQUAL for c in portable.report.checks)


@needs_tflm
@pytest.mark.slow
def test_the_smallest_arena_is_the_predicted_one() -> None:
    for strip in ("unread", "unread by TFLM"):
        data = planned(CNN.read_bytes(), strip).data
        arena = api.arena(data, api.load_target("x86-64/wheel"))
        host = Wheel(data)
        try:
            assert host.run(arena.arena) is not None
            assert host.run(arena.arena - 16) is None
        finally:
            host.close()


@needs_tflm
@pytest.mark.slow
def test_a_squeezed_file_is_planned_and_tiled_again(tmp_path: Path) -> None:
    """Filters with one zero point for many scales are cut into channels as others are."""
    data = planned(CNN.read_bytes(), "unread by TFLM").data
    assert planned(data, "nothing").report.verified
    scheme = api.TiledRegion(ops=(0,), splits=(Split(3, 2),))
    on = api.kernels_of(api.load_target("x86-64/reference"))
    tiles = api.TilePermission(by_hand=(scheme,), operators=api.AllowedOperators.ALL)
    options = api.PlanOptions(MemoryOptions(kernels=on, strip="unread by TFLM"), tiles)
    assert api.plan(data, None, options).report.verified


def test_kernels_that_nobody_has_read_keep_their_quantisation() -> None:
    kept = read_model(planned(two_heads(), "unread by TFLM", "cortex-m4/unknown").data)
    assert not by_place(kept, 1, 2).quantization.is_absent
    assert len(by_place(kept, 1, 1).quantization.zero_points) == 4


@pytest.mark.slow
def test_lean_files_keep_their_pool_and_their_plan() -> None:
    lean = planned(CNN.read_bytes(), "unread by TFLM", "cortex-m4/cmsis-nn+lean")
    names = {m.name for m in read_model(lean.data).metadata}
    assert names == {POOL_METADATA, PLAN_METADATA}
    full = planned(CNN.read_bytes(), "nothing", "cortex-m4/cmsis-nn+lean")
    assert lean.report.after.arena.arena <= full.report.after.arena.arena
    assert len(lean.data) < len(full.data)


@pytest.mark.slow
def test_reports_still_know_the_names() -> None:
    result = planned(CNN.read_bytes(), "unread by TFLM")
    plain = planned(CNN.read_bytes(), "nothing")
    assert result.report.after.map == plain.report.after.map
    assert result.report.allocation.aliases == plain.report.allocation.aliases


def test_zero_points_that_differ_stay() -> None:
    model = read_model(CNN.read_bytes())
    (first, *_) = [op for op in model.ops() if op.kind == "CONV_2D"]
    assert first.inputs[1] is not None
    filters = first.inputs[1]
    different = tuple(range(len(filters.quantization.zero_points)))
    filters.quantization = replace(filters.quantization, zero_points=different)
    run(model, KeepOneZeroPoint())
    assert len(different) > 1 and filters.quantization.zero_points == different
