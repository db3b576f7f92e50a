"""Estimates what an interval would need in tiles, from its geometry alone: in microseconds, without
building anything.

    operators i .. j-1, results cut into P parts along one axis, tile k:

       X  |dead|in tile k|still to come|        Y  |done|part k|not there yet|
                \\  \\  halo  /  /
                 each operator computes its rows of the tile, halos are recomputed

`backward_ranges` follows the rows that tiles need from the results through the operators' axis maps
(MOTES, section 4.3); one walk from j downwards covers every i and every P. `live_bytes` adds up
what lives while each operator of each tile runs. `prologue` has the operators whose results every
tile needs whole. A tile's result may reuse memory of its operand to the extent that the result of
the whole operator may.

Estimates are within a few per cent, and usually optimistic; only an evaluation is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from tflm_planner.tiling.estimate.backward_ranges import BackwardWalk, EstimatedHalo, EstimateLimits
from tflm_planner.tiling.estimate.interval import Interval
from tflm_planner.tiling.estimate.live_bytes import LiveBytes
from tflm_planner.tiling.estimate.ranges import Bools, IntVector
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.transforms.tile.box_plan import Split

_VIEW_TAIL = 12
"""Bytes in the tail for one view."""


@dataclass(frozen=True, slots=True)
class TileEstimate:
    """The figures of an interval in tiles."""

    interval: Interval
    split: Split
    head: int
    """Bytes of the head while the interval runs, including everything that lives then."""
    tail: int
    """Bytes that tiling adds to the tail."""
    instructions: int
    """Instructions that tiling adds."""
    needs_slice: bool = False
    """Whether some part of a tensor is no view, so that SLICE must cut it out."""
    needs_concatenation: bool = False
    """Whether some result is no sequence of views, so that CONCATENATION must join it."""


def estimate_tiles(
    schedule: LinearSchedule,
    end: int,
    axis: int,
    part_counts: Sequence[int],
    firsts: Collection[int],
    limits: EstimateLimits,
    halo_policy: EstimatedHalo = "recompute",
) -> Iterator[TileEstimate]:
    """Estimate the intervals that end before position `end` and begin at one of `firsts`, in each
    of these part counts; the shortest interval first.

    Intervals are left out if tiles cannot help, because the tensors that enter, or those that
    leave, need at least as many bytes as the untiled operators.
    """
    if not part_counts:
        return
    low = min(firsts, default=end)
    counts = np.array(part_counts, np.int64)
    walk = BackwardWalk(schedule, end, axis, counts, limits, halo_policy)
    live = LiveBytes(walk, low)
    for first in range(end - 1, low - 1, -1):
        if not walk.extend(first):
            return
        if first in firsts and walk.may_help(first):
            yield from _estimates_from(walk, live, first)


def _estimates_from(walk: BackwardWalk, live: LiveBytes, first: int) -> Iterator[TileEstimate]:
    """The estimates of the interval [first, walk.end) in every feasible part count."""
    schedule, counts = walk.schedule, walk.part_counts
    read = walk.ranges | walk.prologue.last_reader
    entering = [
        t for t in read if schedule.defined_at[t] < first and schedule.last_use[t] < walk.end
    ]
    copied = {t: ~walk.is_view(t) for t in walk.result_parts}
    copied_bytes = sum(schedule.bytes[t] * copied[t] for t in copied)
    # While copied parts are joined, each exists twice.
    head = walk.bytes_beside + np.maximum(live.peak(first, entering), 2 * copied_bytes)
    views = (sum(t in walk.ranges for t in entering) + len(walk.result_parts)) * counts
    tail = walk.tail + _VIEW_TAIL * views
    joins = _any(copied.values(), counts)
    cut = ((t, walk.is_cut(t, first)) for t in walk.ranges)
    slices = _any((is_cut & ~walk.is_view(t) for t, is_cut in cut if is_cut is not False), counts)
    slices |= bool(walk.taken_apart)
    for k in np.flatnonzero(walk.feasible).tolist():
        yield TileEstimate(
            interval=Interval(first, walk.end),
            split=Split(walk.axis, int(counts[k])),
            head=int(head[k]),
            tail=int(tail[k]),
            instructions=int(walk.instructions[k]),
            needs_slice=bool(slices[k]),
            needs_concatenation=bool(joins[k]),
        )


def _any(conditions: Iterable[Bools], part_counts: IntVector) -> Bools:
    """For each part count, whether one of the conditions holds."""
    return reduce(np.logical_or, conditions, np.zeros(len(part_counts), np.bool_))


__all__ = ["EstimateLimits", "EstimatedHalo", "TileEstimate", "estimate_tiles"]
