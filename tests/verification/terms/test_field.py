"""Arithmetic in the field against Python's integers, and what is asked of the mixing."""

from __future__ import annotations

import numpy as np
import pytest

from tflm_planner.ops.terms import field, mixing
from tflm_planner.ops.terms.field import LANES, P
from tflm_planner.ops.terms.mixing import Mixer, key, keys, positions
from tflm_planner.verification.terms.compare import MOST_ERROR, error_log2

RNG = np.random.default_rng(3)
EDGES = np.array([0, 1, 2, P - 1, P - 2, 1 << 16, (1 << 16) - 1, 1 << 30], np.uint32)


def residues(*shape: int) -> np.ndarray:
    """Random ones, the edges among them."""
    values = RNG.integers(0, P, (LANES, *shape)).astype(np.uint32)
    values.reshape(-1)[: len(EDGES)] = EDGES
    return values


def test_sums_differences_and_products_are_those_of_integers() -> None:
    a, b = residues(4, 9), residues(4, 9)[:, ::-1]
    pairs = [(int(x), int(y)) for x, y in zip(a.flat, b.flat, strict=True)]
    assert [int(v) for v in field.add(a, b).flat] == [(x + y) % P for x, y in pairs]
    assert [int(v) for v in field.subtract(a, b).flat] == [(x - y) % P for x, y in pairs]
    assert [int(v) for v in field.multiply(a, b).flat] == [x * y % P for x, y in pairs]


def test_integers_of_any_sign_are_reduced() -> None:
    values = np.array([0, -1, 1, P, -P, P - 1, 2 * P, (1 << 61) + 5, -(1 << 61) - 5])
    assert field.residues_of(values).tolist() == [int(v) % P for v in values]
    assert field.residues_of(np.array([(1 << 53) - 1.0, -(2.0**52)])).tolist() == [
        ((1 << 53) - 1) % P,
        -(1 << 52) % P,
    ]


@pytest.mark.parametrize("inner", [1, 7, 300])
@pytest.mark.parametrize("largest", [1, 255, 1 << 15, 1 << 20])
def test_products_by_integers_stay_exact(inner: int, largest: int) -> None:
    """Also where the sums have to be made in shares."""
    a, w = residues(3, inner), RNG.integers(-largest, largest + 1, (inner, 4))
    w[0, 0], a[0, 0, :] = -largest, P - 1
    made = field.times_integers(a, w)
    for lane in range(LANES):
        wanted = [
            [sum(int(x) * int(y) for x, y in zip(row, w[:, j], strict=True)) % P for j in range(4)]
            for row in a[lane]
        ]
        assert made[lane].tolist() == wanted


@pytest.mark.parametrize("count", [1, 9, 40])
@pytest.mark.parametrize("largest", [1, 255, 1 << 17])
def test_weighted_sums_stay_exact(count: int, largest: int) -> None:
    """Also where they are more than may be summed up before they are reduced."""
    parts = [residues(3, 4) for _ in range(count)]
    weights = RNG.integers(-largest, largest + 1, (count, 4))
    weights[0] = -largest
    made = field.weighted_sum((p.astype(np.float64) for p in parts), weights, parts[0].shape)
    for at in np.ndindex(made.shape):
        row = zip(parts, weights, strict=True)
        assert int(made[at]) == sum(int(p[at]) * int(w[at[-1]]) for p, w in row) % P


def test_products_of_elements_stay_exact() -> None:
    a, b = residues(3, 50), residues(50, 4)
    made = field.times(a, b)
    for lane in range(LANES):
        wanted = [
            [
                sum(int(x) * int(y) for x, y in zip(row, b[lane, :, j], strict=True)) % P
                for j in range(4)
            ]
            for row in a[lane]
        ]
        assert made[lane].tolist() == wanted


def test_every_bit_of_an_element_and_of_a_key_moves_half_of_all_bits() -> None:
    values = RNG.integers(0, P, (LANES, 4096)).astype(np.uint32)
    mixer = Mixer()
    made = mixer.mix(values, key("a"))
    for lane in range(LANES):
        for bit in (0, 13, 29):
            other = values.copy()
            other[lane] ^= np.uint32(1 << bit)
            moved = np.bitwise_count(made ^ mixer.mix(other, key("a"))).mean(axis=1) / 31
            assert (abs(moved - 0.5) < 0.02).all()
    for word in range(mixing.WORDS):
        near = key("a").copy()
        near[word] ^= np.uint64(1 << 40)
        moved = np.bitwise_count(made ^ mixer.mix(values, near)).mean(axis=1) / 31
        assert (abs(moved - 0.5) < 0.02).all()


def test_elements_are_spread_over_the_field() -> None:
    made = Mixer().elements(keys(key("spread"), positions(1 << 16)))
    assert made.max() < P
    counts = np.stack([np.bincount(lane >> 24, minlength=128) for lane in made])
    assert (abs(counts - 512) < 6 * 512**0.5).all()


def test_keys_tell_columns_and_their_order_apart() -> None:
    first, second = np.array([1, 2]), np.array([2, 1])
    made = [keys(key("k"), first, second), keys(key("k"), second, first), keys(key("k"), first)]
    assert len({k[:, i].tobytes() for k in made for i in (0, 1)}) == 4
    assert np.array_equal(keys(key("k"), first)[:, 0], keys(key("k"), np.array([1]))[:, 0])


def test_the_error_grows_with_the_elements_and_is_small_enough_for_any_that_fit() -> None:
    assert error_log2(1 << 10) < error_log2(1 << 24) < error_log2(1 << 34) < MOST_ERROR
    assert error_log2(1 << 40) > MOST_ERROR
