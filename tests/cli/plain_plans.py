"""Plans without tiles, and what they leave in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="uses /proc and /dev")
PLAIN = ("--search", "none")
"""Order and plan alone: tiles are not what these tests are about."""


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}
