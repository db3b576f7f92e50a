"""Contracts of operators that read several operands alike: CONCATENATION, and those that compute
element by element. By loops written out, and on real TFLM."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.models.build import Net
from tests.tflm.contract_shapes import LIBRARIES
from tests.tflm.overlap_trials import (
    Runner,
    concatenation_model,
    elementwise_model,
    op_of,
    random_inputs,
)
from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels import KernelBuild, known_builds
from tflm_planner.tflm.kernels.contracts import input_overlap_contract, replay_safe, replays
from tflm_planner.tflm.kernels.data_movement import ELEMENT_BY_ELEMENT
from tflm_planner.tflm.kernels.libraries.esp_nn.access_orders import EspNnBuild
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE

JOINED = [
    ([(1, 3, 4, 2), (1, 3, 4, 5)], 3),
    ([(1, 3, 4, 5), (1, 3, 4, 2), (1, 3, 4, 1)], 3),
    ([(2, 3, 2, 2), (2, 1, 2, 2)], 1),
    ([(1, 4, 3, 2), (1, 2, 3, 2), (1, 1, 3, 2)], 1),
    ([(1, 5, 2, 3), (1, 5, 4, 3)], -2),
]
CASES = [(parts, axis, place) for parts, axis in JOINED for place in range(len(parts))]
SIZES = {"int8": 1, "int16": 2, "float32": 4}


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as found:
        yield found


def joins(parts: list[tuple[int, ...]], axis: int, place: int, distance: int) -> bool:
    """Whether CONCATENATION, copy by copy, reads what its operand at `place` held; a memcpy must
    not overlap itself. The result begins at 0."""
    runs = int(np.prod(parts[0][: axis % len(parts[0])]))
    sizes = [int(np.prod(shape)) // runs for shape in parts]
    memory = {distance + i: i for i in range(sizes[place] * runs)}
    end = 0
    for run in range(runs):
        for number, size in enumerate(sizes):
            if number == place:
                start = distance + run * size
                if abs(start - end) < size:
                    return False
                if [memory.get(start + i) for i in range(size)] != [
                    *range(run * size, (run + 1) * size)
                ]:
                    return False
            memory |= {end + i: -1 for i in range(size)}
            end += size
    return True


@LIBRARIES
@pytest.mark.parametrize(("parts", "axis", "place"), CASES, ids=str)
def test_a_part_is_copied_before_others_reach_it(
    parts: list[tuple[int, ...]], axis: int, place: int, library: KernelBuild
) -> None:
    op = op_of(concatenation_model(parts, axis, place))
    operand, size = op.operands()[place], op.outputs[0].nbytes
    distances = range(-operand.nbytes - 1, size + 2)
    (replay,) = replays(op, operand, library)
    safe = [joins(parts, axis, place, d) for d in distances]
    assert [replay.safe(d) for d in distances] == safe
    allowed = list(input_overlap_contract(op, library))
    assert all(t.operand is operand for t in allowed)
    assert len(allowed) == (-(-replay.smallest() // 16) * 16 < -(-size // 16) * 16)
    for overlap in allowed:
        assert 0 <= overlap.low - replay.smallest() < 16


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize(("parts", "axis", "place"), CASES, ids=str)
@pytest.mark.mostly_slow(fast=6)
def test_the_wheel_joins_as_the_replay_foretells(
    parts: list[tuple[int, ...]], axis: int, place: int, dtype: str, runner: Runner
) -> None:
    """Where a part overlaps itself alone, the C library may keep its bytes, which is not to be
    relied upon."""
    size = SIZES[dtype]
    stock = concatenation_model(parts, axis, place, dtype)
    planned = concatenation_model(parts, axis, place, dtype, planned=True)
    op = op_of(stock)
    distances = range(-op.operands()[place].nbytes - size, op.outputs[0].nbytes + 2 * size, size)
    found = runner.safe_distances(stock, planned, random_inputs(parts[place], size, 4), distances)
    (replay,) = replays(op, op.operands()[place], REFERENCE)
    safe = [replay.safe(d) for d in distances]
    assert all(kept for kept, trusted in zip(found, safe, strict=True) if trusted)
    assert not all(found) or (axis == 1 and place == 0), "the first part of a single run"


SHAPE = (1, 3, 5, 4)
ELEMENTWISE = [
    *((kind, other) for kind in ("ADD", "MUL", "SUB") for other in (SHAPE, (1, 1, 1, 4), (1,))),
    *((kind, None) for kind in sorted(ELEMENT_BY_ELEMENT - {"ADD", "MUL", "SUB", "QUANTIZE"})),
]


@pytest.mark.parametrize(("kind", "other"), ELEMENTWISE, ids=str)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_elements_are_read_before_the_place_below_is_written(
    kind: str, other: tuple[int, ...] | None, dtype: str, runner: Runner
) -> None:
    size = SIZES[dtype]
    stock = elementwise_model(kind, SHAPE, other, dtype)
    planned = elementwise_model(kind, SHAPE, other, dtype, planned=True)
    op = op_of(stock)
    operand = op.operands()[0]
    distances = range(-operand.nbytes - size, operand.nbytes + 2 * size, size)
    found = runner.safe_distances(stock, planned, random_inputs(SHAPE, size, 4), distances)
    (replay,) = replays(op, operand, REFERENCE)
    assert found == [replay.safe(d) for d in distances]
    for library in known_builds():
        lows = {t.low for t in input_overlap_contract(op, library)}
        assert lows == (set() if isinstance(library, EspNnBuild) else {0}), library.name


def test_numbers_of_one_type_are_quantised_anew_likewise(runner: Runner) -> None:
    stock = elementwise_model("QUANTIZE", SHAPE, None)
    planned = elementwise_model("QUANTIZE", SHAPE, None, planned=True)
    op = op_of(stock)
    distances = range(-61, 62)
    found = runner.safe_distances(stock, planned, random_inputs(SHAPE, 1, 4), distances)
    (replay,) = replays(op, op.operands()[0], REFERENCE)
    assert found == [replay.safe(d) for d in distances]


def _sum(first: tuple[int, ...], second: tuple[int, ...] | None, kind: str = "ADD") -> Op:
    """An operator of two inputs; the same one twice without a second shape."""
    net = Net()
    graph = net.graph()
    a = graph.input("a", first, scale=0.1)
    b = a if second is None else graph.input("b", second, scale=0.1)
    y = graph.tensor("y", first, scale=0.2)
    graph.op(kind, [a, b], [y], f"{kind.capitalize()}Options")
    graph.outputs(y)
    return op_of(net.finish())


def test_the_result_may_trail_either_operand() -> None:
    op = _sum(SHAPE, SHAPE)
    a, b = op.operands()
    assert [(t.operand, t.low) for t in input_overlap_contract(op, REFERENCE)] == [(a, 0), (b, 0)]
    assert all(replay_safe(op, t, REFERENCE, d) for t in (a, b) for d in (0, 16, 48))
    assert not any(replay_safe(op, t, REFERENCE, -16) for t in (a, b))
    assert len(list(input_overlap_contract(_sum(SHAPE, None), REFERENCE))) == 1


def test_a_broadcast_operand_is_read_again() -> None:
    op = _sum(SHAPE, (1, 1, 1, 4))
    assert [t.operand for t in input_overlap_contract(op, REFERENCE)] == [op.operands()[0]]
    assert not replay_safe(op, op.operands()[1], REFERENCE, 0)


def test_an_operand_that_is_joined_twice_is_kept_apart() -> None:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 3, 4, 2), scale=0.1)
    y = graph.tensor("y", (1, 3, 4, 4), scale=0.1)
    graph.op("CONCATENATION", [x, x], [y], "ConcatenationOptions", axis=3)
    graph.outputs(y)
    assert not list(input_overlap_contract(op_of(net.finish()), REFERENCE))
