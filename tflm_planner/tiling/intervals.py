"""Which intervals of a line are looked at, in tiles and in loops, and what sketches say of them.

    0 -- 1 -- 2 -- 3 -- 4 -- 5 -- 6      ending at 6: near by from anywhere, far off from narrow
              |---------------->|        places only, where little lives
                        |------>|

Only what may lower the bytes that are to be lowered becomes an item. It must not try any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import cast

from tflm_planner.tiling.estimate.loops import LoopEstimate, loops_allowed
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.estimate.tiles import (
    EstimateLimits,
    HaloPolicy,
    TileEstimate,
    estimate_tiles,
)
from tflm_planner.tiling.evaluate.evaluator import Evaluator
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segmentation import Segment
from tflm_planner.tiling.segments import looped_segment, tiled_segment
from tflm_planner.transforms.tile.tile import CHANNELS
from tflm_planner.transforms.tile.tiler import Halo

PARTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96)
"""Numbers of parts that are sketched, and all up to the last one that cut evenly: then what a tile
reads begins at an equal distance behind what the one before read, which is a multiple of 16 bytes
for some, and only those are views."""
LONGEST = 14
"""Operators of an interval at most: longer ones recompute more than they save."""
FARTHEST = 90
"""The same between two places where little lives: cells with several branches."""
NARROWS = 14
"""Narrow places at which intervals begin that end at another one."""
LARGE = 120
"""Operators of a model of which not every interval is looked at."""
_COARSE: dict[HaloPolicy, tuple[int, ...]] = {
    "no": (2, 4, 6, 8, 12, 16, 24, 32, 48),
    "blocks": (2, 4, 8, 16, 32),
    "rows": (2, 4, 8, 16, 32),
}
"""Numbers of parts that are sketched there; improvement looks at those between."""
_MISSES = 2
"""Numbers of parts in a row that lower no head any more, after which no more are looked at."""
_FAR = 1 << 62
_HALOS: tuple[tuple[Halo, HaloPolicy], ...] = (("recompute", "no"), ("merge", "blocks"))
"""What tiles do about halos, and how it is sketched."""


@dataclass(frozen=True)
class IntervalLimits:
    """What intervals are looked at for. order: of the operators. arena, tail: of the model as it
    is. allowed: instructions that may be added."""

    order: tuple[int, ...]
    arena: int
    tail: int
    allowed: int


@dataclass(frozen=True)
class IntervalsEndingAt:
    """Sketches of all intervals that end at one place, in tiles with halos `kept` so, or in loops:
    what a process is asked for at a time."""

    reach: IntervalLimits
    end: int
    kept: HaloPolicy | None

    def on(self, bench: Evaluator) -> list[TileEstimate] | list[LoopEstimate]:
        """Those that may help, whatever may be used."""
        line = bench.line(self.reach.order)
        found = _IntervalEstimates(line, self.end, self.reach)
        if not found.firsts:
            return []
        if self.kept is None:
            return list(bench.loops(self.reach.order).ending(self.end, found.firsts))
        return list(found.sketches(self.kept))


@dataclass(frozen=True)
class Intervals:
    """used: kinds of operators that the model has."""

    reach: IntervalLimits
    workers: Workers
    options: TilingOptions
    used: frozenset[str]

    def tiled(self, bound: bool) -> Iterator[Segment]:
        """All intervals in tiles that may help. bound: views lie in their parents, so that no
        halo is kept."""
        slices, joins = (self.options.allows(k, self.used) for k in ("SLICE", "CONCATENATION"))
        for halo, kept in _HALOS[:1] if bound else _HALOS:
            for made in self._sketched(kept):
                if (slices or not made.slices) and (joins or not made.joins):
                    yield tiled_segment(made, halo)

    def looped(self) -> Iterator[Segment]:
        """All intervals in loops that may help: the same whether views are bound or not."""
        if loops_allowed(self.options, self.used):
            for found in self._asked(None):
                yield from map(looped_segment, cast("list[LoopEstimate]", found))

    def _sketched(self, kept: HaloPolicy) -> list[TileEstimate]:
        """Sketches that may help, whatever may be used; the same for all searches of a line."""
        known = self.workers.bench.sketched(self.reach.order)
        if kept in known:
            return known[kept]
        found = cast("list[list[TileEstimate]]", self._asked(kept))
        known[kept] = [sketch for sketches in found for sketch in sketches]
        return known[kept]

    def _asked(self, kept: HaloPolicy | None) -> list[list[TileEstimate] | list[LoopEstimate]]:
        """By ends."""
        ends = range(1, len(self.reach.order) + 1)
        return self.workers.done([IntervalsEndingAt(self.reach, end, kept) for end in ends])


@dataclass(frozen=True)
class _IntervalEstimates:
    line: LinearSchedule
    end: int
    reach: IntervalLimits

    def sketches(self, kept: HaloPolicy) -> Iterator[TileEstimate]:
        """Intervals in tiles."""
        line = self.line
        for axis in _cut_axes(line, self.end):
            if axis == CHANNELS and len(line) > LARGE:
                continue
            for made in self._falling(axis, kept):
                helps = made.head < max(line.needs[made.first : self.end])
                if helps and made.head + made.tail - self._floor < self._most:
                    yield made

    def _falling(self, axis: int, kept: HaloPolicy) -> Iterator[TileEstimate]:
        """Sketches with ever more parts, while that lowers the head: it always adds to the rest."""
        size = (self.line.ops[self.end - 1].outputs[0].shape or ())[axis]
        numbers = _COARSE[kept] if len(self.line) > LARGE else _part_counts(size)
        numbers = [n for n in numbers if n <= size]
        limits = EstimateLimits(self._most, self.reach.allowed)
        made = estimate_tiles(self.line, self.end, axis, numbers, self.firsts, limits, kept)
        found = {(sketch.first, sketch.parts): sketch for sketch in made}
        lowest, misses = dict.fromkeys(self.firsts, _FAR), dict.fromkeys(self.firsts, 0)
        for parts, first in product(numbers, sorted(self.firsts, reverse=True)):
            sketch = found.get((first, parts))
            if misses[first] >= _MISSES:
                continue
            if sketch is None or sketch.head >= lowest[first]:
                misses[first] += 1
                continue
            lowest[first], misses[first] = sketch.head, 0
            yield sketch

    @cached_property
    def _floor(self) -> int:
        """Bytes below which no head comes: what enters the model, and what leaves it."""
        return max(self.line.crossing[0], self.line.crossing[-1])

    @property
    def _most(self) -> int:
        """Bytes of tail with which no tiling is better than the model as it is."""
        if self.line.options.objective != "arena":
            return _FAR
        return self.reach.arena - self.reach.tail - self._floor

    @cached_property
    def firsts(self) -> frozenset[int]:
        """Where intervals that end here may begin: anywhere near by, and at narrow places far
        off. In large models narrow places alone are looked at: what lives across the ends of an
        interval is a floor of its head."""
        line, end = self.line, self.end
        near = range(max(0, end - LONGEST), end)
        narrow = end in line.narrows
        far = [p for p in line.narrows if end - FARTHEST <= p < end][-NARROWS:] if narrow else []
        every = {*far} if len(line) > LARGE else {*near, *far}
        high = next((p for p in range(end - 1, -1, -1) if line.needs[p] > self._floor), -1)
        return frozenset(p for p in every if p <= high)


def _part_counts(size: int) -> list[int]:
    """Numbers of parts for so many rows."""
    even = (n for n in range(PARTS[0], PARTS[-1]) if size % n == 0)
    return sorted({*PARTS, *even})


def _cut_axes(line: LinearSchedule, end: int) -> list[int]:
    """Axes along which intervals that end here are cut: the outermost one, where parts are runs of
    bytes, and the innermost one, which for images are channels."""
    outputs = line.ops[end - 1].outputs
    if len(outputs) != 1:  # none, of ASSIGN_VARIABLE, or several
        return []
    shape = outputs[0].shape or ()
    axes = [axis for axis, size in enumerate(shape) if size > 1 and (axis > 0 or len(shape) < 4)]
    return list(dict.fromkeys((*axes[:1], *axes[-1:])))
