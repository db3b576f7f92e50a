"""The planning problem: buffers with life spans must find offsets in one arena.

This module knows intervals and bytes. It must not know TFLite, operators or tensors.

    offset
      ^        +-----------+
      |        |     b     |          a and b are live together only during [3, 4):
      |  +-----+--+        |          they must not share a byte there, unless an
      |  |    a   |        |          `Overlap` permits their distance.
      |  |        |--------+
      +--+--------+-------------> time (operator steps, half-open)
         0     3  4        8

All sizes, and all distances of overlaps, are multiples of the alignment already: an
allocator adds and compares, and never rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

UNBOUNDED = 1 << 62
"""`Overlap.high` of an overlap that is permitted at any distance from `low` on."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """`size` bytes needed during the half-open life span [start, end)."""

    name: str
    size: int
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise ValueError(f"buffer {self.name!r}: size {self.size} is not positive")
        if self.start >= self.end:
            raise ValueError(f"buffer {self.name!r}: life span [{self.start}, {self.end}) is empty")


@dataclass(frozen=True, slots=True)
class Overlap:
    """A permission: `first` and `second` (indices of buffers) may share memory while both live
    when `low <= offset[second] - offset[first] <= high`.

    `low == high` is an alias: the two buffers share memory at exactly one distance.
    `high == UNBOUNDED` permits every distance from `low` on.
    """

    first: int
    second: int
    low: int
    high: int

    @property
    def is_alias(self) -> bool:
        """Whether exactly one distance is allowed."""
        return self.low == self.high


@dataclass(frozen=True)
class Problem:
    """Buffers to place, and the pairs of them that may share memory at some distances.

    Every overlap names a pair that lives together at some time. An allocator need not use it.
    Made by `of` or by `permitting`, which compute the fields `neighbours` and `permits`.
    """

    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...]
    neighbours: tuple[tuple[int, ...], ...] = field(repr=False, compare=False)
    """For each buffer, the buffers that are live together with it at some time."""
    permits: Mapping[tuple[int, int], tuple[tuple[int, int], ...]] = field(
        repr=False, compare=False
    )
    """(i, j) -> intervals of allowed `offset[j] - offset[i]`; holds both (i, j) and (j, i)."""

    @staticmethod
    def of(buffers: Sequence[Buffer], overlaps: Sequence[Overlap] = ()) -> Problem:
        """The problem of these buffers and overlaps."""
        neighbours: list[list[int]] = [[] for _ in buffers]
        for i, j in concurrent_pairs(buffers):
            neighbours[i].append(j)
            neighbours[j].append(i)
        permits = _permits_of(overlaps)
        return Problem(tuple(buffers), tuple(overlaps), tuple(map(tuple, neighbours)), permits)

    def permitting(self, overlaps: Sequence[Overlap]) -> Problem:
        """The same buffers with other overlaps."""
        return Problem(self.buffers, tuple(overlaps), self.neighbours, _permits_of(overlaps))

    def may_share(self, i: int, j: int, distance: int) -> bool:
        """Whether buffers i and j may share memory when `offset[j] - offset[i] == distance`."""
        return any(low <= distance <= high for low, high in self.permits.get((i, j), ()))


def _permits_of(
    overlaps: Sequence[Overlap],
) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
    """`Problem.permits` of overlaps."""
    table: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
    for o in overlaps:
        forward, backward = (o.first, o.second), (o.second, o.first)
        table[forward] = (*table.get(forward, ()), (o.low, o.high))
        table[backward] = (*table.get(backward, ()), (-o.high, -o.low))
    return table


@dataclass(frozen=True)
class Plan:
    """An offset in bytes for each buffer of a problem, in the problem's order."""

    offsets: tuple[int, ...]

    def height(self, problem: Problem) -> int:
        """Bytes from 0 to the highest byte used."""
        return max(
            (o + b.size for o, b in zip(self.offsets, problem.buffers, strict=True)), default=0
        )


@dataclass(frozen=True)
class Violation:
    """Two buffers that share bytes while both are live, or one buffer below offset 0."""

    first: Buffer
    second: Buffer | None
    bytes_from: int
    bytes_to: int
    time_from: int
    time_to: int

    def __str__(self) -> str:
        if self.second is None:
            return f"buffer {self.first.name!r} lies at offset {self.bytes_from}, below the arena"
        return (
            f"buffers {self.first.name!r} and {self.second.name!r} share bytes "
            f"[{self.bytes_from}, {self.bytes_to}) during steps [{self.time_from}, {self.time_to})"
        )


def concurrent_pairs(buffers: Sequence[Buffer]) -> Iterator[tuple[int, int]]:
    """All pairs (i, j) of buffers whose life spans intersect, by a sweep over their starts."""
    live: list[int] = []
    for j in sorted(range(len(buffers)), key=lambda i: (buffers[i].start, i)):
        start = buffers[j].start
        live = [i for i in live if buffers[i].end > start]
        for i in live:
            yield i, j
        live.append(j)


def validate(problem: Problem, plan: Plan) -> list[Violation]:
    """Every pair that shares bytes without permission while both live, and every buffer below
    offset 0; empty when the plan is legal.

    Deliberately independent of every allocator.
    """
    buffers, offsets = problem.buffers, plan.offsets
    if len(offsets) != len(buffers):
        raise ValueError(f"plan of {len(offsets)} offsets for a problem of {len(buffers)} buffers")
    violations = [
        Violation(b, None, o, o + b.size, b.start, b.end)
        for b, o in zip(buffers, offsets, strict=True)
        if o < 0
    ]
    for i, j in concurrent_pairs(buffers):
        a, b = buffers[i], buffers[j]
        bottom, top = max(offsets[i], offsets[j]), min(offsets[i] + a.size, offsets[j] + b.size)
        if bottom < top and not problem.may_share(i, j, offsets[j] - offsets[i]):
            violations.append(
                Violation(a, b, bottom, top, max(a.start, b.start), min(a.end, b.end))
            )
    return violations
