"""Tiles of output channels save what operators need beside their operands and results: scratch,
and weights that are made of constants at run time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import needs_tflm, published
from tests.models.wide_scratch import bottleneck, dense, upsampled
from tests.short_searches import short_search
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.base import run
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

M4 = api.load_target("cortex-m4/cmsis-nn")
SMALL_M55 = replace(api.load_target("cortex-m55/cmsis-nn"), optimized="size")
SMALL = short_search(600)
"""A few tilings are enough."""
REFERENCE = api.load_target("cortex-m4/reference")


def report_of(data: bytes, target: Target, **permission) -> api.PlanResult:
    memory = api.MemoryOptions(kernels=api.kernels_of(target))
    tiles = api.TilePermission(workers=1, search_budget=SMALL, **permission)
    proof = api.VerifyOptions(inputs=2)
    return api.plan(data, options=api.PlanOptions(memory, tiles, verify=proof)).report


@pytest.mark.parametrize(
    ("data", "position", "target"),
    [
        (dense((64, 32)), 0, SMALL_M55),
        (bottleneck(wide=128), 1, M4),
        (dense((64, 32), "int4"), 0, REFERENCE),
        (upsampled(), 0, M4),
        (upsampled(), 0, REFERENCE),
    ],
    ids=["row sums", "depthwise", "unpacked filter", "reversed filter", "accumulators"],
)
def test_the_scratch_of_a_part_is_that_of_a_tile(
    data: bytes, position: int, target: Target
) -> None:
    """What the estimate takes for it is what a tile that is made asks for."""
    kernels, model = api.kernels_of(target), read_model(data)
    op = model.main.ops[position]
    axis, kind = len(op.outputs[0].shape or ()) - 1, op.kind
    size = (op.outputs[0].shape or ())[axis]
    expected = kernels.part_scratch_of(op, axis, size // 4)
    assert sum(expected or ()) < sum(kernels.scratch_of(op))
    run(model, Regions((TiledRegion((position,), (Split(axis, 4),)),)))
    tiles = [made for made in model.main.ops if made.kind == kind]
    tiles = [made for made in tiles if (made.outputs[0].shape or ())[axis] == size // 4]
    assert len(tiles) == 4
    assert {kernels.scratch_of(made) for made in tiles} == {expected}


def test_bands_of_an_image_keep_the_scratch_of_the_whole() -> None:
    op = read_model(bottleneck(wide=128)).main.ops[1]
    assert api.kernels_of(M4).part_scratch_of(op, 1, 2) is None


@needs_tflm
def test_weights_made_of_a_constant_are_made_a_tile_at_a_time() -> None:
    """Weights of 128 x 64 floats in the arena: 32,768 bytes where they are made at once."""
    found = report_of(dense((128, 64, 16), is_float=True), M4)
    assert found.verified and found.before.arena.head > 128 * 64 * 4
    assert found.after.arena.arena < found.before.arena.arena / 3


@needs_tflm
def test_a_wide_depthwise_convolution_in_channels() -> None:
    """At 4 x 4 pixels its scratch, 2 * 25 bytes a channel, is three times the image."""
    found = report_of(bottleneck(), M4, operators=api.AllowedOperators.ALL)
    plan = next(rung for rung in found.ladder if rung.kind == "plan")
    assert found.verified and plan.arena is not None
    assert found.after.arena.arena < 0.8 * plan.arena


@needs_tflm
def test_row_sums_of_a_wide_layer_in_parts() -> None:
    """Built for size, CMSIS-NN with MVE sums up rows of weights in scratch: a word an output."""
    found = report_of(dense((64, 8, 64, 512)), SMALL_M55)
    assert found.verified
    assert found.after.arena.arena < found.before.arena.arena


@needs_tflm
def test_filters_of_four_bits_are_unpacked_in_parts() -> None:
    """The reference kernels unpack all of a filter into scratch: here 128 x 64 bytes."""
    found = report_of(dense((128, 64, 16), "int4"), REFERENCE)
    assert found.verified and found.terms is not None and found.terms.status == "equal"
    assert found.after.arena.arena < found.before.arena.arena / 2


@pytest.mark.long
@pytest.mark.parametrize("max_slowdown", [1.10, 1.15])
def test_vain_segmentations_end_no_search_where_scratch_is_the_peak(max_slowdown: float) -> None:
    """ResNet8 on an ESP32-S3: the nine segmentations that promise most need more than no tiles."""
    on = api.MemoryOptions(kernels=api.kernels_of(api.load_target("esp32s3/esp-nn-1.2.3")))
    options = api.PlanOptions(on, api.TilePermission(max_slowdown=max_slowdown), verify=None)
    report = api.plan(published("pretrainedResnet_quant.tflite"), None, options).report
    assert report.after.arena.arena <= 67_652
