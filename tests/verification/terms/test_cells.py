"""Bytes of an arena: an element is read as itself only if all of its bytes are there, in order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verification.terms.proofs import arena
from tflm_planner.ops.terms.field import LANES
from tflm_planner.ops.terms.values import Symbols, Values

COUNT = 4
TYPES = ("int8", "int16", "int32", "int64", "float32")
WIDE = TYPES[1:]
SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "float32": 4}


def named(symbols: Symbols, count: int, name: str) -> Values:
    return symbols.of_name((count,), name)


def unequal(a: Values, b: Values) -> list[int]:
    """Which elements differ."""
    assert not a.known and not b.known
    return np.flatnonzero((a.data != b.data).any(0)).tolist()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("spoilt", [0, 1, 3, 7])
def test_an_element_of_which_one_byte_is_written_is_another(dtype: str, spoilt: int) -> None:
    size = SIZES[dtype]
    at = spoilt % (size * COUNT)
    store, (whole, byte), symbols = arena((dtype, COUNT, 0), ("int8", 1, at))
    values = named(symbols, COUNT, "whole")
    store.write(whole, values)
    assert unequal(store.read(whole), values) == []
    store.write(byte, named(symbols, 1, "byte"))
    assert unequal(store.read(whole), values) == [at // size]


@pytest.mark.parametrize("dtype", WIDE)
def test_halves_of_two_elements_are_none_of_them(dtype: str) -> None:
    size = SIZES[dtype]
    store, (whole, shifted), symbols = arena((dtype, COUNT, 0), (dtype, COUNT - 1, size // 2))
    values = named(symbols, COUNT, "whole")
    store.write(whole, values)
    torn = store.read(shifted)
    assert unequal(torn, values.at((slice(COUNT - 1),))) == [*range(COUNT - 1)]
    assert unequal(torn, values.at((slice(1, COUNT),))) == [*range(COUNT - 1)]


@pytest.mark.parametrize("dtype", WIDE)
def test_halves_that_come_together_again_are_the_element(dtype: str) -> None:
    """Two copies of the same tensor, of each of which a half is left."""
    size = SIZES[dtype]
    store, (first, half, second), symbols = arena(
        (dtype, 1, 0), ("int8", size // 2, 0), (dtype, 1, 16)
    )
    values = named(symbols, 1, "one")
    store.write(first, values)
    store.write(second, values)
    store.write(half, named(symbols, size // 2, "other"))
    assert unequal(store.read(first), values) == [0]
    store.write(first, values)
    assert unequal(store.read(first), values) == []


@pytest.mark.parametrize("written", TYPES)
@pytest.mark.parametrize("read", TYPES)
def test_elements_are_read_as_the_type_that_was_written(written: str, read: str) -> None:
    count = 8 // SIZES[read]
    made = 8 // SIZES[written]
    store, (source, same_place), symbols = arena((written, made, 0), (read, count, 0))
    values = named(symbols, made, "one")
    store.write(source, values)
    found = store.read(same_place)
    if SIZES[read] == SIZES[written]:  # bytes have no type
        assert unequal(found, values) == []
    else:
        shared = min(count, values.size)
        ours, theirs = (v.at((slice(shared),)) for v in (found, values))
        assert unequal(ours, theirs) == [*range(shared)]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_known_numbers_are_known_while_all_their_bytes_are_there(dtype: str) -> None:
    store, (whole, byte, other), symbols = arena(
        (dtype, COUNT, 0), ("int8", 1, SIZES[dtype]), ("int16", 2, 0)
    )
    numbers = Values(np.array([3, -1, 0, 7]).astype(dtype), True)
    store.write(whole, numbers)
    found = store.read(whole)
    assert found.known and found.data.dtype == numbers.data.dtype
    assert found.data.tolist() == [3, -1, 0, 7]
    assert not store.read(other).known, "of another type"
    store.write(byte, Values(np.zeros(1, np.int8), True))
    lost = store.read(whole)
    assert not lost.known
    assert unequal(lost, Values(symbols.elements(numbers), False)) == [1]


def test_a_store_that_two_branches_left_otherwise_depends_on_the_choice() -> None:
    """What both wrote alike is itself; what they did not is neither."""
    store, (alike, apart, wide), symbols = arena(
        ("int8", COUNT, 0), ("int8", COUNT, 16), ("int16", COUNT, 32)
    )
    same, ones, others = (named(symbols, COUNT, n) for n in ("same", "ones", "others"))
    choice = symbols.of_name((), "choice").data.reshape(LANES)
    store.write(alike, same)
    before = store.snapshot()
    store.write(apart, ones)
    store.write(wide, ones)
    then = store.snapshot()
    store.restore(before)
    store.write(apart, others)
    store.merge(choice, then, ())
    assert unequal(store.read(alike), same) == []
    for branch in (ones, others):
        assert unequal(store.read(apart), branch) == [*range(COUNT)]
    assert unequal(store.read(wide), ones) == [*range(COUNT)], "one branch did not write it"


def test_a_copy_that_overlaps_itself_is_lost_and_one_onto_itself_is_none() -> None:
    for distance, moved, kept in ((0, 0, True), (2, COUNT, False), (COUNT, COUNT, True)):
        store, (source, target), symbols = arena(("int8", COUNT, 0), ("int8", COUNT, distance))
        values = named(symbols, COUNT, "values")
        store.write(source, values)
        assert store.copy(source, target) == moved
        assert (unequal(store.read(target), values) == []) == kept


def test_rows_that_are_appended_lie_behind_each_other() -> None:
    store, (whole,), symbols = arena(("int16", COUNT, 16))
    values = named(symbols, COUNT, "rows")
    for first in (2, 0):
        store.write_some(whole, first, values.at((slice(first, first + 2),)))
    assert unequal(store.read(whole), values) == []
    store.poison(whole, 4)
    assert unequal(store.read(whole), values) == [2, 3]
