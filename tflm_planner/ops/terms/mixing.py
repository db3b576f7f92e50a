"""Pseudo-random functions of terms: a nonlinear operation is a mixing by a key that identifies it.

    element (6 x 31 bits) --3 words + key--> permuted (192 bits) --6 halves modulo P--> element

Equal elements that are mixed by equal keys give equal results; all other results are assumed to be
random and independent (docs/proof.md says what depends on that). A key is a hash of an operator's
kind, options and quantization, and of positions and channels where these matter. Nothing here
depends on where an operator stands in a model. This module must not know operators.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.ops.terms.field import LANES, P, Residues, below_p

Words = npt.NDArray[np.uint64]
"""An array whose first axis is WORDS."""
WORDS = 3
_ROUNDS = 4
_CHUNK = 1 << 14
"""Elements that are mixed at a time, so that all their words fit a core's cache."""
_HALF = np.uint64(32)
_MULTIPLIERS = np.array(
    [[0x9E3779B97F4A7C15], [0xBF58476D1CE4E5B9], [0x94D049BB133111EB]], np.uint64
)
"""A column, one for each word."""
_CONSTANTS = np.array(
    [0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3], np.uint64
)


def key(*parts: object) -> Words:
    """A key made from objects whose `repr` is equal if and only if their meaning is."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8 * WORDS).digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64)


def key_of_bytes(data: bytes) -> Words:
    """A key made from bytes."""
    return np.frombuffer(hashlib.blake2b(data, digest_size=8 * WORDS).digest(), "<u8").astype(
        np.uint64
    )


def keys(base: Words, *columns: npt.NDArray[Any]) -> Words:
    """Keys for every row of a table of integers or floats (columns of one shape)."""
    shape = np.broadcast_shapes(*(c.shape for c in columns))
    words = np.broadcast_to(base.reshape(-1, *(1 for _ in shape)), (WORDS, *shape)).copy()
    for column in columns:
        words[0] ^= np.broadcast_to(bits_of(column), shape)
        _permute(words.reshape(WORDS, -1))
    return words


def bits_of(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Numbers as words, so that different numbers give different words: integers as they are,
    floats by their bits."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            bits = values.astype(np.float64, order="C").view(np.uint64)
        unordered = np.isnan(values)
        if unordered.any():  # NaNs by their own bits: float64 would merge some of them
            exact = values.astype(values.dtype, order="C").view(f"u{values.dtype.itemsize}")
            bits = np.where(unordered, ~exact.astype(np.uint64), bits)
        return bits
    return values.astype(np.int64).view(np.uint64)


def positions(count: int) -> npt.NDArray[np.int64]:
    """A column of positions, for keys that differ for each element."""
    return np.arange(count, dtype=np.int64)


class Mixer:
    """Mixes elements and counts those that it has made, because the probability of an error grows
    with their number."""

    def __init__(self) -> None:
        self.made = 0

    def elements(self, words: Words) -> Residues:
        """Elements made from keys alone: constants, inputs, cells that were never written."""
        shape = words.shape[1:]
        state = np.ascontiguousarray(words).reshape(WORDS, -1).copy()
        result = np.empty((LANES, state.shape[1]), np.uint32)
        self.made += state.shape[1]
        for start in range(0, state.shape[1], _CHUNK):
            part = slice(start, start + _CHUNK)
            chunk = np.ascontiguousarray(state[:, part])
            _permute(chunk)
            _put_halves(chunk, result[:, part])
        return result.reshape(LANES, *shape)

    def mix(self, values: Residues, words: Words) -> Residues:
        """Elements mixed by one key, or each by its own (the keys' shape broadcasts to that of the
        elements)."""
        shape = values.shape[1:]
        flat = values.reshape(LANES, -1)
        each = words.ndim > 1
        if each:
            wide = words.reshape(WORDS, *(1 for _ in range(len(shape) + 1 - words.ndim)),
                                 *words.shape[1:])  # fmt: skip
            words = np.broadcast_to(wide, (WORDS, *shape)).reshape(WORDS, -1)
        result = np.empty((LANES, flat.shape[1]), np.uint32)
        self.made += flat.shape[1]
        state = np.empty((WORDS, min(_CHUNK, flat.shape[1])), np.uint64)
        for start in range(0, flat.shape[1], _CHUNK):
            part = slice(start, min(start + _CHUNK, flat.shape[1]))
            chunk = state[:, : part.stop - part.start]
            halves = chunk.view(np.uint32).reshape(WORDS, -1, 2)
            halves[:, :, 0], halves[:, :, 1] = flat[0::2, part], flat[1::2, part]
            chunk += words[:, part] if each else words[:, None]
            _permute(chunk)
            _put_halves(chunk, result[:, part])
        return result.reshape(LANES, *shape)


def _permute(state: Words) -> None:
    """A permutation of 192 bits in place: words are multiplied, shifted and added to each other in
    rounds. After two rounds every word depends on every other."""
    spare = np.empty_like(state)
    for turn in range(_ROUNDS):
        state *= _MULTIPLIERS
        np.right_shift(state, _HALF, out=spare)
        state ^= spare
        state[0] += state[2]
        state[1] += state[0]
        state[2] += state[1]
        state[0] += _CONSTANTS[turn]


def _put_halves(state: Words, result: Residues) -> None:
    """Put the halves of words into `result` as residues. Overwrites the words."""
    halves = state.view(np.uint32)
    high = halves >> np.uint32(31)
    halves &= np.uint32(P)
    halves += high
    below_p(halves)
    result[0::2], result[1::2] = halves[:, 0::2], halves[:, 1::2]
