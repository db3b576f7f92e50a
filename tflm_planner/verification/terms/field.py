"""The field in which terms are computed: vectors of LANES residues modulo the prime 2^31 - 1.

An array of field elements has a first axis of LANES, type uint32, and every residue is below P.
Sums of products are made in float64, where they are exact as long as they stay below 2^53: that is
what keeps 300 million products a matter of a second. This module must not know operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Residues = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

BITS = 31
P = (1 << BITS) - 1
LANES = 6
_EXACT = 1 << 53
"""float64 holds every integer up to it."""
_HALF = 16
_CHUNK = 1 << 14
"""Elements that are reduced at a time, in a core's cache."""


def reduced(values: Array) -> Residues:
    """Integers of less than 2^62 in size, modulo P. 2^31 is 1, so that halves are added up."""
    flat = np.ascontiguousarray(values).reshape(-1)
    result = np.empty(flat.shape, np.uint32)
    high = np.empty(min(_CHUNK, flat.size), np.int64)
    for start in range(0, flat.size, _CHUNK):
        whole = flat[start : start + _CHUNK].astype(np.int64)
        part = high[: whole.size]
        for _ in range(2):
            np.right_shift(whole, BITS, out=part)
            whole &= P
            whole += part
        part[:] = whole >= P
        part *= P
        whole -= part
        result[start : start + _CHUNK] = whole
    return result.reshape(values.shape)


def add(a: Residues, b: Residues) -> Residues:
    """Sums, element by element, broadcast. Two residues fit into 32 bits."""
    made = a + b
    made -= (made >= P).astype(np.uint32) * np.uint32(P)
    return made


def subtract(a: Residues, b: Residues) -> Residues:
    """Differences, element by element, broadcast."""
    made = a - b
    made += (a < b).astype(np.uint32) * np.uint32(P)
    return made


def multiply(a: Residues, b: Residues) -> Residues:
    """Products, element by element, broadcast."""
    return reduced((a.astype(np.uint64) * b).view(np.int64))


def total(values: Residues, axes: tuple[int, ...]) -> Residues:
    """Sums over some axes (of fewer than 2^31 elements together)."""
    return reduced(values.sum(axis=axes, dtype=np.int64))


def times_integers(values: Array, integers: Array) -> Residues:
    """Matrix products (.., m, k) x (k, n) of elements and small integers.

    `values`: residues, or differences of two of them."""
    largest = int(np.abs(integers).max(initial=1))
    share = max(_EXACT // (largest << BITS), 1)
    assert largest << BITS <= _EXACT, "integers too large for exact products"
    weights = integers.astype(np.float64)
    inner = weights.shape[0]
    if inner <= share:
        return reduced(values.astype(np.float64) @ weights)
    made: Residues | None = None
    for start in range(0, inner, share):
        part = slice(start, start + share)
        some = reduced(values[..., part].astype(np.float64) @ weights[part])
        made = some if made is None else add(made, some)
    assert made is not None
    return made


def times(a: Residues, b: Residues) -> Residues:
    """Matrix products (.., m, k) x (.., k, n) of field elements, k at most 2^20: each is split into
    halves, of which products and their sums stay exact."""
    if a.shape[-1] > 1 << 20:
        half = a.shape[-1] // 2
        return add(times(a[..., :half], b[..., :half, :]), times(a[..., half:], b[..., half:, :]))
    low_a, high_a = _halves(a)
    low_b, high_b = _halves(b)
    made = reduced(low_a @ low_b).astype(np.int64)
    made += reduced(low_a @ high_b + high_a @ low_b).astype(np.int64) << _HALF
    # 2^32 is 2 modulo P.
    made += reduced(high_a @ high_b).astype(np.int64) << 1
    return reduced(made)


def _halves(values: Residues) -> tuple[Floats, Floats]:
    low = (values & ((1 << _HALF) - 1)).astype(np.float64)
    return low, (values >> _HALF).astype(np.float64)
