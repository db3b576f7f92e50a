"""A log of arena allocations, and the size of arena that it needs.

    pieces   persistent, from the arena's end downward, each aligned downward
    floors   at some moment, the bytes above the arena's start that the tail must not reach

Persistent pieces are aligned by address, so the size of a log's tail depends on the arena's size
modulo 16. This module must not know what the pieces are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tflm_planner.support.units import ALIGNMENT


def smallest(needs: list[int]) -> tuple[int, int]:
    """The smallest size, and the bytes to add so that any start address works.

    `needs[r]`: the minimum for an arena whose size is r modulo 16.
    """

    def works(size: int) -> bool:
        return size >= needs[size % ALIGNMENT]

    low = min(size for r, need in enumerate(needs) if (size := need + (r - need) % ALIGNMENT))
    high = low
    while not all(works(high - lost) for lost in range(ALIGNMENT)):
        high += 1
    return low, high - low


@dataclass(slots=True)
class Log:
    """The allocations of one run, and what each moment needs.

    pieces: (class, size, alignment) of persistent memory, in order. floors: (number of pieces
    allocated before, bytes above the arena's start, whether the tail is aligned down to 16).
    """

    pieces: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    floors: list[tuple[int, int, bool]] = field(default_factory=list[tuple[int, int, bool]])
    planning_temp: int = 0
    prepare_temp: int = 0
    need_plan: int = 0
    need_prepare: int = 0

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
        for (part, _, _), extent in zip(self.pieces, self.extents(), strict=True):
            parts[part] += extent - before
            before = extent
        return parts, before

    def needs(self) -> list[int]:
        """The smallest arena for each size modulo 16."""
        extents = [0, *self.extents()]
        floor_needs = [self._floor_need(f, extents[f[0]], 0) for f in self.floors]
        later = [0] * (len(floor_needs) + 1)
        for i in range(len(floor_needs) - 1, -1, -1):
            later[i] = max(floor_needs[i], later[i + 1])
        first_replay = FirstReplay(extents, floor_needs, later, [f[0] for f in self.floors])
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
            while floor < len(self.floors) and self.floors[floor][0] == count:
                worst = max(worst, self._floor_need(self.floors[floor], extent, residue))
                floor += 1
        return worst

    @staticmethod
    def _floor_need(floor: tuple[int, int, bool], extent: int, residue: int) -> int:
        _, above, aligned = floor
        if not aligned:
            return above + extent
        return above + extent + (residue - extent) % ALIGNMENT


@dataclass(frozen=True, slots=True)
class FirstReplay:
    """The replay for residue 0: the tail after each piece, the need of each floor, the largest need
    from each floor on, and the number of pieces before each floor."""

    extents: list[int]
    first: list[int]
    later: list[int]
    made: list[int]
