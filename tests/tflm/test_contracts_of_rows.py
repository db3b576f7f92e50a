"""Contracts of kernels that read rows of their operand several times: FULLY_CONNECTED, resized
images and TRANSPOSE_CONV. By loops written out, and on real TFLM."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from tests.tflm.contract_shapes import LIBRARIES
from tests.tflm.kernel_loops import Event
from tests.tflm.overlap_trials import (
    Runner,
    fully_connected_model,
    op_of,
    random_inputs,
    resize_model,
    transpose_conv_model,
)
from tflm_planner.memory.problem import UNBOUNDED
from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels import KernelBuild
from tflm_planner.tflm.kernels.contracts import input_overlap_contract, replays
from tflm_planner.tflm.kernels.libraries.cmsis_nn.access_orders import (
    BUILD_2022,
    DSP,
    MVE,
    PLAIN,
)
from tflm_planner.tflm.kernels.libraries.cmsis_nn.faulty_sums import fault_of_transposed
from tflm_planner.tflm.kernels.libraries.esp_nn.access_orders import EspNnBuild
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE

SIZES = {"int8": 1, "int16": 2, "float32": 4}
CMSIS_NN = (BUILD_2022, DSP, MVE, PLAIN)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as found:
        yield found


def safe_at(events: list[Event], distances: range) -> list[bool]:
    """For each distance, whether no byte is read after the result was written over it."""
    last_read = {byte: time for time, (writes, byte) in enumerate(events) if not writes}
    first_write = {byte: time for time, (writes, byte) in reversed([*enumerate(events)]) if writes}
    never = len(events)
    return [
        all(first_write.get(byte + d, never) > time for byte, time in last_read.items())
        for d in distances
    ]


def bytes_of(place: int, size: int, *, writes: bool) -> Iterator[Event]:
    """Reads or writes of the element at `place`, of `size` bytes."""
    return ((writes, place * size + i) for i in range(size))


def only_contract(op: Op, library: KernelBuild) -> int | None:
    """The smallest distance that is permitted; None if none is."""
    lows = [t.low for t in input_overlap_contract(op, library)]
    assert len(lows) <= 1
    return lows[0] if lows else None


def check(op: Op, library: KernelBuild, safe: list[bool], distances: range) -> None:
    """The replay is what the loops say, and the contract the first multiple of 16 from which on all
    distances are safe."""
    (operand,) = (t for t in op.operands() if not t.is_constant)
    (replay,) = replays(op, operand, library)
    assert [replay.safe(d) for d in distances] == safe
    last_bad = max((d for d, fine in zip(distances, safe, strict=True) if not fine), default=-1)
    low = -(-(last_bad + 1) // 16) * 16
    worth = low < -(-op.outputs[0].nbytes // 16) * 16
    assert only_contract(op, library) == (low if worth else None)


# --- FULLY_CONNECTED ---

ROWS = [(1, 5, 3), (4, 32, 16), (5, 3, 7), (3, 6, 6), (7, 2, 1), (6, 17, 33)]


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize(("rows", "depth", "made"), ROWS)
def test_a_row_is_needed_until_its_last_result(
    rows: int, depth: int, made: int, dtype: str, runner: Runner
) -> None:
    size = SIZES[dtype]
    model = fully_connected_model(rows, depth, made, dtype)
    op = op_of(model)
    events: list[Event] = []
    for row, result in product(range(rows), range(made)):
        for i in range(depth):
            events += bytes_of(row * depth + i, size, writes=False)
        events += bytes_of(row * made + result, size, writes=True)
    distances = range(-rows * depth * size - size, rows * made * size + 2 * size, size)
    (replay,) = replays(op, op.operands()[0], REFERENCE)
    safe = safe_at(events, distances)
    assert [replay.safe(d) for d in distances] == safe
    planned = fully_connected_model(rows, depth, made, dtype, planned=True)
    found = runner.safe_distances(model, planned, random_inputs((rows, depth), size, 6), distances)
    assert all(kept for kept, trusted in zip(found, safe, strict=True) if trusted)
    assert rows * made == 1 or not all(found)
    low = only_contract(op, REFERENCE)
    assert low is None or all(replay.safe(d) for d in range(low, rows * made * size, size))


@pytest.mark.parametrize(("rank", "depth"), [(2, 8), (3, 8), (3, 6), (4, 8)])
def test_rows_of_several_axes_run_as_a_convolution(rank: int, depth: int) -> None:
    """fully_connected.cc of CMSIS-NN: a 1x1 convolution, which reads rows again, for results of
    more than two axes if the depth is a multiple of four; ESP-NN's vectors were not read."""
    op = op_of(fully_connected_model(6, depth, 4, rank=rank))
    low = only_contract(op, REFERENCE)
    assert low is not None
    as_convolution = rank > 2 and depth % 4 == 0
    assert [only_contract(op, b) for b in (DSP, MVE, PLAIN)] == [
        None if as_convolution else low
    ] * 3
    assert only_contract(op, BUILD_2022) == low


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_rows_of_other_types(dtype: str) -> None:
    """float32 runs on the reference kernel; that of int16 was not read."""
    op = op_of(fully_connected_model(6, 8, 4, dtype))
    low = only_contract(op, REFERENCE)
    assert low is not None
    assert only_contract(op, DSP) == (low if dtype == "float32" else None)


# --- resized images ---

FORMS = [
    ((1, 3, 4, 2), (6, 8)),
    ((1, 2, 3, 5), (7, 5)),
    ((2, 3, 2, 3), (6, 4)),
    ((1, 6, 8, 2), (3, 4)),
    ((1, 5, 4, 1), (2, 9)),
    ((1, 1, 1, 4), (3, 3)),
]
RESIZED = [
    (kind, shape, size, corners, dtype)
    for kind, dtypes in (("RESIZE_NEAREST_NEIGHBOR", SIZES), ("RESIZE_BILINEAR", ("int8",)))
    for (shape, size), corners in product(FORMS, ("", "align", "half"))
    for dtype in dtypes
] + [
    ("RESIZE_BILINEAR", (1, 2, 4, 3), (4, 8), corners, "float32") for corners in ("", "half")
]  # in halves and quarters, so that nothing rounds


def nearest_row(row: int, size: int, made: int, corners: str) -> int:
    """GetNearestNeighbor of resize_nearest_neighbor.h."""
    f = np.float32
    align = corners == "align"
    scale = f(size - 1) / f(made - 1) if align and made > 1 else f(size) / f(made)
    place = float((f(row) + f(0.5 if corners == "half" else 0)) * scale)
    return max(0, min(int(np.floor(place + 0.5)) if align else int(np.floor(place)), size - 1))


def bilinear_rows(row: int, size: int, made: int, corners: str) -> tuple[int, int]:
    """ComputeInterpolationValuesInteger of resize_bilinear.h, which rounds towards zero."""
    align = corners == "align" and made > 1
    of, to = (size - 1, made - 1) if align else (size, made)
    scale = (1024 * of + to // 2) // to
    place = row * scale + (scale // 2 - 512 if corners == "half" else 0)
    return max(int(place / 1024), 0), min(int((place + 1023) / 1024), size - 1)


def resized_events(
    kind: str, shape: tuple[int, ...], size: tuple[int, int], corners: str, element: int
) -> Iterator[Event]:
    """The loops of both kernels; a memcpy of a pixel must not overlap itself, so that it is read
    after it is written too."""
    batch, height, width, channels = shape
    for b, y, x in product(range(batch), *map(range, size)):
        target = (b * size[0] + y) * size[1] + x
        if kind == "RESIZE_NEAREST_NEIGHBOR":
            i, j = nearest_row(y, height, size[0], corners), nearest_row(x, width, size[1], corners)
            source = (b * height + i) * width + j
            pixel = channels * element
            yield from bytes_of(source, pixel, writes=False)
            yield from bytes_of(target, pixel, writes=True)
            yield from bytes_of(source, pixel, writes=False)
            continue
        rows = bilinear_rows(y, height, size[0], corners)
        columns = bilinear_rows(x, width, size[1], corners)
        for c in range(channels):
            for i, j in product(rows, columns):
                source = ((b * height + i) * width + j) * channels + c
                yield from bytes_of(source, element, writes=False)
            yield from bytes_of(target * channels + c, element, writes=True)


@pytest.mark.parametrize(("kind", "shape", "size", "corners", "dtype"), RESIZED, ids=str)
@pytest.mark.mostly_slow(fast=12)
def test_a_pixel_is_left_behind_once_no_later_one_reads_it(
    kind: str,
    shape: tuple[int, ...],
    size: tuple[int, int],
    corners: str,
    dtype: str,
    runner: Runner,
) -> None:
    element = SIZES[dtype]
    model = resize_model(kind, shape, size, corners, dtype)
    op = op_of(model)
    read, made = op.operands()[0].nbytes, op.outputs[0].nbytes
    distances = range(-read - element, made + 2 * element, element)
    safe = safe_at([*resized_events(kind, shape, size, corners, element)], distances)
    (replay,) = replays(op, op.operands()[0], REFERENCE)
    assert [replay.safe(d) for d in distances] == safe
    by_byte = range(-read - 1, made + 2)
    by_bytes = safe_at([*resized_events(kind, shape, size, corners, element)], by_byte)
    for library in (REFERENCE, *CMSIS_NN):
        check(op, library, by_bytes, by_byte)
    planned = resize_model(kind, shape, size, corners, dtype, planned=True)
    found = runner.safe_distances(model, planned, random_inputs(shape, element, 4), distances)
    assert all(kept for kept, trusted in zip(found, safe, strict=True) if trusted)
    assert not all(found)


def test_numbers_that_round_promise_nothing() -> None:
    """Compilers may round the places of a float image differently."""
    exact = op_of(resize_model("RESIZE_BILINEAR", (1, 4, 4, 8), (8, 8), dtype="float32"))
    rounded = op_of(resize_model("RESIZE_BILINEAR", (1, 3, 3, 8), (7, 7), dtype="float32"))
    assert only_contract(exact, REFERENCE) == (64 - 16) * 32
    assert only_contract(rounded, REFERENCE) is None


# --- TRANSPOSE_CONV ---

TRANSPOSED = [
    (side, channels, kernel, stride, same)
    for side, channels in ((4, (6, 4)), (3, (20, 3)), (5, (2, 9)), (1, (4, 4)))
    for kernel, stride, same in (
        (3, 2, True),
        (2, 2, True),
        (4, 2, False),
        (3, 1, True),
        (5, 3, True),
    )
]


class Transposed(NamedTuple):
    """A TRANSPOSE_CONV of square images in plain numbers."""

    side: int
    made: int
    ci: int
    co: int
    kernel: int
    stride: int
    pad: int


def rolling_rows(t: Transposed) -> Iterator[Event]:
    """arm_transpose_conv_s8: a row is read, then `stride` rows of sums are written."""
    row, written = t.made * t.co, 0
    for j in range(t.side):
        yield from bytes_of(j, t.side * t.ci, writes=False)
        if t.pad <= j * t.stride:
            for _ in range(t.stride):
                if written < t.made:  # a kernel smaller than its stride leaves less
                    yield from bytes_of(written, row, writes=True)
                written += 1
    while written < t.made:
        yield from bytes_of(written, row, writes=True)
        written += 1


def columns(t: Transposed, group: int) -> Iterator[Event]:
    """arm_convolve_s8 with upscale_dims: columns are read, and after `group` of them written."""
    waiting: list[int] = []
    above = t.kernel - 1 - t.pad
    for y, x in product(range(t.made), repeat=2):
        for ky, kx in product(range(t.kernel), repeat=2):
            i, j = y - above + ky, x - above + kx
            inside = min(i, j) >= 0 and max(i, j) < t.side * t.stride
            if inside and i % t.stride == j % t.stride == 0:
                source = i // t.stride * t.side + j // t.stride
                yield from bytes_of(source, t.ci, writes=False)
        waiting.append(y * t.made + x)
        if len(waiting) == group:
            for pixel in waiting:
                yield from bytes_of(pixel, t.co, writes=True)
            waiting = []
    for pixel in waiting:
        yield from bytes_of(pixel, t.co, writes=True)


@pytest.mark.parametrize(("side", "channels", "kernel", "stride", "same"), TRANSPOSED, ids=str)
def test_rows_are_written_once_no_row_adds_to_them(
    side: int, channels: tuple[int, int], kernel: int, stride: int, same: bool
) -> None:
    op = op_of(transpose_conv_model(side, channels, kernel, stride, same=same))
    if fault_of_transposed(op):
        assert not any(only_contract(op, library) for library in CMSIS_NN)
        return
    pad = max(0, kernel - stride) // 2 if same else 0
    size = side * stride if same else (side - 1) * stride + kernel
    transposed = Transposed(side, size, *channels, kernel, stride, pad)
    operand, made = op.operands()[2], op.outputs[0].nbytes
    distances = range(-operand.nbytes - 1, made + 2)
    safe = [
        safe_at([*events], distances)
        for events in (
            rolling_rows(transposed),
            columns(transposed, 2),
            columns(transposed, 4),
        )
    ]
    for library in CMSIS_NN:
        (replay,) = replays(op, operand, library)
        trusted = [replay.safe(d) for d in distances]
        for found in safe:
            assert all(fine for fine, trust in zip(found, trusted, strict=True) if trust)
        low = only_contract(op, library)
        assert low is None or all(trusted[distances.index(low) :])


@LIBRARIES
def test_what_a_row_of_sums_is_worth(library: KernelBuild) -> None:
    """On Cortex-M, all but a row of the operand lies in the result; the reference kernel, which
    ESP-NN takes too, permits every distance."""
    op = op_of(transpose_conv_model(16, (32, 16)))
    read, made = op.operands()[2].nbytes, op.outputs[0].nbytes
    (overlap,) = input_overlap_contract(op, library)
    assert overlap.operand is op.inputs[2] and overlap.high == UNBOUNDED
    if library == REFERENCE or isinstance(library, EspNnBuild):
        assert overlap.low <= -read
    else:
        assert overlap.low == made - read + read // 16
