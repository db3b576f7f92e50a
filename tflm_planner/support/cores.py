"""How many processor cores this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Linux, control groups version 2: microseconds of processor time in each period, or "max", and the
microseconds of a period. A container sees its own limit here."""


def usable_cores(quota: Path = _QUOTA) -> int:
    """The cores that the operating system lets this process run on, or fewer where a container may
    use less time than that; at least 1. quota: the file with that limit."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS and Windows have none
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    with suppress(OSError, ValueError, ZeroDivisionError):
        time, period = quota.read_text().split()
        if time != "max":
            cores = min(cores, -(-int(time) // int(period)))
    return max(cores, 1)
