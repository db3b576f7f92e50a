"""What an interval in tiles would need, from its geometry alone: microseconds, nothing is built.

    operators i .. j-1, results cut into P pieces along one axis, tile k:

       X  |dead|in tile k|still to come|        Y  |done|piece k|not there yet|
                \\  \\  halo  /  /
                 each operator's share of the tile, halos recomputed

Ranges go backwards from the results through the operators' axis maps (`walk`); one walk from j
downwards serves all i and all P. Live bytes are added up for every tile and operator (`living`).
What tiles need whole is made before them (`early`). Results may take over memory of operands as
far as the whole operators' may. Good to a few per cent; trials say what is true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from tflm_planner.tiling.estimate.backward_ranges import BackwardWalk, EstimateLimits, HaloPolicy
from tflm_planner.tiling.estimate.live_bytes import LiveBytes
from tflm_planner.tiling.estimate.ranges import Bools, Vector
from tflm_planner.tiling.estimate.schedule import LinearSchedule

_VIEW_TAIL, _VIEW_TEMP = 12, 64
"""Bytes of a view: of the tail, and while planning."""


@dataclass(frozen=True, slots=True)
class TileEstimate:
    """Operators first .. end-1 in `parts` along `axis`. head: bytes with all that lives beside.
    tail, temp, instructions: what is added to those of the operators as they are. slices, joins:
    whether parts are no views, and have to be cut out, and put together, by copying."""

    first: int
    end: int
    axis: int
    parts: int
    head: int
    tail: int
    temp: int
    instructions: int
    slices: bool = False
    joins: bool = False


def estimate_tiles(
    line: LinearSchedule,
    end: int,
    axis: int,
    numbers: Sequence[int],
    firsts: Collection[int],
    limits: EstimateLimits,
    kept: HaloPolicy = "no",
) -> Iterator[TileEstimate]:
    """The intervals that end before operator `end` and begin at one of `firsts`, the shortest
    first, in each of these numbers of parts; of those that what enters and what leaves does not
    already fill as much as they take as they are. kept: whether halos are kept instead of
    recomputed."""
    if not numbers:
        return
    low = min(firsts, default=end)
    walk = BackwardWalk(line, end, axis, np.array(numbers, np.int64), limits, kept)
    living = LiveBytes(walk, low)
    for first in range(end - 1, low - 1, -1):
        if not walk.extend(first):
            return
        if first in firsts and walk.may_help(first):
            yield from _estimates_from(walk, living, first)


def _estimates_from(walk: BackwardWalk, living: LiveBytes, first: int) -> Iterator[TileEstimate]:
    """The interval from `first` on, in all numbers of parts that are possible."""
    line, numbers = walk.line, walk.numbers
    known = walk.ranges | walk.early.last
    entering = [k for k in known if line.made[k] < first and line.last[k] < walk.end]
    copied = {key: ~walk.is_view(key) for key in walk.pieces}
    apart = sum(line.bytes[key] * copied[key] for key in copied)
    # While pieces are joined they are there twice.
    head = walk.beside + np.maximum(living.height(first, entering), 2 * apart)
    views = (sum(k in walk.ranges for k in entering) + len(walk.pieces)) * numbers
    tail, temp = walk.tail + _VIEW_TAIL * views, walk.temp + _VIEW_TEMP * views
    joins = _any(copied.values(), numbers)
    cut = ((key, walk.is_cut(key, first)) for key in walk.ranges)
    slices = _any((so & ~walk.is_view(key) for key, so in cut if so is not False), numbers)
    slices |= bool(walk.apart)
    for k in np.flatnonzero(walk.possible).tolist():
        yield TileEstimate(
            first, walk.end, walk.axis, int(numbers[k]), int(head[k]),
            int(tail[k]), int(temp[k]), int(walk.extra[k]), bool(slices[k]), bool(joins[k]),
        )  # fmt: skip


def _any(found: Iterable[Bools], numbers: Vector) -> Bools:
    """For which numbers one of these is so."""
    return reduce(np.logical_or, found, np.zeros(len(numbers), np.bool_))


__all__ = ["EstimateLimits", "HaloPolicy", "TileEstimate", "estimate_tiles"]
