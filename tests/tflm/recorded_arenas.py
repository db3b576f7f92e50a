"""Arenas that emulated Cortex-M boards and this machine's TFLM measured, recorded once.

A record names its model, one of `TARGETS`, and what was found: bytes of head, tail and smallest
arena, mostly with their parts.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.conftest import TRUTH

PLACE = TRUTH / "arena.json"
TARGETS = {
    "m4-cmsis": "cortex-m4/cmsis-nn",
    "m4-ref": "cortex-m4/reference",
    "m3-cmsis": "cortex-m3/cmsis-nn",
    "m55-cmsis": "cortex-m55/cmsis-nn",
    "x86-ref": "x86-64/reference",
    "m4-ard": "arduino-2023",
}
"""A record's target -> the target of ours that predicts it."""


@cache
def records() -> list[dict[str, Any]]:
    """All records."""
    return json.loads(PLACE.read_text())
