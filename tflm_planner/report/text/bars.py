"""Draws bars for tables in a terminal: with block characters, or with "#" if the encoding has none.
It must not know what is shown."""

from __future__ import annotations

from collections.abc import Callable

CELLS = 20
"""Width of the longest bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bars(encoding: str) -> Callable[[int, int], str]:
    """A function (part, whole) -> bar. The bar of a part above zero is never empty."""
    try:
        _EIGHTHS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return lambda part, whole: "#" * max(part > 0, round(CELLS * part / whole))
    return _unicode_bar


def _unicode_bar(part: int, whole: int) -> str:
    full, eighths = divmod(max(part > 0, round(8 * CELLS * part / whole)), 8)
    return "█" * full + _EIGHTHS[eighths].strip()
