"""Switches Python's cyclic garbage collector off in code that creates many objects but few cycles.

A full collection visits every object of the process, including those of libraries. It takes a tenth
of a second, as long as a whole plan may take, and starts at unpredictable moments.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """No cycles are collected inside; afterwards the collector is on if it was on before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
