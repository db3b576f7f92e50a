"""QUANTIZE, DEQUANTIZE and CAST from type to type: at which distances, by the loop written out, by
the contract, by the replay and in stock TFLM."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import TYPES
from tests.tflm.kernel_loops import smallest_safe
from tests.tflm.overlap_trials import RETYPED, Runner, inputs_of_type, op_of, retyping_model
from tflm_planner.memory.problem import UNBOUNDED
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.kernels import known_builds
from tflm_planner.tflm.kernels.conservative import UNKNOWN
from tflm_planner.tflm.kernels.contracts import (
    input_overlap_contract,
    replay_safe,
    replays,
)
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as found:
        yield found


@pytest.mark.parametrize(
    ("kind", "read", "to", "low"),
    [
        ("QUANTIZE", "uint8", "int8", 0),
        ("QUANTIZE", "int8", "uint8", 0),
        ("QUANTIZE", "float32", "int8", 0),
        ("QUANTIZE", "int16", "int8", 0),
        ("QUANTIZE", "int8", "int16", 1024),
        ("QUANTIZE", "int8", "int32", 3072),
        ("DEQUANTIZE", "int8", "float32", 3072),
        ("DEQUANTIZE", "uint8", "float32", 3072),
        ("CAST", "bool", "int8", 0),
        ("CAST", "int32", "int8", 0),
        ("CAST", "int8", "float32", 3072),
    ],
)
def test_results_of_another_type(kind: str, read: str, to: str, low: int) -> None:
    """In place where they are no wider; else the operand lies at their end."""
    op = op_of(retyping_model(kind, read, to, (1, 8, 8, 16)))
    for library in known_builds():
        assert [(t.low, t.high) for t in input_overlap_contract(op, library)] == [(low, UNBOUNDED)]
        assert replay_safe(op, op.operands()[0], library, low)
        assert replay_safe(op, op.operands()[0], library, low + 16)
        assert not replay_safe(op, op.operands()[0], library, low - 16)
    assert [t.low for t in input_overlap_contract(op, *known_builds())] == [low]
    assert not list(input_overlap_contract(op, UNKNOWN))
    assert not replay_safe(op, op.operands()[0], UNKNOWN, low)


@pytest.mark.slow
def test_results_of_another_type_at_every_distance() -> None:
    """By the loop written out, where one of the two types is a character."""
    for kind, read, to in RETYPED:
        op = op_of(retyping_model(kind, read, to, (3, 7)))
        known, input_overlaps = (
            replays(op, op.operands()[0], REFERENCE),
            list(input_overlap_contract(op, *known_builds())),
        )
        if not {read, to} & {"int8", "uint8"}:
            assert not known and not input_overlaps, (
                "compilers may read one behind writes of the other"
            )
            continue
        wide, made = op.inputs[0].nbytes // 21, op.outputs[0].nbytes // 21
        distances = range(-22 * wide, 22 * made)
        safe = [element_by_element(21, wide, made, d) for d in distances]
        assert [known[0].safe(d) for d in distances] == safe
        for input_overlap in input_overlaps:
            assert all(safe[distances.index(input_overlap.low) :])


def element_by_element(count: int, wide: int, made: int, distance: int) -> bool:
    """Whether every element of `wide` bytes is whole when it is read, with the result, of `made`
    bytes an element, `distance` bytes below."""
    start = max(-distance, 0)
    memory = {start + distance + i: i for i in range(count * wide)}
    for i in range(count):
        if any(memory[start + distance + b] != b for b in range(i * wide, (i + 1) * wide)):
            return False
        memory.update(dict.fromkeys(range(start + i * made, start + (i + 1) * made), -1))
    return True


def test_odd_forms_of_a_change_of_type_are_left_alone() -> None:
    for change in ("constant", "shape", "type", "equal", "operands"):
        model = read_model(retyping_model("DEQUANTIZE", "int8", "float32", (1, 64)))
        op = model.main.ops[0]
        data, result = op.operands()[0], op.outputs[0]
        assert list(input_overlap_contract(op, *known_builds()))
        if change == "constant":
            data.buffer.data = np.zeros(64, np.uint8)
        elif change == "shape":
            result.shape = (1, 128)
        elif change == "type":
            result.type = TYPES["int64"]
        elif change == "equal":
            result.type = data.type
        else:
            op.inputs.append(data)
        assert not list(input_overlap_contract(op, *known_builds())), change
        assert not replays(op, op.operands()[0], REFERENCE), change


@needs_tflm
@pytest.mark.parametrize("shape", [(1,), (1, 37)], ids=str)
@pytest.mark.parametrize(("kind", "read", "to"), RETYPED)
@pytest.mark.mostly_slow(fast=6)
def test_from_type_to_type(
    kind: str, read: str, to: str, shape: tuple[int, ...], runner: Runner
) -> None:
    """All distances: what is allowed is right, and right down to the smallest one allowed.

    A kernel may read fewer bytes of an element than it has (an int8 from the lowest byte of an
    int32), so that it is right at more distances above its operand than the replay knows of."""
    stock, inputs = retyping_model(kind, read, to, shape), inputs_of_type(shape, read, 4)
    op = op_of(stock)
    distances = range(-op.inputs[0].nbytes - 1, op.outputs[0].nbytes + 2)
    planned = retyping_model(kind, read, to, shape, planned=True)
    found = runner.safe_distances(stock, planned, inputs, distances)
    smallest = smallest_safe(found, distances)
    known = replays(op, op.operands()[0], REFERENCE)
    input_overlaps = list(input_overlap_contract(op, REFERENCE))
    if "int8" not in (read, to) and "uint8" not in (read, to):
        assert not known and not input_overlaps
        return
    said = [known[0].safe(d) for d in distances]
    assert all(right for right, safe in zip(found, said, strict=True) if safe)
    first = distances.index(0)
    assert said[first:] == found[first:]
    assert known[0].smallest() == smallest
    for input_overlap in input_overlaps:
        assert smallest <= input_overlap.low < smallest + 16 and input_overlap.high >= distances[-1]
    if len(shape) > 1:
        assert input_overlaps or op.outputs[0].nbytes < 16
        assert len(np.unique(runner.outputs(stock, inputs)[0])) > (1 if read == "bool" else 8)
