"""Counts, shares and names as words of a text, and how many cells of a terminal they take.

    count(1, "alias", "aliases")             1 alias
    percent(1, 8)                            12.5 %
    shorten("block_3/depthwise/Relu", 16)    block_3..se/Relu

It must not know what is told.
"""

from __future__ import annotations

import unicodedata

from tflm_planner.report.text.safe import safe_text

_NAME_LIMIT = 4096
"""Characters of a name that are looked at."""


def display_width(text: str) -> int:
    """Terminal cells that `text` takes: wide East Asian characters take two, combining marks
    none."""
    if text.isascii():
        return len(text)
    return sum(_cells(c) for c in text)


def shorten(text: str, width: int) -> str:
    """Safe `text` in at most `width` cells. The middle of a longer text is replaced by "..".

    Both ends of a tensor name are informative: the block in which it is, and what it is there.
    """
    if len(text) > _NAME_LIMIT:
        text = text[: _NAME_LIMIT // 2] + text[-_NAME_LIMIT // 2 :]
    text = safe_text(text)
    if display_width(text) <= width:
        return text
    if width <= 2:
        return "."[:width] * width
    tail = (width - 2) // 2
    return _take(text, width - 2 - tail) + ".." + _take(text[::-1], tail)[::-1]


def percent(part: int, whole: int) -> str:
    """`part` of `whole` in percent with one decimal; 0 if `whole` is 0."""
    return f"{100 * part / whole if whole else 0.0:.1f} %"


def encodable(text: str, encoding: str) -> str:
    """`text` with characters that `encoding` cannot represent written as backslash escapes."""
    try:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")


def _take(text: str, width: int) -> str:
    """The longest start of `text` of at most `width` cells."""
    used = 0
    for i, c in enumerate(text):
        used += _cells(c)
        if used > width:
            return text[:i]
    return text


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
