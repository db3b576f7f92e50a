"""Keeps Python's collector of cycles out of stretches that make many objects and few cycles.

A full collection walks every object of the process, libraries included: a tenth of a second, at
moments of its own choosing, for a plan that takes as long.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """No cycles are collected inside; afterwards all is as it was before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
