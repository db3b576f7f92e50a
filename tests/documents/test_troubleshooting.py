"""Error texts that docs/troubleshooting.md explains are those that TFLM prints."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import ROOT, needs_tflm

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
OLDER = {"exeeds"}
"""Spellings of former versions."""


def texts() -> list[str]:
    """The code in the first column of the page's tables."""
    cells = re.findall(r"^\| (`[^|]*`[^|]*) \|", PAGE, re.MULTILINE)
    return [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]


@needs_tflm
def test_tflm_prints_every_text() -> None:
    import tflite_micro

    libraries = Path(tflite_micro.__file__).parent.rglob("_runtime*.so")
    printed = b"\n".join(path.read_bytes() for path in libraries)
    assert len(texts()) > 20
    for text in {*texts()} - OLDER:
        for piece in filter(None, map(str.strip, re.split(r"\.\.\.,?", text))):
            assert piece.strip("'(). ").encode() in printed, text
