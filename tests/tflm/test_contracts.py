"""Contracts: never a distance that corrupts, by loops written out."""

import math
import random

import numpy as np
import pytest

from tests.tflm.contract_shapes import LIBRARIES, SHAPES, really_safe
from tests.tflm.kernel_loops import (
    Shape,
    columns,
    safe_distances,
    smallest_safe,
)
from tests.tflm.overlap_trials import (
    model_of,
    op_of,
)
from tflm_planner.memory.problem import UNBOUNDED
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import Window, window_of
from tflm_planner.tflm.kernels import KernelBuild, known_builds
from tflm_planner.tflm.kernels.access_order import ELEMENTWISE
from tflm_planner.tflm.kernels.conservative import UNKNOWN
from tflm_planner.tflm.kernels.contracts import (
    bound,
    exact_bound,
    input_overlap_contract,
    replay_safe,
    replays,
)
from tflm_planner.tflm.kernels.contracts.bounds import first_needed_pixels
from tflm_planner.tflm.kernels.libraries.cmsis_nn.access_orders import BUILD_2022, DSP, MVE, PLAIN
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.mostly_slow(fast=20)
def test_geometry_is_that_of_tflm(shape: Shape) -> None:
    window = window_of(op_of(model_of(shape)))
    assert window is not None
    assert window.output == (shape.ho, shape.wo)
    assert window.pad == (shape.ph, shape.pw)
    assert (window.input_bytes, window.output_bytes) == (shape.bytes_in, shape.bytes_out)
    assert window.groups == (shape.groups if shape.kind == "conv" else shape.ci)


@LIBRARIES
@pytest.mark.slow
def test_no_allowed_distance_corrupts(library: KernelBuild) -> None:
    """All distances, byte by byte, that the bound allows before it is rounded to 16."""
    slack: list[float] = []
    for shape in SHAPES:
        allowed = exact_bound(op_of(model_of(shape)), library)
        if allowed is None:
            continue
        distances = range(shape.bytes_out + 16)
        safe = really_safe(shape, library, distances)
        first = -(-allowed.least // allowed.step) * allowed.step
        bad = [d for d in distances[first :: allowed.step] if not safe[d]]
        assert not bad, f"{shape}: {allowed} allows {bad[:5]}"
        if allowed.step == 1 and (shape.dh, shape.dw) == (1, 1):
            over = allowed.least - smallest_safe(safe, distances)
            slack.append(over / (shape.co * shape.element))
    limit = {REFERENCE: 1, MVE: 5}.get(library, 2)
    assert max(slack) <= limit, "a bound asks for many pixels more than its kernel needs"


@LIBRARIES
@pytest.mark.slow
def test_package_replay_equals_the_loops_at_every_distance(library: KernelBuild) -> None:
    """Above and below: wherever the two tensors share a byte."""
    compared = 0
    for shape in SHAPES:
        op = op_of(model_of(shape))
        found = replays(op, op.operands()[0], library)
        if not found:
            continue
        distances = range(-shape.bytes_in - 1, shape.bytes_out + 2)
        safe = really_safe(shape, library, distances)
        mine = [all(replay.safe(d) for replay in found) for d in distances]
        assert mine == safe, shape
        assert max(replay.smallest() for replay in found) == smallest_safe(safe, distances)
        assert (
            replay_safe(op, op.operands()[0], library, shape.bytes_out // 2)
            == safe[distances.index(shape.bytes_out // 2)]
        )
        compared += 1
    assert compared > 60


@pytest.mark.parametrize("size", [(4, 5), (5, 4), (6, 3)], ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (1, 3)], ids=str)
def test_a_max_pool_reads_the_rest_of_its_window_when_it_has_written(
    size: tuple[int, int], strides: tuple[int, int]
) -> None:
    """arm_max_pool copies the first pixel of a window, and compares the others with the result."""
    pools = [
        Shape("max", *size, 3, 3, 3, 2, *strides, same=same, batch=batch)
        for same in (True, False)
        for batch in (1, 2)
    ]
    for shape in pools:
        op, distances = op_of(model_of(shape)), range(-shape.bytes_in - 1, shape.bytes_out + 2)
        found = replays(op, op.operands()[0], DSP)
        safe = really_safe(shape, DSP, distances)
        assert [all(replay.safe(d) for replay in found) for d in distances] == safe, shape


def test_kernels_that_nobody_has_read_overlap_nowhere() -> None:
    shape = Shape("max", 4, 4, 3, 3, 2, 2)
    op, below, above = op_of(model_of(shape)), shape.bytes_out, -shape.bytes_in
    distances = (below, below - 1, above, above + 1)
    assert [replay_safe(op, op.operands()[0], UNKNOWN, d) for d in distances] == [
        True,
        False,
        True,
        False,
    ]


def test_groups_of_four_start_at_multiples_of_four() -> None:
    op = op_of(model_of(Shape("conv", 5, 5, 2, 5)))
    allowed = exact_bound(op, MVE)
    assert allowed is not None and allowed.least == 24 * 5 - 20 * 2


def random_rows(seed: int) -> Shape:
    """A 1x1 convolution in rows: several images, strides that leave rows and columns out."""
    draw = random.Random(seed)
    height, width = draw.choice([(1, draw.randint(1, 9)), (draw.randint(2, 4), draw.randint(2, 4))])
    ci, co = draw.randint(1, 9), draw.randint(1, 9)
    steps = draw.choice([(2, 1), (2, 2), (1, 2), (3, 1)])
    batch, same = draw.randint(1, 5), draw.random() < 0.5
    return Shape("conv", height, width, ci, co, sh=steps[0], sw=steps[1], batch=batch, same=same)


@LIBRARIES
@pytest.mark.parametrize("seed", range(20))
def test_rows_of_all_images_are_counted(library: KernelBuild, seed: int) -> None:
    """Replay, bound and written-out loops at every distance; row by row, the bound is exact."""
    shape = random_rows(seed)
    op, distances = op_of(model_of(shape)), range(shape.bytes_out + 2)
    allowed, safe = exact_bound(op, library), really_safe(shape, library, distances)
    assert allowed is not None and all(safe[allowed.least :]), shape
    for distance, expected in zip(distances, safe, strict=True):
        assert replay_safe(op, op.operands()[0], library, distance) == expected, (shape, distance)
    if library in (DSP, PLAIN) and shape.co > 3:  # a pass beside another: rows are disjoint
        assert allowed.least - smallest_safe(safe, distances) < shape.co


def test_spelling_in_rows_lets_results_trail_by_a_row() -> None:
    """48 x 48 pixels: none of it as one image, a row of the narrower side as 48 images."""
    whole = op_of(model_of(Shape("conv", 48, 48, 8, 16)))
    rows = op_of(model_of(Shape("conv", 1, 48, 8, 16, sh=2, batch=48)))
    for library in (DSP, PLAIN):
        assert not list(input_overlap_contract(whole, library))
        assert [t.low for t in input_overlap_contract(rows, library)] == [48 * 48 * 8 + 48 * 8]
    assert [t.low for t in input_overlap_contract(rows, MVE)] == [
        t.low for t in input_overlap_contract(whole, MVE)
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.mostly_slow(fast=12)
def test_trails_are_aligned_and_replay(shape: Shape) -> None:
    op = op_of(model_of(shape))
    for library in known_builds():
        for input_overlap in input_overlap_contract(op, library):
            assert input_overlap.low % 16 == 0 and input_overlap.low < shape.bytes_out + 15
            assert replay_safe(op, op.operands()[0], library, input_overlap.low)
            assert input_overlap.high in (input_overlap.low, UNBOUNDED)
    for input_overlap in input_overlap_contract(op, *known_builds()):
        assert all(
            replay_safe(op, op.operands()[0], library, input_overlap.low)
            for library in known_builds()
        )
        assert input_overlap.low == max(
            t.low for library in known_builds() for t in input_overlap_contract(op, library)
        )
    assert not list(input_overlap_contract(op, UNKNOWN))
    assert not list(input_overlap_contract(op, *known_builds(), UNKNOWN))
    assert not list(input_overlap_contract(op))


def test_what_must_be_disjoint() -> None:
    pointwise = op_of(model_of(Shape("conv", 6, 6, 16, 16)))
    assert not list(input_overlap_contract(pointwise, DSP))
    assert not list(input_overlap_contract(pointwise, PLAIN))
    assert [t.low for t in input_overlap_contract(pointwise, REFERENCE)] == [16]
    assert [t.low for t in input_overlap_contract(pointwise, MVE)] == [64]
    grouped = op_of(model_of(Shape("conv", 6, 6, 16, 16, 3, 3, groups=2)))
    assert [(t.low, t.high) for t in input_overlap_contract(grouped, DSP)] == [(112, 112)]
    assert not list(input_overlap_contract(grouped, BUILD_2022))
    assert not list(input_overlap_contract(grouped, *known_builds()))
    wide = op_of(model_of(Shape("depthwise", 8, 8, 136, 136, 3, 3)))
    assert [t.low for t in input_overlap_contract(wide, DSP)] == [1232]
    assert [(t.low, t.high) for t in input_overlap_contract(wide, *known_builds())] == [
        (1360, 1360)
    ]
    last = op_of(model_of(Shape("conv", 4, 4, 8, 64, 4, 4, same=False)))
    assert not list(input_overlap_contract(last, REFERENCE)), "nothing is shared from there on"


def test_int4_filters() -> None:
    plain = op_of(model_of(Shape("conv", 6, 6, 8, 8, 3, 3), packed=True))
    assert all(list(input_overlap_contract(plain, library)) for library in known_builds())
    pointwise = op_of(model_of(Shape("conv", 6, 6, 8, 8), packed=True))
    assert not list(input_overlap_contract(pointwise, MVE))
    assert list(input_overlap_contract(pointwise, REFERENCE))


def test_dynamic_filters_and_odd_forms_are_left_alone() -> None:
    for change in ("filter", "rank", "type", "larger"):
        model = read_model(model_of(Shape("conv", 6, 6, 8, 8, 3, 3)))
        op = model.main.ops[0]
        data, features, _ = op.operands()
        if change == "filter":
            features.buffer.data = None
        elif change == "rank":
            data.shape = (6, 6, 8)
        elif change == "type":
            op.outputs[0].type = features.type + 1
        else:
            op.outputs[0].shape = (1, 7, 6, 8)
        assert window_of(op) is None, change
        assert not any(list(input_overlap_contract(op, library)) for library in known_builds()), (
            change
        )
        assert not replay_safe(op, op.operands()[0], REFERENCE, 64), change
        assert replay_safe(op, op.operands()[0], REFERENCE, 1 << 20), "disjoint is always right"


def test_an_output_cut_off_below_is_a_window() -> None:
    model = read_model(model_of(Shape("conv", 6, 6, 8, 8, 3, 3)))
    op = model.main.ops[0]
    op.outputs[0].shape = (1, 4, 6, 8)
    (input_overlap,) = input_overlap_contract(op, REFERENCE)
    assert replay_safe(op, op.operands()[0], REFERENCE, input_overlap.low)


@pytest.mark.slow
def test_whole_layers_are_replayed() -> None:
    op = op_of(model_of(Shape("depthwise", 112, 112, 32, 32, 3, 3)))
    for library in known_builds():
        (input_overlap,) = input_overlap_contract(op, library)
        assert input_overlap.low == 113 * 32
        assert replay_safe(op, op.operands()[0], library, input_overlap.low)
        assert not replay_safe(op, op.operands()[0], library, 113 * 32 - 16)


def test_grouped_passes_never_leave_their_channels() -> None:
    """Multiples of a pixel are safe in grouped kernels, whatever the size of groups of pixels."""
    for size in (2, 4):
        shape = Shape("conv", 5, 5, 4, 4, 3, 3, groups=2)
        safe = safe_distances(shape, columns(shape, size), range(shape.bytes_out))
        least = exact_bound(op_of(model_of(shape)), DSP)
        assert least is not None and least.step == 4
        assert all(safe[d] for d in range(least.least, shape.bytes_out, 4))
        assert not all(safe[least.least :])


@pytest.mark.slow
def test_the_bound_of_a_kernel_by_pixels_is_the_one_of_all_pixels() -> None:
    chance = random.Random(1)
    tried = 0
    for _ in range(8000):
        output, pad = list[int](), list[int]()
        image, kernel = [chance.randint(1, 9) for _ in "hw"], [chance.randint(1, 5) for _ in "hw"]
        stride, same = [chance.randint(1, 4) for _ in "hw"], chance.random() < 0.5
        for size, reach, step in zip(image, kernel, stride, strict=True):
            computed = -(-(size if same else size - reach + 1) // step)
            output.append(chance.randint(1, max(computed, 1)) if computed > 0 else 0)
            pad.append(max(0, (computed - 1) * step + reach - size) // 2)
        if min(output) < 1:
            continue
        window = Window(
            batch=chance.randint(1, 3), input=(image[0], image[1]), output=(output[0], output[1]),
            channels=(chance.randint(2, 9), chance.randint(1, 9)), kernel=(kernel[0], kernel[1]),
            stride=(stride[0], stride[1]), dilation=(1, 1), pad=(pad[0], pad[1]), groups=1,
            element=chance.choice((1, 2, 4)),
        )  # fmt: skip
        pixels = np.arange(window.batch * math.prod(output))
        ends = [
            min(max(int(end * window.channels[1] - need * window.channels[0]), 0)
                * window.element, window.output_bytes)
            for end, need in zip(pixels + 1, first_needed_pixels(window), strict=True)
        ]  # fmt: skip
        found = bound(window, ELEMENTWISE)
        assert found is not None and found.least == max(ends), window
        tried += 1
    assert tried > 5000
