"""Writes that are kept back: whoever reads finds what lies there if each is put there at once."""

from __future__ import annotations

import random
import weakref
from typing import Any

import numpy as np
import pytest

from tests.verification.terms.proofs import arena
from tflm_planner.model.ir import Tensor
from tflm_planner.ops.terms.field import LANES
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import DTYPES, Symbols, Values
from tflm_planner.verification.terms.arena_cells import MOST_MEMORY, MOST_WRITES, ArenaCells
from tflm_planner.verification.terms.memory import ArenaStore

TYPES = ("int8", "int16", "int32", "int64", "float32", "uint8", "bool")
BYTE = np.dtype(np.int8)


def cells(count: int) -> tuple[ArenaCells, Mixer, Symbols]:
    """So many, which hold rubbish; what mixes, and what names."""
    symbols = Symbols(mixer := Mixer())
    return ArenaCells(count, mixer, symbols), mixer, symbols


# --- what is kept back shows nowhere ---


def random_tensors(rng: random.Random) -> list[tuple[str, int, int]]:
    """(type, elements, offset): one over all of the arena, and others anywhere in it."""
    found = [("int8", 160, 0)]
    for _ in range(rng.randint(2, 9)):
        dtype = rng.choice(TYPES)
        size = np.dtype(DTYPES[dtype]).itemsize
        count = rng.randint(1, 48 // size)
        found.append((dtype, count, 2 * rng.randint(0, (160 - count * size) // 2)))
    return found


def some_values(tensor: Tensor, rng: random.Random, symbols: Symbols) -> Values:
    """Numbers, of the tensor's type as a rule, or elements with a name."""
    shape = tensor.shape or ()
    if rng.random() < 0.5:
        return symbols.of_name(shape, rng.randint(0, 9))
    kind = DTYPES[tensor.type_name] if rng.random() < 0.8 else np.int64
    return Values(np.array([rng.randint(0, 1) for _ in range(tensor.elements)], kind), True)


def act(store: ArenaStore, tensors: list[Tensor], rng: random.Random) -> Values | None:
    """Something that happens in an arena; what is read, if something is."""
    tensor = rng.choice(tensors)
    alike = [t for t in tensors if t.nbytes == tensor.nbytes]
    what = rng.choice(["write", "write", "write", "read", "read", "read", "copy", "poison", "keep"])
    if what == "write":
        store.write(tensor, some_values(tensor, rng, store.symbols))
    elif what == "read":
        return store.read(tensor)
    elif what == "copy":
        store.copy(tensor, rng.choice(alike))
    elif what == "poison":
        store.poison(tensor, rng.randint(0, tensor.nbytes - 1))
    else:
        before = store.snapshot()
        store.write(tensor, some_values(tensor, rng, store.symbols))
        if rng.random() < 0.5:
            store.restore(before)
    return None


@pytest.mark.parametrize("seed", range(40))
def test_nobody_sees_that_writes_are_kept_back(seed: int) -> None:
    """The same happens in two arenas, of which one puts each write into its cells at once."""
    tensors = random_tensors(random.Random(seed))
    (kept, of_kept, _), (at_once, of_other, _) = arena(*tensors), arena(*tensors)
    at_once.room_in(of_other[0])
    one, other = random.Random(seed), random.Random(seed)
    reads = 0
    for _ in range(120):
        found, wanted = act(kept, of_kept, one), act(at_once, of_other, other)
        assert (found is None) == (wanted is None)
        if found is not None and wanted is not None:
            assert found.is_same_as(wanted)
            reads += 1
    assert reads > 20
    for mine, theirs in zip(of_kept, of_other, strict=True):
        assert kept.read(mine).is_same_as(at_once.read(theirs))


# --- what is read without a look ---


def test_what_lies_there_as_it_was_written_is_read_without_a_look() -> None:
    there, mixer, symbols = cells(64)
    values = symbols.of_name((16,), "x")
    there.write(slice(16, 32), values, BYTE)
    there.copy(slice(16, 32), slice(48, 64))
    there.write(slice(32, 48), symbols.of_name((16,), "beside"), BYTE)
    made = mixer.made
    assert there.written(slice(16, 32), BYTE) is values
    assert there.written(slice(48, 64), BYTE) is values
    assert mixer.made == made, "not even the rubbish around it was made"


@pytest.mark.parametrize("over", [slice(0, 17), slice(31, 40), slice(20, 24), slice(0, 64)])
def test_what_somebody_wrote_over_is_not_read_as_it_was(over: slice) -> None:
    there, _, symbols = cells(64)
    there.write(slice(16, 32), symbols.of_name((16,), "x"), BYTE)
    there.write(over, symbols.of_name((over.stop - over.start,), "y"), BYTE)
    assert there.written(slice(16, 32), BYTE) is None


@pytest.mark.parametrize("part", [slice(16, 31), slice(17, 32), slice(16, 33), slice(15, 32)])
def test_other_bytes_than_were_written_take_a_look(part: slice) -> None:
    there, _, symbols = cells(64)
    there.write(slice(16, 32), symbols.of_name((16,), "x"), BYTE)
    assert there.written(part, BYTE) is None


def test_numbers_are_those_of_their_type_alone() -> None:
    """Four bytes that are an int32 are four of an int8 too, and half an int64: no numbers then."""
    there, _, symbols = cells(64)
    numbers = Values(np.arange(4, dtype=np.int32), True)
    there.write(slice(0, 16), numbers, np.dtype(np.int32))
    assert there.written(slice(0, 16), np.dtype(np.int32)) is numbers
    for other in (np.int8, np.uint32, np.float32, np.int64):
        assert there.written(slice(0, 16), np.dtype(other)) is None
    there.write(slice(0, 16), numbers, np.dtype(np.float32))
    read = there.written(slice(0, 16), np.dtype(np.float32))
    assert read is not None and not read.known
    assert (read.data == symbols.of_numbers(numbers.data)).all()


# --- how much is kept back ---


def test_only_so_many_writes_are_kept_back() -> None:
    """So that none is looked for among thousands; the oldest are read from the cells."""
    there, _, symbols = cells(2 * MOST_WRITES)
    written = [symbols.of_name((1,), i) for i in range(2 * MOST_WRITES)]
    for at, values in enumerate(written):
        there.write(slice(at, at + 1), values, BYTE)
    as_written = [there.written(slice(at, at + 1), BYTE) for at in range(2 * MOST_WRITES)]
    assert as_written == [*[None] * MOST_WRITES, *written[MOST_WRITES:]]
    everything = np.concatenate([v.data for v in written], 1)
    assert (there.look_at(slice(0, 2 * MOST_WRITES)).element == everything).all()


def test_what_is_written_over_counts_no_more() -> None:
    """As in a loop, which writes to the same bytes at each turn."""
    there, _, symbols = cells(64)
    values = symbols.of_name((16,), "x")
    there.write(slice(0, 16), values, BYTE)
    for turn in range(2 * MOST_WRITES):
        there.write(slice(32, 48), symbols.of_name((16,), turn), BYTE)
    assert there.written(slice(0, 16), BYTE) is values


@pytest.mark.parametrize("share", [1, 64], ids=["whole arrays", "parts of arrays"])
def test_only_so_much_memory_is_kept(share: int) -> None:
    """Three arrays of which two are allowed; of each only a part may be written."""
    size = MOST_MEMORY // (4 * LANES * 2) // share * share
    there, _, _ = cells(4 * size)
    arrays: list[weakref.ref[np.ndarray[Any, Any]]] = []
    wanted: list[np.ndarray[Any, Any]] = []
    for i in range(3):
        whole = np.full((LANES, size), i, np.uint32)
        part = whole[:, : size // share]
        arrays.append(weakref.ref(whole))
        wanted.append(part[:, :2].copy())
        there.write(slice(i * size, i * size + size // share), Values(part, False), BYTE)
        del whole, part
    assert [array() is None for array in arrays] == [True, False, False]
    for i, first in enumerate(wanted):
        assert (there.look_at(slice(i * size, i * size + 2)).element == first).all()


def test_what_another_arena_writes_into_a_room_is_seen_at_once() -> None:
    there, mixer, symbols = cells(64)
    there.write(slice(0, 64), symbols.of_name((64,), "before"), BYTE)
    inner = ArenaCells(16, mixer, symbols, there.share(slice(32, 64)))
    values, later = symbols.of_name((16,), "inner"), symbols.of_name((8,), "later")
    inner.write(slice(0, 16), values, BYTE)
    assert (there.look_at(slice(32, 48)).element == values.data).all()
    there.write(slice(32, 40), later, BYTE)
    assert (inner.look_at(slice(0, 8)).element == later.data).all()
    assert inner.written(slice(8, 16), BYTE) is None
