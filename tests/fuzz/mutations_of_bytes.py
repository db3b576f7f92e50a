"""Damages at the level of bytes, and of flatbuffer words."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from tests.fuzz.seeds import Rng, corpus

WORDS = [0, 1, 4, 8, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, 0x40000000]


def flip_bits(data: bytearray, rng: Rng) -> bytearray:
    for at in rng.integers(0, max(len(data), 1), int(rng.integers(1, 9))):
        if at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
    return data


def flip_after_head(data: bytearray, rng: Rng) -> bytearray:
    """Flips near the root, where tables and vtables of small models lie."""
    for at in rng.integers(8, 200, 3):
        if at < len(data):
            data[at] = int(rng.integers(256))
    return data


def wild_word(data: bytearray, rng: Rng) -> bytearray:
    """A length, offset or scalar set to an extreme value."""
    if len(data) >= 12:
        at = 4 * int(rng.integers(0, len(data) // 4))
        struct.pack_into("<I", data, at, WORDS[int(rng.integers(len(WORDS)))])
    return data


def nudge_word(data: bytearray, rng: Rng) -> bytearray:
    """An offset or length a little off."""
    if len(data) >= 12:
        at = 4 * int(rng.integers(0, len(data) // 4))
        (old,) = struct.unpack_from("<I", data, at)
        struct.pack_into("<I", data, at, (old + int(rng.integers(-16, 17))) & 0xFFFFFFFF)
    return data


def copy_word(data: bytearray, rng: Rng) -> bytearray:
    """One word over another: offsets into the wrong table."""
    if len(data) >= 12:
        a, b = 4 * rng.integers(0, len(data) // 4, 2)
        data[a : a + 4] = data[b : b + 4]
    return data


def truncate(data: bytearray, rng: Rng) -> bytearray:
    return data[: int(rng.integers(0, len(data) + 1))]


def zero_range(data: bytearray, rng: Rng) -> bytearray:
    at = int(rng.integers(0, len(data) + 1))
    length = min(int(rng.integers(1, 65)), len(data) - at)
    data[at : at + length] = bytes(length)
    return data


def cut_out(data: bytearray, rng: Rng) -> bytearray:
    at = int(rng.integers(0, len(data) + 1))
    del data[at : at + int(rng.integers(1, 33))]
    return data


def insert_noise(data: bytearray, rng: Rng) -> bytearray:
    at = int(rng.integers(0, len(data) + 1))
    data[at:at] = rng.integers(0, 256, int(rng.integers(1, 33)), np.uint8).tobytes()
    return data


def splice(data: bytearray, rng: Rng) -> bytearray:
    """The front of one model and the back of another."""
    _, other = corpus()[int(rng.integers(len(corpus())))]
    at = int(rng.integers(0, min(len(data), len(other)) + 1))
    return data[:at] + other[at:]


def append_noise(data: bytearray, rng: Rng) -> bytearray:
    return data + rng.integers(0, 256, int(rng.integers(1, 257)), np.uint8).tobytes()


def spoil_identifier(data: bytearray, rng: Rng) -> bytearray:
    if rng.random() < 0.2 and len(data) >= 8:
        data[4:8] = rng.integers(0, 256, 4, np.uint8).tobytes()
    return data


BYTES: list[Callable[[bytearray, Rng], bytearray]] = [
    flip_bits, flip_bits, flip_after_head, wild_word, wild_word, nudge_word, nudge_word,
    copy_word, truncate, zero_range, cut_out, insert_noise, splice, append_noise,
    spoil_identifier,
]  # fmt: skip
