"""TFLM's GreedyMemoryPlanner, simulated exactly.

Source: tensorflow/lite/micro/memory_planner/greedy_memory_planner.cc, tflite-micro 90b983c.
Offline offsets are used as given; every other buffer is placed, by descending size, in the first
gap among the buffers that are in use at the same time. TFLM compares all pairs with linked lists in
O(n^2); here only buffers that live together are compared, with the same result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

ONLINE = -1
"""Offset of a buffer that TFLM must place itself."""


@dataclass(frozen=True, slots=True)
class Request:
    """A buffer as TFLM's planner sees it: bytes rounded up to 16, first and last use (inclusive),
    and its offset in the plan or ONLINE."""

    size: int
    first: int
    last: int
    offset: int = ONLINE


def place(requests: Sequence[Request]) -> list[int]:
    """The offset of every request, in the order given."""
    online = [i for i, r in enumerate(requests) if r.offset == ONLINE]
    if not online:
        return [r.offset for r in requests]
    offsets = [r.offset for r in requests]
    near = _Neighbours(requests)
    for i, request in enumerate(requests):
        if request.offset != ONLINE:
            near.add(i)
    # Offline buffers come first. TFLM adds the online ones from the back and sorts them by
    # descending size with a stable bubble sort: of equal sizes the later one is placed first.
    for i in sorted(online, key=lambda i: (-requests[i].size, -i)):
        neighbours = sorted((offsets[k], requests[k].size) for k in near.of(i))
        offsets[i] = _first_gap(neighbours, requests[i].size)
        near.add(i)
    return offsets


class _Neighbours:
    """Finds the placed buffers that are in use at the same time as a given one."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests = requests
        self._alive: defaultdict[int, list[int]] = defaultdict(list)
        self._starting: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, i: int) -> None:
        """Record that buffer `i` was placed."""
        first, last = self._requests[i].first, self._requests[i].last
        for time in range(first, last + 1):
            self._alive[time].append(i)
        self._starting[first].append(i)

    def of(self, i: int) -> Iterator[int]:
        """The placed buffers that are in use while buffer `i` is."""
        first, last = self._requests[i].first, self._requests[i].last
        yield from self._alive[first]
        for time in range(first + 1, last + 1):
            yield from self._starting[time]


def head(requests: Sequence[Request], offsets: Sequence[int]) -> int:
    """Bytes of the arena's head: the highest end of any buffer."""
    return max((o + r.size for o, r in zip(offsets, requests, strict=True)), default=0)


def _first_gap(neighbours: Iterable[tuple[int, int]], size: int) -> int:
    """The lowest offset at which a buffer fits between `neighbours`: (offset, size), ascending."""
    floor = 0
    for offset, other_size in neighbours:
        if offset - floor >= size:
            break
        floor = max(floor, offset + other_size)
    return floor
