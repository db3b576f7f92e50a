"""A log of arena allocations, and the size of arena that it needs.

    pieces   persistent, from the arena's end downward, each aligned downward
    floors   at some moment, the bytes above the arena's start that the tail must not reach

Persistent pieces are aligned by address, so the size of a log's tail depends on the arena's size
modulo 16. This module must not know what the pieces are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tflm_planner.support.units import ALIGNMENT


def smallest_arena(needs: list[int]) -> tuple[int, int]:
    """The smallest size of an arena, and the bytes to add so that any start address works.

    `needs[r]`: the minimum for an arena whose size is r modulo 16.
    """

    def works(size: int) -> bool:
        return size >= needs[size % ALIGNMENT]

    low = min(size for r, need in enumerate(needs) if (size := need + (r - need) % ALIGNMENT))
    high = low
    while not all(works(high - lost) for lost in range(ALIGNMENT)):
        high += 1
    return low, high - low


class Piece(NamedTuple):
    """Persistent memory that was allocated."""

    kind: int
    """Its class, counted from 0."""
    size: int
    """Bytes."""
    alignment: int
    """Its address is a multiple of this."""


class Floor(NamedTuple):
    """What the tail must not reach at some moment."""

    pieces: int
    """The number of pieces allocated before."""
    above: int
    """Bytes above the arena's start."""
    is_aligned: bool
    """Whether the lower end of the tail is aligned down to 16."""


@dataclass(slots=True)
class AllocationLog:
    """The allocations of one run, in order, and what each moment needs."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    floors: list[Floor] = field(default_factory=list[Floor])
    planning_temp: int = 0
    prepare_temp: int = 0
    need_plan: int = 0
    need_prepare: int = 0

    def add(self, kind: int, size: int, alignment: int) -> None:
        """Log a piece of persistent memory."""
        self.pieces.append(Piece(kind, size, alignment))

    def add_floor(self, above: int, *, is_aligned: bool = False) -> None:
        """Log that the tail must now not reach `above` bytes above the arena's start."""
        self.floors.append(Floor(len(self.pieces), above, is_aligned))

    @property
    def highest_floor(self) -> int:
        """The most bytes above the arena's start that the tail must not reach."""
        return max(floor.above for floor in self.floors)

    def extents(self, residue: int = 0) -> Iterator[int]:
        """Bytes of tail after each piece, for an arena of this size modulo 16."""
        position = residue  # of the lower end of the tail, modulo some large multiple of 16
        for _, size, alignment in self.pieces:
            position = (position - size) // alignment * alignment
            yield residue - position

    def tail_parts(self, count: int) -> tuple[list[int], int]:
        """Bytes of tail by class (there are `count` classes), and in total, for an arena whose size
        is a multiple of 16."""
        parts, before = [0] * count, 0
        for piece, extent in zip(self.pieces, self.extents(), strict=True):
            parts[piece.kind] += extent - before
            before = extent
        return parts, before

    def needs(self) -> list[int]:
        """The smallest arena for each size modulo 16."""
        extents = [0, *self.extents()]
        floor_needs = [_floor_need(floor, extents[floor.pieces], 0) for floor in self.floors]
        later = [0] * (len(floor_needs) + 1)
        for i in range(len(floor_needs) - 1, -1, -1):
            later[i] = max(floor_needs[i], later[i + 1])
        first_replay = FirstReplay(extents, later)
        return [later[0], *(self._need(residue, first_replay) for residue in range(1, ALIGNMENT))]

    def _need(self, residue: int, first_replay: FirstReplay) -> int:
        """Replay until the lower end of the tail equals that for residue 0, modulo 16; from there
        on the two replays differ by a constant."""
        worst, floor, position = 0, 0, residue
        for count in range(len(self.pieces) + 1):
            if count:
                _, size, alignment = self.pieces[count - 1]
                position = (position - size) // alignment * alignment
            extent = residue - position
            if (position + first_replay.extents[count]) % ALIGNMENT == 0 and count:
                shift = extent - first_replay.extents[count]
                return max(worst, first_replay.later[floor] + shift)
            while floor < len(self.floors) and self.floors[floor].pieces == count:
                worst = max(worst, _floor_need(self.floors[floor], extent, residue))
                floor += 1
        return worst


@dataclass(frozen=True, slots=True)
class FirstReplay:
    """The replay for residue 0: the tail after each piece, and the largest need from each floor
    on."""

    extents: list[int]
    later: list[int]


def _floor_need(floor: Floor, extent: int, residue: int) -> int:
    """The smallest arena with this floor and this tail, for a size of `residue` modulo 16."""
    below_tail = (residue - extent) % ALIGNMENT if floor.is_aligned else 0
    return floor.above + extent + below_tail
