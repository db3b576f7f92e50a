"""Contracts of operators that move or pad rows: never a distance that corrupts, by loops written
out."""

import math
from itertools import product

import pytest

from tests.tflm.contract_shapes import LIBRARIES
from tests.tflm.kernel_loops import (
    smallest_safe,
)
from tests.tflm.overlap_trials import (
    gather_model,
    op_of,
    pad_model,
)
from tflm_planner.tflm.kernels import KernelBuild, known_builds
from tflm_planner.tflm.kernels.contracts import (
    input_overlap_contract,
    replay_safe,
    replays,
)
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE
from tflm_planner.tflm.target_kernels import kernels_of


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
        (replay,) = replays(op, op.operands()[0], library)
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
            assert replay_safe(op, op.operands()[0], library, input_overlap.low)
            assert not replay_safe(op, op.operands()[0], library, input_overlap.low - size)


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
    (replay,) = replays(op, op.operands()[0], library)
    safe = [gathered(rows, height, row, d) for d in distances]
    assert [replay.safe(d) for d in distances] == safe
    allowed = list(input_overlap_contract(op, library))
    assert any(overlap.low == (1 - first) * row for overlap in allowed)
    above = [(overlap.low, overlap.high) for overlap in allowed if overlap.high < 0]
    assert above == [(-height * row, -rows.stop * row)][: rows.stop < height]
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
