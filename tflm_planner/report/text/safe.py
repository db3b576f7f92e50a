"""Escapes text from foreign models for terminals and spreadsheets; lines about what cannot run."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def safe_text(text: str) -> str:
    r"""`text` with every character that is not printable spelled out, as in `\x1b`.

    Control characters, line breaks, bidirectional overrides and lone surrogates can move the
    cursor, forge lines, reorder text or break an encoder; printable Unicode stays as it is.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def safe_cell(text: str) -> str:
    """Text that a spreadsheet does not take for a formula, in one line."""
    text = safe_text(text)
    return "'" + text if text.lstrip().startswith(("=", "+", "-", "@")) else text


def cannot_run_lines(reasons: Sequence[str], width: int) -> list[str]:
    """All reasons why the target's TFLM cannot run the model, as lines of at most `width` cells."""
    text = "; ".join(safe_text(" ".join(why.split())) for why in reasons)
    before, after = "  CANNOT RUN   ", " " * 15
    return textwrap.wrap(text, width, initial_indent=before, subsequent_indent=after)
