"""What tests of pages share."""

from __future__ import annotations

from typing import Any


def watched(page: Any) -> Any:
    """The page, with `faults`: what its scripts did wrong, and what its policy refused."""
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda said: page.faults.append(said.text) if said.type == "error" else None)
    return page
