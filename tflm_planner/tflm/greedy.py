"""TFLM's GreedyMemoryPlanner, simulated one to one.

Source: tensorflow/lite/micro/memory_planner/greedy_memory_planner.cc, tflite-micro 90b983c.
Offline offsets are taken as given; every other buffer goes, by descending size, into the first
gap among the buffers in use at the same time. TFLM compares with linked lists in O(n^2); here
only buffers that live together are compared, with the same result.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

ONLINE = -1
"""Offset of a buffer that TFLM must place itself."""


@dataclass(frozen=True, slots=True)
class Request:
    """A buffer as TFLM's planner sees it: bytes rounded up to 16, first and last use inclusive,
    offset from the plan or ONLINE."""

    size: int
    first: int
    last: int
    offset: int = ONLINE


def place(requests: Sequence[Request]) -> list[int]:
    """The offset of every request, in the order given."""
    offsets = [r.offset for r in requests]
    neighbours = _neighbours(requests)
    online = [i for i, r in enumerate(requests) if r.offset == ONLINE]
    placed = [r.offset != ONLINE for r in requests]
    # Offline buffers come first. TFLM fills the online ones in from the back and sorts them by
    # descending size with a stable bubble sort: of equal sizes the later one is placed first.
    for i in sorted(online, key=lambda i: (-requests[i].size, -i)):
        around = sorted((offsets[j], requests[j].size) for j in neighbours[i] if placed[j])
        offsets[i] = _first_gap(around, requests[i].size)
        placed[i] = True
    return offsets


def head(requests: Sequence[Request], offsets: Sequence[int]) -> int:
    """Bytes of the arena's head: the highest end of any buffer."""
    return max((o + r.size for o, r in zip(offsets, requests, strict=True)), default=0)


def _first_gap(around: list[tuple[int, int]], size: int) -> int:
    candidate = 0
    for offset, length in around:
        if offset - candidate >= size:
            break
        candidate = max(candidate, offset + length)
    return candidate


def _neighbours(requests: Sequence[Request]) -> list[list[int]]:
    """For each request those in use at the same time, by a sweep over first uses."""
    found: list[list[int]] = [[] for _ in requests]
    live: list[tuple[int, int]] = []  # (last use, index), sorted
    for j in sorted(range(len(requests)), key=lambda i: requests[i].first):
        live = live[bisect.bisect_left(live, (requests[j].first, -1)) :]
        for _, i in live:
            found[i].append(j)
            found[j].append(i)
        bisect.insort(live, (requests[j].last, j))
    return found
