"""Chains of operators that move elements become one part and one PAD: the same elements."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conftest import needs_tflm
from tests.models.moves import Moves, random_moves
from tests.transforms.tiled import quick_differences
from tflm_planner.model.check import check
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.transforms.merge_moves import merge_moves
from tflm_planner.verification.terms import prove_by_terms


def merged(data: bytes) -> tuple[bytes, list[tuple[str, tuple[int, ...]]]]:
    """The model with its chains merged, and (kind, shape of the result) of its operators."""
    model = read_model(data)
    merge_moves(model)
    check(model)
    return write_model(model), [(op.kind, op.outputs[0].shape or ()) for op in model.main.ops]


def shifted(size: int = 111) -> Moves:
    """NASNet's second path: an image shifted by a pixel, and every second pixel of it."""
    moves = Moves((1, size, size, 4))
    moves.pad((0, 0), (0, 1), (0, 1), (0, 0))
    moves.strided((0, 1, 1, 0), (1, size + 1, size + 1, 4), (1, 1, 1, 1))
    moves.pool(2, 2)
    return moves


def test_a_shifted_image_is_never_copied_whole() -> None:
    data = shifted().finish()
    made, ops = merged(data)
    assert ops == [("STRIDED_SLICE", (1, 55, 55, 4)), ("PAD", (1, 56, 56, 4))]
    assert prove_by_terms(read_model(data), read_model(made)).status == "equal"


def test_a_convolution_that_skips_pixels_reads_a_part() -> None:
    """DARTS' second path."""
    moves = Moves((1, 32, 32, 8))
    moves.strided((0, 1, 1, 0), (1, 32, 32, 8), (1, 1, 1, 1))
    moves.conv(4, 2)
    made, ops = merged(moves.finish())
    assert ops == [("STRIDED_SLICE", (1, 16, 16, 8)), ("CONV_2D", (1, 16, 16, 4))]
    assert read_model(made).main.ops[-1].options.stride == (1, 1)


def test_not_where_the_result_and_the_part_are_larger_than_the_image_before() -> None:
    """A kernel that skips pixels may write over its operand; one that reads all may not."""
    moves = Moves((1, 32, 32, 8))
    moves.strided((0, 1, 1, 0), (1, 32, 32, 8), (1, 1, 1, 1))
    moves.conv(40, 2)
    assert [shape for _, shape in merged(moves.finish())[1]] == [(1, 31, 31, 8), (1, 16, 16, 40)]


def test_what_is_read_otherwise_stays() -> None:
    moves = shifted(9)
    _, padded, *_ = moves.images
    _, ops = merged(moves.finish(padded))
    assert ops == [("PAD", (1, 10, 10, 4)), ("STRIDED_SLICE", (1, 5, 5, 4))]
    moves = shifted(9)
    _, _, cut, _ = moves.images
    assert len(merged(moves.finish(cut))[1]) == 3


def test_two_values_of_padding_stay_apart() -> None:
    moves = Moves((1, 6, 6, 2))
    moves.pad((0, 0), (1, 0), (0, 0), (0, 0), value=5)
    moves.pad((0, 0), (0, 1), (0, 0), (0, 0))
    assert [kind for kind, _ in merged(moves.finish())[1]] == ["PADV2", "PAD"]


def test_what_was_cut_off_does_not_come_back() -> None:
    """Padding behind a cut is padding, although the image goes on there."""
    moves = Moves((1, 9, 4, 2))
    moves.strided((0, 0, 0, 0), (1, 5, 4, 2), (1, 1, 1, 1))
    moves.pad((0, 0), (0, 3), (0, 0), (0, 0))
    moves.pool(2, 1)
    data = moves.finish()
    made, ops = merged(data)
    assert ops[-1] == ("PAD", (1, 4, 4, 2)) and len(ops) == 2
    assert prove_by_terms(read_model(data), read_model(made)).status == "equal"


def test_equal_places_are_one_constant() -> None:
    """TFLM keeps some bytes for every tensor."""
    moves = Moves((1, 16, 16, 8))
    for _ in range(2):
        height, width = moves.shape[1:3]
        moves.strided((0, 1, 1, 0), (1, height, width, 8), (1, 1, 1, 1))
        moves.conv(8, 2)
    before = read_model(moves.finish())
    made, _ = merged(moves.finish())
    constants = [sum(t.type_name == "int32" and len(t.shape or ()) == 1 and t.elements == 4
                     for t in m.main.tensors) for m in (before, read_model(made))]  # fmt: skip
    assert constants[1] == 3 < constants[0]


def test_random_chains_keep_their_terms() -> None:
    seen: Counter[tuple[str, ...]] = Counter()
    for seed in range(250):
        data = random_moves(seed)
        made, ops = merged(data)
        if len(ops) == len(read_model(data).main.ops) and made == data:
            continue
        seen[tuple(kind for kind, _ in ops if kind != "CONV_2D")] += 1
        proof = prove_by_terms(read_model(data), read_model(made))
        assert proof.status == "equal", (seed, proof)
        assert merged(made)[1] == ops, seed  # nothing is left to merge
    assert {("STRIDED_SLICE",), ("STRIDED_SLICE", "PAD"), ("STRIDED_SLICE", "PADV2")} <= {*seen}


@needs_tflm
@pytest.mark.parametrize("seed", range(0, 100, 5))
def test_random_chains_keep_their_bits(seed: int) -> None:
    data = random_moves(seed)
    assert quick_differences(data, merged(data)[0]) == []
