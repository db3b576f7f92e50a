"""TFLM's GreedyMemoryPlanner, simulated one to one.

Source: tensorflow/lite/micro/memory_planner/greedy_memory_planner.cc, tflite-micro 90b983c.
Offline offsets are taken as given; every other buffer goes, by descending size, into the first
gap among the buffers in use at the same time. TFLM compares with linked lists in O(n^2); here
only buffers that live together are compared, with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]

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
    online = [i for i, r in enumerate(requests) if r.offset == ONLINE]
    if not online:
        return [r.offset for r in requests]
    table = np.array([(r.offset, r.size, r.first, r.last) for r in requests], np.int64)
    offsets, sizes, firsts, lasts = table.T.copy()
    placed = offsets != ONLINE
    # Offline buffers come first. TFLM fills the online ones in from the back and sorts them by
    # descending size with a stable bubble sort: of equal sizes the later one is placed first.
    for i in sorted(online, key=lambda i: (-requests[i].size, -i)):
        near = np.flatnonzero(placed & (firsts <= lasts[i]) & (lasts >= firsts[i]))
        near = near[np.argsort(offsets[near])]
        offsets[i] = _first_gap(offsets[near], sizes[near], requests[i].size)
        placed[i] = True
    return offsets.tolist()


def head(requests: Sequence[Request], offsets: Sequence[int]) -> int:
    """Bytes of the arena's head: the highest end of any buffer."""
    return max((o + r.size for o, r in zip(offsets, requests, strict=True)), default=0)


def _first_gap(offsets: Ints, sizes: Ints, size: int) -> int:
    """The lowest offset at which a buffer fits between others, which are sorted by their
    offsets."""
    tops = np.maximum.accumulate(offsets + sizes)
    floors = np.concatenate((np.zeros(1, np.int64), np.maximum(tops, 0)))
    fits = np.flatnonzero(offsets - floors[:-1] >= size)
    return int(floors[fits[0]] if len(fits) else floors[-1])
