"""What terms say of operators that only move elements is what LiteRT does: each element of each
result, for random shapes and options."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.transforms.tiled import quick_differences
from tests.verification.terms.proofs import proof
from tflm_planner.model.serde import read_model
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import Symbols, Values
from tflm_planner.verification.terms.machine import Machine
from tflm_planner.verification.terms.stores import SeparateStore
from tflm_planner.verification.worker import load_litert

Shape = tuple[int, ...]
FIRST = 1000
"""Input i holds i * FIRST and on, so that each number is there once."""


@dataclass
class Move:
    """One operator. operands: shapes of inputs, or the numbers of constants. results: shapes."""

    kind: str
    operands: list[Shape | np.ndarray]
    results: list[Shape]
    options: str
    fields: dict[str, Any] = field(default_factory=dict)
    version: int = 1

    def model(self) -> bytes:
        """Of this operator alone."""
        net = Net()
        graph = net.graph()
        given = [
            graph.input(f"x{i}", operand, "int32")
            if isinstance(operand, tuple)
            else graph.constant(f"c{i}", operand)
            for i, operand in enumerate(self.operands)
        ]
        made = [graph.tensor(f"y{i}", shape, "int32") for i, shape in enumerate(self.results)]
        graph.op(self.kind, given, made, self.options, version=self.version, **self.fields)
        graph.outputs(*made)
        return net.finish()


def some_shape(rng: np.random.Generator, ranks: tuple[int, int] = (1, 4)) -> Shape:
    return tuple(int(n) for n in rng.integers(1, 6, rng.integers(ranks[0], ranks[1] + 1)))


def any_axis(rng: np.random.Generator, rank: int) -> int:
    """Counted from the front or from the back."""
    return int(rng.integers(-rank, rank))


def changed(shape: Shape, axis: int, size: int) -> Shape:
    """The shape with another size along an axis."""
    sizes = list(shape)
    sizes[axis] = size
    return tuple(sizes)


def slice_(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    begin = np.array([rng.integers(n) for n in shape])
    size = np.array([rng.integers(1, n - b + 1) for n, b in zip(shape, begin, strict=True)])
    says = np.where(rng.random(len(shape)) < 0.3, -1, size)
    size = np.where(says == -1, np.array(shape) - begin, size)
    return Move("SLICE", [shape, begin, says], [tuple(map(int, size))], "SliceOptions")


def strided_slice(rng: np.random.Generator) -> Move:
    while True:
        shape = some_shape(rng)
        rank = len(shape)
        begin, end = (rng.integers(-6, 7, rank) for _ in range(2))
        steps = rng.choice([-2, -1, 1, 2, 3], rank)
        masks = [int(rng.integers(1 << rank)) for _ in range(2)]
        shrunk = int(rng.integers(1 << rank)) if rng.random() < 0.4 else 0
        index: list[slice | int] = []
        for a in range(rank):
            if shrunk >> a & 1:
                begin[a] = rng.integers(-shape[a], shape[a])
                end[a], steps[a] = begin[a] + 1, 1
                masks = [mask & ~(1 << a) for mask in masks]
                index.append(int(begin[a]))
                continue
            low = None if masks[0] >> a & 1 else int(begin[a])
            high = None if masks[1] >> a & 1 else int(end[a])
            index.append(slice(low, high, int(steps[a])))
        made = np.zeros(shape)[tuple(index)].shape
        if 0 not in made and made:
            fields = {"beginMask": masks[0], "endMask": masks[1], "shrinkAxisMask": shrunk}
            return Move("STRIDED_SLICE", [shape, begin, end, steps], [made],
                        "StridedSliceOptions", fields)  # fmt: skip


def transpose(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    order = rng.permutation(len(shape))
    made = tuple(shape[a] for a in order)
    return Move("TRANSPOSE", [shape, order], [made], "TransposeOptions")


def concatenation(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    axis = any_axis(rng, len(shape))
    parts = [changed(shape, axis, int(rng.integers(1, 4))) for _ in range(rng.integers(1, 4))]
    made = changed(shape, axis, sum(p[axis] for p in parts))
    return Move("CONCATENATION", list(parts), [made], "ConcatenationOptions", {"axis": axis})


def pack(rng: np.random.Generator) -> Move:
    shape, count = some_shape(rng, (1, 3)), int(rng.integers(1, 4))
    axis = any_axis(rng, len(shape) + 1)
    at = axis % (len(shape) + 1)
    fields = {"axis": axis, "valuesCount": count}
    made = (*shape[:at], count, *shape[at:])
    return Move("PACK", [shape] * count, [made], "PackOptions", fields)


def unpack(rng: np.random.Generator) -> Move:
    shape = some_shape(rng, (2, 4))
    axis = any_axis(rng, len(shape))
    at = axis % len(shape)
    fields = {"axis": axis, "num": shape[at]}
    made = (*shape[:at], *shape[at + 1 :])
    return Move("UNPACK", [shape], [made] * shape[at], "UnpackOptions", fields)


def split(rng: np.random.Generator) -> Move:
    shape, parts = some_shape(rng), int(rng.integers(1, 4))
    axis = any_axis(rng, len(shape))
    whole = changed(shape, axis, parts * shape[axis])
    fields = {"numSplits": parts}
    return Move("SPLIT", [np.array(axis), whole], [shape] * parts, "SplitOptions", fields)


def split_v(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    axis = any_axis(rng, len(shape))
    counts = rng.integers(1, 4, rng.integers(1, 4))
    whole = changed(shape, axis, int(counts.sum()))
    made = [changed(shape, axis, int(n)) for n in counts]
    fields = {"numSplits": len(counts)}
    return Move("SPLIT_V", [whole, counts, np.array(axis)], made, "SplitVOptions", fields)


def pad(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    pads = rng.integers(0, 3, (len(shape), 2))
    made = tuple(int(n + p.sum()) for n, p in zip(shape, pads, strict=True))
    return Move("PAD", [shape, pads], [made], "PadOptions")


def pad_with(rng: np.random.Generator) -> Move:
    move = pad(rng)
    return Move("PADV2", [*move.operands, np.array([77])], move.results, "PadV2Options")


def gather(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    axis = any_axis(rng, len(shape))
    at = axis % len(shape)
    places = rng.integers(0, shape[at], some_shape(rng, (1, 2)))
    made = (*shape[:at], *places.shape, *shape[at + 1 :])
    return Move("GATHER", [shape, places], [made], "GatherOptions", {"axis": axis})


def update(rng: np.random.Generator) -> Move:
    """The begin is clamped, so that the part lies inside."""
    shape = some_shape(rng)
    part = tuple(int(rng.integers(1, n + 1)) for n in shape)
    begin = rng.integers(-1, 6, len(shape))
    options = "DynamicUpdateSliceOptions"
    return Move("DYNAMIC_UPDATE_SLICE", [shape, part, begin], [shape], options)


def broadcast(rng: np.random.Generator) -> Move:
    made = some_shape(rng)
    first = int(rng.integers(len(made)))
    shape = tuple(1 if rng.random() < 0.5 else n for n in made[first:])
    options = "BroadcastToOptions"
    return Move("BROADCAST_TO", [shape, np.array(made)], [made], options, version=2)


def reverse(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    axis = np.array([any_axis(rng, len(shape))])
    return Move("REVERSE_V2", [shape, axis], [shape], "ReverseV2Options")


def mirror(rng: np.random.Generator) -> Move:
    shape = some_shape(rng, (2, 4))
    pads = np.zeros((len(shape), 2))
    return Move("MIRROR_PAD", [shape, pads], [shape], "MirrorPadOptions", {"mode": 0})


def reshape(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    made = tuple(int(n) for n in rng.permutation(shape))
    says = np.array(made)
    says[rng.integers(len(made))] = -1
    return Move("RESHAPE", [shape, says], [made], "ReshapeOptions", {"newShape": list(made)})


def tile(rng: np.random.Generator) -> Move:
    shape = some_shape(rng)
    often = rng.integers(1, 4, len(shape))
    made = tuple(int(n * m) for n, m in zip(shape, often, strict=True))
    return Move("TILE", [shape, often], [made], "TileOptions")


def blocks(rng: np.random.Generator) -> tuple[Shape, Shape, np.ndarray, np.ndarray]:
    """Images, the parts that SPACE_TO_BATCH_ND makes of them, its block and its edges."""
    images, channels, spatial = (int(n) for n in rng.integers(1, 3, 3))
    block, edges = rng.integers(1, 4, spatial), rng.integers(0, 3, (spatial, 2))
    parts = rng.integers(1, 4, spatial) + (edges.sum(1) + block - 1) // block
    sizes = [int(n) for n in parts * block - edges.sum(1)]
    smaller = (int(images * block.prod()), *(int(n) for n in parts), channels)
    return (images, *sizes, channels), smaller, block, edges


def space_to_batch(rng: np.random.Generator) -> Move:
    whole, parts, block, edges = blocks(rng)
    return Move("SPACE_TO_BATCH_ND", [whole, block, edges], [parts], "SpaceToBatchNDOptions")


def batch_to_space(rng: np.random.Generator) -> Move:
    whole, parts, block, edges = blocks(rng)
    return Move("BATCH_TO_SPACE_ND", [parts, block, edges], [whole], "BatchToSpaceNDOptions")


MOVES: dict[str, Callable[[np.random.Generator], Move]] = {
    "SLICE": slice_, "STRIDED_SLICE": strided_slice, "TRANSPOSE": transpose,
    "CONCATENATION": concatenation, "PACK": pack, "UNPACK": unpack, "SPLIT": split,
    "SPLIT_V": split_v, "PAD": pad, "PADV2": pad_with, "GATHER": gather,
    "DYNAMIC_UPDATE_SLICE": update, "BROADCAST_TO": broadcast, "REVERSE_V2": reverse,
    "MIRROR_PAD": mirror, "RESHAPE": reshape, "TILE": tile,
    "SPACE_TO_BATCH_ND": space_to_batch, "BATCH_TO_SPACE_ND": batch_to_space,
}  # fmt: skip


def by_terms(data: bytes, numbers: list[np.ndarray], *, known: bool) -> list[np.ndarray]:
    """The results as terms: as they are if all is known, else their elements."""
    model, mixer = read_model(data), Mixer()
    symbols = Symbols(mixer)
    machine = Machine(model, SeparateStore(model, mixer, symbols))
    given = [Values(n, True) if known else Values(symbols.of_numbers(n), False) for n in numbers]
    (made,) = machine.run(given)
    assert all(v.known for v in made) == known
    return [v.data for v in made]


@pytest.mark.parametrize("kind", sorted(MOVES))
def test_terms_move_elements_as_litert_does(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    symbols = Symbols(Mixer())
    for _ in range(12):
        move = MOVES[kind](rng)
        data = move.model()
        shapes = [operand for operand in move.operands if isinstance(operand, tuple)]
        numbers = [
            np.arange(i * FIRST, i * FIRST + np.prod(s), dtype=np.int32).reshape(s)
            for i, s in enumerate(shapes, 1)
        ]
        expected = by_litert(data, numbers, len(move.results))
        for wanted, made in zip(expected, by_terms(data, numbers, known=True), strict=True):
            assert np.array_equal(made, wanted), move
        for wanted, made in zip(expected, by_terms(data, numbers, known=False), strict=True):
            assert np.array_equal(made, symbols.of_numbers(wanted)), move


def by_litert(data: bytes, numbers: list[np.ndarray], results: int) -> list[np.ndarray]:
    """What LiteRT makes of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(data)
        return [np.array(a) for a in load_litert(str(path), 0, results)[1](numbers)]


ASKED = {
    "SHAPE": ("ShapeOptions", (3, 1, 5), (3,), {"outType": 2}),
    "RANK": ("RankOptions", (3, 1, 5), (), {}),
}


@pytest.mark.parametrize("kind", sorted(ASKED))
def test_shapes_are_known_whatever_the_tensor_holds(kind: str) -> None:
    options, shape, made, fields = ASKED[kind]
    data = Move(kind, [shape], [made], options, fields).model()
    numbers = [np.zeros(shape, np.int32)]
    (wanted,), model = by_litert(data, numbers, 1), read_model(data)
    symbols = Symbols(mixer := Mixer())
    machine = Machine(model, SeparateStore(model, mixer, symbols))
    ((found,),) = machine.run([symbols.of_name(shape, "nobody knows")])
    assert found.known and np.array_equal(found.data, wanted)


def test_a_tensor_is_filled_with_an_element() -> None:
    data = Move("FILL", [np.array([2, 3]), ()], [(2, 3)], "FillOptions").model()
    numbers = [np.array(7, np.int32)]
    (wanted,) = by_litert(data, numbers, 1)
    assert np.array_equal(by_terms(data, numbers, known=True)[0], wanted)
    symbols = Symbols(Mixer())
    assert np.array_equal(by_terms(data, numbers, known=False)[0], symbols.of_numbers(wanted))


@needs_tflm
def test_a_scalar_as_converters_once_wrote_it() -> None:
    """RESHAPE to [0]: TFLM takes the declared shape, and LiteRT none of it."""
    data = Move("RESHAPE", [(1, 1), np.array([0])], [()], "ReshapeOptions").model()
    assert proof(data, data).status == "equal"
    assert not quick_differences(data, data, ("TFLM",))
