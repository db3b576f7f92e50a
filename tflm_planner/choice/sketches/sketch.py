"""What an interval in tiles would need, from its geometry alone: microseconds, nothing is built.

    operators i .. j-1, results cut into P pieces along one axis, tile k:

       X  |dead|in tile k|still to come|        Y  |done|piece k|not there yet|
                \\  \\  halo  /  /
                 each operator's share of the tile, halos recomputed

Ranges go backwards from the results through the operators' axis maps (`walk`); one walk from j
downwards serves all i. Live bytes are added up for every tile and operator (`living`). What tiles
need whole is made before them (`early`). Results may take over memory of operands as far as the
whole operators' may. Good to a few per cent; trials say what is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tflm_planner.choice.sketches.line import Line
from tflm_planner.choice.sketches.living import Living
from tflm_planner.choice.sketches.walk import Kept, Limits, Walk

_VIEW_TAIL, _VIEW_TEMP = 12, 64
"""Bytes of a view: of the tail, and while planning."""


@dataclass(frozen=True, slots=True)
class Sketch:
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


def sketches(
    line: Line,
    end: int,
    axis: int,
    parts: int,
    firsts: Mapping[int, int],
    limits: Limits,
    kept: Kept = "no",
) -> Iterator[Sketch]:
    """The intervals that end before operator `end` and begin at one of `firsts`, the shortest
    first; of those that what enters and what leaves does not already fill as much as they take
    as they are, or as many bytes of head as `firsts` says. kept: whether halos are kept instead
    of recomputed."""
    low = min(firsts, default=end)
    walk = Walk(line, end, axis, parts, limits, kept)
    living = Living(walk, low)
    for first in range(end - 1, low - 1, -1):
        if not walk.extend(first) or walk.is_beyond:
            return
        if first in firsts and walk.may_help(first, firsts[first]):
            yield _sketch(walk, living, first)


def _sketch(walk: Walk, living: Living, first: int) -> Sketch:
    """The interval from `first` on."""
    line, n = walk.line, walk.parts
    known = walk.ranges | walk.early.last
    entering = [k for k in known if line.made[k] < first and line.last[k] < walk.end]
    apart = sum(line.bytes[key] for key in walk.pieces if not walk.is_view(key))
    head = walk.beside + max(living.height(first, entering), 2 * apart)  # while they are joined
    views = (sum(k in walk.ranges for k in entering) + len(walk.pieces)) * n
    return Sketch(
        first, walk.end, walk.axis, n, head,
        walk.tail + _VIEW_TAIL * views, walk.temp + _VIEW_TEMP * views, int(walk.extra),
        bool(walk.apart)
        or not all(walk.is_view(key) for key in walk.ranges if walk.is_cut(key, first)),
        not all(map(walk.is_view, walk.pieces)),
    )  # fmt: skip


__all__ = ["Kept", "Limits", "Sketch", "sketches"]
