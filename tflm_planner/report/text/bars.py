"""Bars of characters, for tables in a terminal: of block characters, or of "#" where an encoding
has none. It must not know what is shown."""

from __future__ import annotations

from collections.abc import Callable

CELLS = 20
"""Width of the longest bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bars(encoding: str) -> Callable[[int, int], str]:
    """(part, whole) -> bar; a part that is not zero is never empty."""
    try:
        _EIGHTHS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return lambda part, whole: "#" * max(part > 0, round(CELLS * part / whole))
    return _unicode_bar


def _unicode_bar(part: int, whole: int) -> str:
    full, eighths = divmod(max(part > 0, round(8 * CELLS * part / whole)), 8)
    return "█" * full + _EIGHTHS[eighths].strip()
