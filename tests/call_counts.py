"""Work counted in function calls: the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls(job: Callable[[], Any]) -> int:
    """Python and C functions called while `job` runs."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        job()
    finally:
        sys.setprofile(before)
    return count


def assert_near_linear(job: Callable[[int], Callable[[], Any]], small: int, large: int) -> None:
    """The work of `job(n)` grows by little more than n does."""
    few, many = calls(job(small)), calls(job(large))
    assert many < 1.5 * few * large / small, f"{few} calls for {small}, {many} for {large}"
