"""The field in which terms are computed: vectors of LANES residues modulo the prime 2^31 - 1.

An array of field elements has a first axis of LANES, type uint32, and every residue is below P.
Sums of products are computed in float64, which is exact for sums up to 2^53. That is why 300
million products take only about a second. This module must not know operators.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Residues = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

BITS = 31
P = (1 << BITS) - 1
LANES = 6
_MOST_EXACT = 1 << 53
"""float64 represents every integer up to this one."""
_HALF = 16
_CACHED = 1 << 20
"""Numbers in float64 that are multiplied at a time. It is large because BLAS may split a product
among threads, which wait for each other at its end."""
_CHUNK = 1 << 14
"""Elements that are reduced at a time, so that they fit a core's cache."""


def residues_of(values: Array) -> Residues:
    """Integers of magnitude below 2^62, modulo P. Since 2^31 is 1 modulo P, the high bits are added
    to the low 31 bits."""
    flat = np.ascontiguousarray(values).reshape(-1)
    result = np.empty(flat.shape, np.uint32)
    spare = np.empty((2, min(_CHUNK, flat.size)), np.int64)
    for start in range(0, flat.size, _CHUNK):
        chunk = flat[start : start + _CHUNK]
        whole, high = spare[:, : chunk.size]
        np.copyto(whole, chunk, casting="unsafe")
        for _ in range(2):
            np.right_shift(whole, BITS, out=high)
            whole &= P
            whole += high
        result[start : start + _CHUNK] = whole
    return below_p(result).reshape(values.shape)


def below_p(values: Residues) -> Residues:
    """Reduce numbers below 2 P modulo P, in place. For a number below P the subtraction wraps
    around to a larger number, so that the minimum keeps the number itself."""
    return np.minimum(values, values - np.uint32(P), out=values)


def add(a: Residues, b: Residues) -> Residues:
    """Sums, element by element, broadcast. The sum of two residues fits into 32 bits."""
    return below_p(a + b)


def subtract(a: Residues, b: Residues) -> Residues:
    """Differences, element by element, broadcast."""
    differences = a - b  # wraps around by 2^32 where a < b
    return np.minimum(differences, differences + np.uint32(P), out=differences)


def multiply(a: Residues, b: Residues) -> Residues:
    """Products, element by element, broadcast."""
    return residues_of((a.astype(np.uint64) * b).view(np.int64))


def total(values: Residues, axes: tuple[int, ...]) -> Residues:
    """Sums over some axes (of fewer than 2^31 elements together)."""
    return residues_of(values.sum(axis=axes, dtype=np.int64))


def times_integers(values: Array, integers: Array) -> Residues:
    """Matrix products (.., m, k) x (k, n) of elements and small integers.

    `values`: residues, or differences of two of them."""
    largest = int(np.abs(integers).max(initial=1))
    share = max(_MOST_EXACT // (largest << BITS), 1)
    assert largest << BITS <= _MOST_EXACT, "integers too large for exact products"
    weights = integers.astype(np.float64)
    inner, columns = weights.shape
    rows = values.reshape(-1, inner)
    products = np.empty((len(rows), columns), np.uint32)
    step = min(max(_CACHED // (inner + columns), 1), len(rows))
    chunk, sums = np.empty((step, inner)), np.empty((step, columns))
    for start in range(0, len(rows), step):
        count = min(step, len(rows) - start)
        np.copyto(chunk[:count], rows[start : start + count])
        if inner <= share:
            np.matmul(chunk[:count], weights, out=sums[:count])
            products[start : start + count] = residues_of(sums[:count])
            continue
        parts = [slice(i, i + share) for i in range(0, inner, share)]
        shares = [residues_of(chunk[:count, p] @ weights[p]).astype(np.int64) for p in parts]
        products[start : start + count] = residues_of(np.sum(shares, axis=0))
    return products.reshape(*values.shape[:-1], columns)


def weighted_sum(parts: Iterable[Floats], integers: Array, shape: tuple[int, ...]) -> Residues:
    """The sum over arrays of elements (residues in float64), each multiplied by its own row of
    small integers. shape: the shape of the sum."""
    largest = int(np.abs(integers).max(initial=1))
    share = _MOST_EXACT // (largest << BITS) - 1  # one less, for the residue of the sum so far
    assert share > 0, "integers too large for exact products"
    weights = integers.astype(np.float64)
    sums, product = np.zeros(shape), np.empty(shape)
    for i, (part, row) in enumerate(zip(parts, weights, strict=True)):
        if i and i % share == 0:
            np.copyto(sums, residues_of(sums))
        sums += np.multiply(part, row, out=product)
    return residues_of(sums)


def times(a: Residues, b: Residues) -> Residues:
    """Matrix products (.., m, k) x (.., k, n) of field elements, k at most 2^20: each element is
    split into 16-bit halves, so that products and their sums stay exact."""
    if a.shape[-1] > 1 << 20:
        half = a.shape[-1] // 2
        return add(times(a[..., :half], b[..., :half, :]), times(a[..., half:], b[..., half:, :]))
    low_a, high_a = _halves(a)
    low_b, high_b = _halves(b)
    products = residues_of(low_a @ low_b).astype(np.int64)
    products += residues_of(low_a @ high_b + high_a @ low_b).astype(np.int64) << _HALF
    # 2^32 is 2 modulo P.
    products += residues_of(high_a @ high_b).astype(np.int64) << 1
    return residues_of(products)


def _halves(values: Residues) -> tuple[Floats, Floats]:
    low = (values & ((1 << _HALF) - 1)).astype(np.float64)
    return low, (values >> _HALF).astype(np.float64)
