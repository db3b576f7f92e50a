"""The types of options that take one of a few words; `--help` lists the words. They are defined
here, not where they are used, so that `tflm-plan --help` imports nothing heavy. A test compares
them with the values that the packages below accept.
"""

from __future__ import annotations

from typing import Literal

Firmware = Literal["as-is", "more-ops", "lean"]
"""How the firmware may change: not at all; it may register more operators; or it may also use the
lean library."""
Library = Literal["as-is", "lean"]
"""The firmware in use: stock TFLM, or TFLM with the lean library."""
IoTypes = Literal["keep", "int8"]
SearchMethod = Literal["regions", "motes", "spellings", "none"]
BackSearchMethod = Literal["regions", "none"]
Objective = Literal["arena", "head"]
Order = Literal["best", "exact", "beam", "rpo", "file"]
Allocator = Literal["best", "greedy", "local", "exact", "cpsat"]
