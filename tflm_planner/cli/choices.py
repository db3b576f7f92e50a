"""The options that are one of a few words, as types: `--help` lists their values.

They stand here, and not where they are used, so that `tflm-plan --help` loads nothing heavy; a
test compares them with what the parts below know.
"""

from __future__ import annotations

from typing import Literal

Firmware = Literal["as-is", "more-ops", "lean"]
"""What the firmware may become: nothing else; one that registers more operators; one with the lean
library, and more operators."""
Library = Literal["as-is", "lean"]
"""What the firmware is: stock TFLM, or one with the lean library."""
IoTypes = Literal["keep", "int8"]
SearchMethod = Literal["regions", "motes", "spellings", "none"]
SearchOfBack = Literal["regions", "none"]
Objective = Literal["arena", "head"]
Order = Literal["best", "exact", "beam", "rpo", "file"]
Allocator = Literal["best", "greedy", "local", "exact", "cpsat"]
