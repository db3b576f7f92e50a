"""Sizes in bytes as people write them, and alignment."""

from __future__ import annotations

import re
from fractions import Fraction

from tflm_planner.support.errors import UsageError

ALIGNMENT = 16
"""Alignment of every buffer that TFLM's memory planner places, in bytes."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|K|KB|KIB|M|MB|MIB)?\s*", re.IGNORECASE)
_MOST = 1 << 48
"""Bytes. A larger size is taken for a mistake."""
_FACTOR = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20}


def align_up(size: int, alignment: int = ALIGNMENT) -> int:
    """The smallest multiple of `alignment` that is at least `size`."""
    return -(-size // alignment) * alignment


def parse_size(text: str) -> int:
    """Bytes of "262144", "256K", "256 KB", "256KiB" or "1.5M"; K is 1,024 as on a data sheet."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"size {text!r} is not understood; write bytes (262144) or 256K, 1.5M")
    number, unit = match.groups()
    factor = _FACTOR[(unit or "").upper()[:1]]
    size = Fraction(number) * factor
    if (factor == 1 and size.denominator != 1) or not 1 <= size <= _MOST:
        raise UsageError(f"size {text!r}: no memory has so many bytes; write 262144, 256K or 1.5M")
    return int(size)


def human_size(size: int) -> str:
    """Bytes with a thousands separator; from 1 KiB up also in KiB."""
    return f"{size:,} B" if size < 1024 else f"{size:,} B ({size / 1024:.1f} KiB)"
