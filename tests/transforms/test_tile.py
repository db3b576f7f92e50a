"""Tiles of random chains and real models: the same bits on both runtimes, in memory that holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import needs_tflm, published
from tests.model_replay import replay
from tests.models.generator import random_model
from tests.models.strategies import PATIENT
from tests.transforms.random_tiles import random_scheme
from tests.transforms.tiled import (
    KINDS,
    dialect_of,
    quick_differences,
    same_bits,
    tiled,
)
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.model.text import to_text
from tflm_planner.ops.window import CHANNELS, ROWS
from tflm_planner.pipeline import api
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.tile.box_plan import HALOS, Split
from tflm_planner.transforms.tile.boxes import cuts
from tflm_planner.transforms.tile.operator_tiles import BORDERS
from tflm_planner.transforms.tile.tile import Patch, TiledRegion, band


@needs_tflm
@settings(PATIENT, max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(2, 14))
@pytest.mark.slow
def test_tiles_compute_the_same_bits(model: int, scheme: int, steps: int) -> None:
    """Whatever the pass accepts is exact: paddings, strides over kernels, dilation, branches of
    different depth, uneven last tiles, batches, int8, int16 and float."""
    data = random_model(model, steps=steps, kinds=KINDS)
    made, _ = tiled(data, random_scheme(data, scheme))
    assert quick_differences(data, made) == []


@needs_tflm
@settings(PATIENT, max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(2, 12))
@pytest.mark.slow
def test_planned_tiles_replay_and_the_dialect_is_equal(model: int, scheme: int, steps: int) -> None:
    """The planned portable model replays byte by byte; the dialect equals the original on TFLM,
    and each operator that was dropped would have copied every byte onto itself."""
    data = random_model(model, steps=steps, kinds=KINDS)
    made, _ = tiled(data, random_scheme(data, scheme))
    planned = dialect_of(made)
    assert replay(planned.portable) == []
    assert replay(planned.portable, scratch=planned.scratch, dropped=planned.dropped) == []
    assert quick_differences(data, planned.portable) == []
    assert quick_differences(data, planned.dialect, ("TFLM",)) == []


@needs_tflm
@pytest.mark.parametrize("name", ["pretrainedResnet_quant", "vww_96_int8"])
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("halo", HALOS)
@pytest.mark.mostly_slow(fast=1)
def test_published_models_in_bands(halo, border, name):
    data = published(name)
    made, notes = tiled(data, band(0, 7, 3, halo=halo, border=border))
    assert "3 parts of rows" in notes[0]
    assert same_bits(data, made, inputs=2) == []


@needs_tflm
@pytest.mark.slow
def test_patches_and_channels_of_vww():
    data = published("vww_96_int8")
    model = read_model(data)
    assert (
        "3 parts of rows x 3 parts of columns"
        in Regions((Patch(3, 8).region(model.main),)).apply(model)[0]
    )
    assert same_bits(data, write_model(model), inputs=2) == []
    made, _ = tiled(data, TiledRegion((2, 3), (Split(CHANNELS, 3),)))
    assert same_bits(data, made, inputs=2) == []
    assert len(made) < len(data)


def test_two_tiled_operators_as_text():
    data = published("vww_96_int8")
    made, _ = tiled(data, band(2, 3, 2, border="waste"))
    lines = to_text(read_model(made)).splitlines()[3:12]
    assert [line.strip() for line in lines] == [
        "%3: int8[1,26,48,8] 9984B = SLICE(%2, #int32[4], #int32[4])",
        "%4: int8[1,24,48,8] 9216B = SLICE(%2, #int32[4], #int32[4])",
        "%5: int8[1,26,48,16] 19968B = CONV_2D(%3, #int8[16,1,1,8], #int32[16])",
        "%6: int8[1,13,24,16] 4992B = DEPTHWISE_CONV_2D(%5, #int8[1,3,3,16], #int32[16])",
        "%7: int8[1,12,24,16] 4608B = SLICE(%6, #int32[4], #int32[4])",
        "%8: int8[1,24,48,16] 18432B = CONV_2D(%4, #int8[16,1,1,8], #int32[16])",
        "%9: int8[1,12,24,16] 4608B = DEPTHWISE_CONV_2D(%8, #int8[1,3,3,16], #int32[16])",
        "%10: int8[1,24,24,16] 9216B = CONCATENATION(%7, %9)",
        "%11: int8[1,24,24,32] 18432B = CONV_2D(%10, #int8[32,1,1,16], #int32[32])",
    ]


def test_what_cannot_be_tiled_is_said():
    data = published("pretrainedResnet_quant")
    model = read_model(data)
    before = to_text(model)
    notes = Regions(
        (TiledRegion((15,), (Split(1, 2),)), TiledRegion((0, 3), (Split(ROWS, 2),)))
    ).apply(model)
    assert notes[0] == "not tiled: SOFTMAX 'Identity_int8' mixes axis 1"
    assert notes[1] == "not tiled: a path leaves the region and comes back"
    assert to_text(model) == before


@needs_tflm
@pytest.mark.parametrize("halo", HALOS)
@pytest.mark.slow
def test_the_last_band_first(cnn, halo):
    """The same tiles in the other order, with the same bits."""
    scheme = band(0, 1, 4, halo=halo)
    forward, _ = tiled(cnn, scheme)
    backward, _ = tiled(cnn, replace(scheme, backward=True))
    assert quick_differences(cnn, backward) == []

    def bands(data: bytes) -> list[str]:
        ops = read_model(data).main.ops
        return [op.outputs[0].name for op in ops if op.kind == "CONV_2D"]

    assert bands(forward) != bands(backward) and set(bands(forward)) == set(bands(backward))


def test_weights_are_shared_between_bands(cnn):
    made, _ = tiled(cnn, band(0, 1, 4))
    stored = {b.data.tobytes() for b in read_model(made).buffers if b.data is not None}
    weights = {
        t.buffer.data.tobytes()
        for t in read_model(cnn).tensors()
        if t.is_constant and t.nbytes > 100
    }
    assert weights <= stored
    assert sum(len(b) for b in stored) < sum(map(len, weights)) * 1.5 + 4000


def test_views_of_a_living_parent_cost_nothing(cnn):
    """The head of a tiled model is far below the sum of input and its slices."""
    made, _ = tiled(cnn, band(0, 1, 4))
    on = api.kernels_of(api.load_target("x86-64/reference"))
    options = api.MemoryOptions(kernels=on, order="file", time_limit=5.0)
    result = api.plan(made, None, api.PlanOptions(options, verify=None))
    assert replay(result.data) == [] or options.overlap
    assert any("in" in alias for alias in result.report.allocation.aliases)


@pytest.mark.parametrize(
    ("size", "parts", "unit", "expected"),
    [
        (7, 3, 1, [(0, 2), (2, 4), (4, 7)]),
        (3, 5, 1, [(0, 1), (1, 2), (2, 3)]),
        (10, 2, 4, [(0, 4), (4, 10)]),
    ],
)
def test_cuts(size, parts, unit, expected):
    assert cuts(size, parts, unit) == expected
    assert np.sum([b - a for a, b in expected]) == size
