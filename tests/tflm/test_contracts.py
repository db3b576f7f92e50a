"""Contracts: never a distance that corrupts, by loops written out and by real Cortex-M kernels."""

import math
import random
from itertools import product

import numpy as np
import pytest

from tests.models.build import Net
from tests.tflm import measured_overlaps
from tests.tflm.kernel_loops import (
    Shape,
    columns,
    depthwise_mve,
    kernel,
    safe_distances,
    smallest_safe,
)
from tests.tflm.overlap_trials import (
    gather_model,
    model_of,
    op_of,
    pad_model,
    transpose_conv_model,
)
from tflm_planner.memory.problem import UNBOUNDED
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.ops import sharings
from tflm_planner.ops.window import Window, window_of
from tflm_planner.tflm.kernels import KernelBuild, known_builds
from tflm_planner.tflm.kernels.access_order import ELEMENTWISE
from tflm_planner.tflm.kernels.cmsis_nn.access_orders import BUILD_2022, DSP, MVE, PLAIN
from tflm_planner.tflm.kernels.conservative import UNKNOWN
from tflm_planner.tflm.kernels.contracts import (
    bound,
    exact_bound,
    input_overlap_contract,
    replay_safe,
    replays,
)
from tflm_planner.tflm.kernels.contracts.bounds import first_needed
from tflm_planner.tflm.kernels.reference import REFERENCE
from tflm_planner.tflm.target_kernels import kernels_of

LIBRARIES = pytest.mark.parametrize("library", known_builds(), ids=lambda library: library.name)


def grid() -> list[Shape]:
    """Small shapes that meet every branch of every kernel."""
    found = [
        Shape("conv", 5, 4, ci, co, k, k, s, s, same=same)
        for ci, co, k, s, same in product((2, 3), (2, 3, 5), (1, 3), (1, 2), (True, False))
    ]
    found += [
        Shape(kind, 5, 5, c, c, k, k, s, s, same=same)
        for kind, c, k, s, same in product(
            ("depthwise", "max", "average"), (3, 6), (2, 3), (1, 2), (True, False)
        )
    ]
    found += [
        Shape("conv", 4, 5, 4, 4, 3, 3, groups=2),
        Shape("conv", 5, 4, 4, 8, 3, 2, groups=4),
        Shape("conv", 3, 3, 6, 6, 1, 1, groups=3),
        Shape("conv", 6, 5, 3, 3, 3, 3, dh=2, dw=2),
        Shape("conv", 4, 3, 3, 2, dh=2, dw=2),
        Shape("conv", 5, 7, 3, 4, 5, 3, 2, 3),
        Shape("conv", 1, 13, 4, 4, 1, 5),
        Shape("conv", 1, 14, 4, 3, 1, 3, sw=2),
        Shape("conv", 1, 13, 4, 5, 1, 4, same=False),
        Shape("conv", 1, 3, 4, 4, 1, 5),
        Shape("conv", 1, 11, 4, 5, 1, 5),
        Shape("conv", 1, 11, 4, 2, 1, 7),
        Shape("conv", 1, 12, 4, 3, 1, 4),
        Shape("conv", 2, 2, 3, 1),
        Shape("conv", 3, 3, 2, 1),
        Shape("conv", 3, 4, 3, 3, 3, 3, batch=2),
        Shape("conv", 3, 3, 2, 3, batch=2),
        Shape("conv", 1, 5, 3, 5, sh=2, batch=3),
        Shape("conv", 1, 4, 5, 2, sh=2, batch=4),
        Shape("conv", 1, 1, 4, 3, sh=2, batch=5),
        Shape("conv", 5, 4, 3, 4, sh=2, sw=2, batch=2),
        Shape("conv", 4, 4, 2, 3, 3, 3, element=2),
        Shape("conv", 4, 4, 3, 3, element=2),
        Shape("conv", 4, 4, 2, 3, 3, 3, element=4),
        Shape("depthwise", 4, 4, 3, 6, 3, 3),
        Shape("depthwise", 4, 4, 2, 8, 3, 3),
        Shape("depthwise", 5, 4, 3, 3, 3, 3, dh=2, dw=2),
        Shape("depthwise", 5, 4, 1, 4, 3, 3),
        Shape("depthwise", 2, 3, 130, 130, 3, 3),
        Shape("depthwise", 4, 4, 3, 3, 3, 3, element=2),
        Shape("depthwise", 3, 3, 3, 3, 3, 3, batch=2),
        Shape("max", 4, 4, 3, 3, 3, 3, element=2),
        Shape("average", 4, 4, 18, 18, 3, 3),
        Shape("average", 4, 4, 9, 9, 3, 3, element=2),
        Shape("max", 3, 3, 3, 3, 2, 2, batch=2),
    ]
    return found


SHAPES = grid()


def really_safe(shape: Shape, library: KernelBuild, distances: range) -> list[bool]:
    """By the loops written out; both of them, where the compiler chooses."""
    safe = safe_distances(shape, kernel(shape, library.name), distances)
    if shape.kind == "depthwise" and shape.ci == 1 and library is MVE:
        other = depthwise_mve if shape.co == 1 else lambda s: kernel(s, "cmsis-nn")
        others = safe_distances(shape, other(shape), distances)
        safe = [a and b for a, b in zip(safe, others, strict=True)]
    return safe


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
    limit = {REFERENCE: 1, MVE: 5}.get(library, 3)
    assert max(slack) <= limit, "a bound asks for many pixels more than its kernel needs"


@LIBRARIES
@pytest.mark.slow
def test_package_replay_equals_the_loops_at_every_distance(library: KernelBuild) -> None:
    """Above and below: wherever the two tensors share a byte."""
    compared = 0
    for shape in SHAPES:
        op = op_of(model_of(shape))
        found = replays(op, library)
        if not found:
            continue
        distances = range(-shape.bytes_in - 1, shape.bytes_out + 2)
        safe = really_safe(shape, library, distances)
        mine = [all(replay.safe(d) for replay in found) for d in distances]
        assert mine == safe, shape
        assert max(replay.smallest() for replay in found) == smallest_safe(safe, distances)
        assert (
            replay_safe(op, library, shape.bytes_out // 2)
            == safe[distances.index(shape.bytes_out // 2)]
        )
        compared += 1
    assert compared > 60


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
        assert replay_safe(op, library, distance) == expected, (shape, distance)
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
            assert replay_safe(op, library, input_overlap.low)
            assert input_overlap.high in (input_overlap.low, UNBOUNDED)
    for input_overlap in input_overlap_contract(op, *known_builds()):
        assert all(replay_safe(op, library, input_overlap.low) for library in known_builds())
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
    assert [(t.low, t.high) for t in input_overlap_contract(grouped, DSP)] == [(128, 128)]
    assert not list(input_overlap_contract(grouped, BUILD_2022))
    assert not list(input_overlap_contract(grouped, *known_builds()))
    wide = op_of(model_of(Shape("depthwise", 8, 8, 136, 136, 3, 3)))
    assert [t.low for t in input_overlap_contract(wide, DSP)] == [1360]
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
        assert not replay_safe(op, REFERENCE, 64), change
        assert replay_safe(op, REFERENCE, 1 << 20), "disjoint is always right"


def test_an_output_cut_off_below_is_a_window() -> None:
    model = read_model(model_of(Shape("conv", 6, 6, 8, 8, 3, 3)))
    op = model.main.ops[0]
    op.outputs[0].shape = (1, 4, 6, 8)
    (input_overlap,) = input_overlap_contract(op, REFERENCE)
    assert replay_safe(op, REFERENCE, input_overlap.low)


def pad_events(shape: tuple[int, ...], pads: list[list[int]], by_rows: bool) -> list[bool]:
    """Safe distances of PAD, by its loops; a memcpy must not overlap itself."""
    larger = [n + sum(p) for n, p in zip(shape, pads, strict=True)]
    inside = [
        all(a <= i < a + n for i, n, (a, _) in zip(index, shape, pads, strict=True))
        for index in product(*map(range, larger))
    ]
    places = [i for i, data in enumerate(inside) if data]
    row = shape[-1] * (shape[-2] if len(shape) > 1 and pads[-1] == [0, 0] else 1)
    size, safe = len(places), []
    for d in range(len(inside) + 1):
        memory: dict[int, int] = {d + i: i for i in range(size)}
        fine, source = True, 0
        for at, data in enumerate(inside):
            if data:
                fine = fine and memory.get(d + source) == source
                source += 1
            memory[at] = source - 1 if data and at == d + source - 1 else -1
        if by_rows:
            for start in range(0, size, row):
                target = places[start]
                fine = fine and abs(start + d - target) >= row
        safe.append(fine)
    return safe


@pytest.mark.parametrize(
    ("shape", "pads"),
    [
        ((1, 3, 4, 2), [[0, 0], [1, 1], [1, 1], [0, 0]]),
        ((1, 3, 4, 2), [[0, 0], [0, 1], [0, 1], [0, 0]]),
        ((1, 3, 3, 2), [[0, 0], [2, 0], [0, 0], [0, 1]]),
        ((2, 2, 3, 2), [[0, 1], [1, 0], [1, 2], [0, 0]]),
        ((5, 4), [[1, 2], [0, 3]]),
    ],
)
def test_padding(shape: tuple[int, ...], pads: list[list[int]]) -> None:
    op = op_of(pad_model(shape, pads))
    for library in known_builds():
        safe = pad_events(shape, pads, library is not REFERENCE)
        least = smallest_safe(safe, range(len(safe)))
        allowed = [t.low for t in input_overlap_contract(op, library)]
        assert all(all(safe[low:]) for low in allowed)
        (replay,) = replays(op, library)
        assert replay.smallest() >= least
        if library is REFERENCE:
            assert [replay.safe(d) for d in range(len(safe))] == safe
            assert allowed == [math.ceil(least / 16) * 16] or least > len(safe) - 16


def test_padding_of_wide_elements() -> None:
    for dtype, size in (("int16", 2), ("float32", 4)):
        op = op_of(pad_model((1, 4, 4, 8), [[0, 0], [1, 1], [1, 1], [0, 0]], dtype))
        for library in known_builds():
            (input_overlap,) = input_overlap_contract(op, library)
            assert input_overlap.low == (6 * 6 - 7 - 16) * 8 * size
            assert replay_safe(op, library, input_overlap.low)
            assert not replay_safe(op, library, input_overlap.low - size)


def gathered(rows: range, height: int, row: int, distance: int) -> bool:
    """Whether GATHER, row by row, reads what the operand held; a memcpy must not overlap itself."""
    memory = {distance + i: i for i in range(height * row)}  # the result begins at 0
    for place, taken in enumerate(rows):
        if abs(distance + (taken - place) * row) < row:
            return False
        read = [memory.get(distance + taken * row + i) for i in range(row)]
        if read != [taken * row + i for i in range(row)]:
            return False
        memory |= {place * row + i: -1 for i in range(row)}
    return True


@LIBRARIES
@pytest.mark.parametrize("first", range(4))
def test_gather_may_move_rows_down_or_above_all_that_are_read(
    first: int, library: KernelBuild
) -> None:
    height, row, rows = 6, 16, range(first, first + 3)
    op = op_of(gather_model((1, height, 4, 4), rows))
    distances = range(-height * row, 3 * row + 1)
    (replay,) = replays(op, library)
    safe = [gathered(rows, height, row, d) for d in distances]
    assert [replay.safe(d) for d in distances] == safe
    allowed = list(input_overlap_contract(op, library))
    assert any(overlap.low == (1 - first) * row for overlap in allowed)
    for overlap in allowed:
        assert all(safe[distances.index(d)] for d in distances if overlap.low <= d <= overlap.high)


def test_gathers_of_many_rows_are_told_apart() -> None:
    """A contract is remembered by the operator's form, to which all positions belong."""
    kernels = kernels_of()
    lows = [
        {o.low for o in kernels.input_overlaps_of(op_of(gather_model((1, 200, 1, 16), rows)))}
        for rows in (range(100), range(50, 150), range(0, 200, 2))
    ]
    assert lows[0] and lows[1] and lows[0] != lows[1] and not lows[2]


def test_transpose_conv_sums_in_scratch() -> None:
    op = op_of(transpose_conv_model(4, (6, 4)))
    (input_overlap,) = input_overlap_contract(op, REFERENCE)
    assert input_overlap.low <= -4 * 4 * 6 and input_overlap.high == UNBOUNDED
    assert input_overlap.operand is op.inputs[2]
    assert all(replay_safe(op, REFERENCE, d) for d in range(-96, 256))
    assert not any(
        list(input_overlap_contract(op, library)) for library in (BUILD_2022, DSP, MVE, PLAIN)
    )


@pytest.mark.slow
def test_whole_layers_are_replayed() -> None:
    op = op_of(model_of(Shape("depthwise", 112, 112, 32, 32, 3, 3)))
    for library in known_builds():
        (input_overlap,) = input_overlap_contract(op, library)
        assert input_overlap.low == 114 * 32
        assert replay_safe(op, library, input_overlap.low)
        assert not replay_safe(op, library, 112 * 32)


# --- what real kernels did on an emulated Cortex-M ------------------------------------------


@pytest.mark.slow
def test_contracts_hold_on_real_cortex_m_kernels() -> None:
    checked = 0
    for record in measured_overlaps.records():
        shape = measured_overlaps.SHAPES.get(record["op"])
        if shape is None:
            continue
        assert (shape.bytes_in, shape.bytes_out) == (record["n_in"], record["n_out"])
        library, op = measured_overlaps.TARGETS[record["target"]], op_of(model_of(shape))
        measured, where = record["min_safe_D"], f"{record['op']} on {record['target']}"
        allowed = exact_bound(op, library)
        if allowed is not None and allowed.step == 1:
            assert allowed.least >= measured, where
        found = replays(op, library)
        if found:
            smallest = max(replay.smallest() for replay in found)
            one_input = shape.kind == "depthwise" and shape.ci == 1
            assert smallest == measured or (one_input and smallest >= measured), where
            for distance in record["safe_below"]:
                assert all(replay.safe(distance) for replay in found), (where, distance)
        checked += 1
    assert checked >= 125


def test_other_operators_on_real_cortex_m_kernels() -> None:
    for record in measured_overlaps.records():
        if record["op"] == "add":
            assert record["D0_safe"] and list(sharings(_addition()))
            assert not list(
                input_overlap_contract(_addition(), measured_overlaps.TARGETS[record["target"]])
            )


def _addition() -> Op:
    net = Net()
    graph = net.graph()
    a, b = (graph.input(name, (1, 6, 6, 16), scale=0.1) for name in "ab")
    y = graph.tensor("y", (1, 6, 6, 16), scale=0.2)
    graph.op("ADD", [a, b], [y], "AddOptions")
    graph.outputs(y)
    return op_of(net.finish())


def test_grouped_passes_never_leave_their_channels() -> None:
    """Multiples of a pixel are safe in grouped kernels, whatever the size of groups of pixels."""
    for size in (2, 4):
        shape = Shape("conv", 5, 5, 4, 4, 3, 3, groups=2)
        safe = safe_distances(shape, columns(shape, size), range(shape.bytes_out))
        least = exact_bound(op_of(model_of(shape)), DSP)
        assert least is not None and least.step == 4
        assert all(safe[d] for d in range(least.least, shape.bytes_out, 4))
        assert not all(safe[least.least :])


def test_random_inputs_reach_every_value() -> None:
    """The sweeps prove nothing with inputs that hide a lost byte."""
    from tests.tflm.overlap_trials import random_inputs

    values = random_inputs((1, 40, 40, 8), 1, 2)
    assert int(values[0].max()) - int(values[0].min()) == 255 and not np.array_equal(
        values[0], values[1]
    )


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
            channels=(chance.randint(1, 9), chance.randint(1, 9)), kernel=(kernel[0], kernel[1]),
            stride=(stride[0], stride[1]), dilation=(1, 1), pad=(pad[0], pad[1]), groups=1,
            element=chance.choice((1, 2, 4)),
        )  # fmt: skip
        pixels = np.arange(window.batch * math.prod(output))
        ends = [
            min(max(int(end * window.channels[1] - need * window.channels[0]), 0)
                * window.element, window.output_bytes)
            for end, need in zip(pixels + 1, first_needed(window), strict=True)
        ]  # fmt: skip
        found = bound(window, ELEMENTWISE)
        assert found is not None and found.least == max(ends), window
        tried += 1
    assert tried > 5000
