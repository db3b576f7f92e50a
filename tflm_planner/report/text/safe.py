"""Text from a model that someone else made, made safe for a terminal and for a spreadsheet, and the
lines about what cannot run."""

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
    """Text that no spreadsheet computes: one line, and never the start of a formula."""
    text = safe_text(text)
    return "'" + text if text.lstrip().startswith(("=", "+", "-", "@")) else text


def cannot_run_lines(reasons: Sequence[str], width: int) -> list[str]:
    """What the target's TFLM refuses to run, in full."""
    text = "; ".join(safe_text(" ".join(why.split())) for why in reasons)
    before, after = "  CANNOT RUN   ", " " * 15
    return textwrap.wrap(text, width, initial_indent=before, subsequent_indent=after)
