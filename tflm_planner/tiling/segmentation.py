"""Finds the best split of a schedule into segments, by dynamic programming.

    0 ---- 3 ------- 9 -- 10 -- 11 ------- 16     each stretch is one segment, in tiles or in a
                                                  loop, or one operator that runs untiled

Under a cap on the head, the bytes of tail and the instructions that segments add can be summed. So
the least tail for every number of instructions is found exactly, position by position; over all
caps that matter this is the whole Pareto front of arena against latency. Two things are not exact:
instructions are counted in steps (rounded up), and segments affect each other at their borders,
which no sum shows. It computes with numbers alone; how a segment runs is only part of its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.tiling.estimate.interval import Interval
from tflm_planner.transforms.row_loop import LoopBorder
from tflm_planner.transforms.tile.box_plan import HaloPolicy, Split
from tflm_planner.transforms.tile.operator_tiles import Border

Ints = npt.NDArray[np.int64]


class InTiles(NamedTuple):
    """The tiles of a segment."""

    split: Split
    halo: HaloPolicy
    """How rows that several tiles read are handled (`transforms.tile.tiler`)."""


class InLoop(NamedTuple):
    """The loop of a segment."""

    rows: int
    """Rows of its result that one turn makes."""
    border: LoopBorder
    """How the image's borders are handled."""


@dataclass(frozen=True, slots=True)
class SegmentKey:
    """How an interval of the schedule runs."""

    interval: Interval
    form: InTiles | InLoop


@dataclass(frozen=True, slots=True)
class Segment:
    """An interval in tiles or in a loop, with its figures."""

    key: SegmentKey
    head: int
    """Bytes of the head while it runs."""
    tail: int
    """Bytes that it adds to the tail."""
    instructions: int
    """Instructions that it adds."""
    is_evaluated: bool = False
    """Whether the figures come from an evaluation, not from an estimate."""
    border: Border = "waste"
    """How tiles get the padding of the image's border; in an evaluated segment, the best way."""

    @property
    def interval(self) -> Interval:
        """The interval."""
        return self.key.interval


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A split of the whole schedule: these segments, and single untiled operators between them."""

    segments: tuple[Segment, ...]
    head: int
    """Bytes of the head: the maximum over all its parts."""
    tail: int
    """Bytes that the segments add to the tail."""
    instructions: int
    """Instructions that the segments add."""

    @property
    def keys(self) -> tuple[SegmentKey, ...]:
        """The keys of the segments."""
        return tuple(s.key for s in self.segments)

    @property
    def is_evaluated(self) -> bool:
        """Whether the figures of all segments come from evaluations."""
        return all(s.is_evaluated for s in self.segments)


class Segmenter:
    """All known segments, and the best segmentations for any cap on the head.

    live_bytes: head of each operator that runs untiled. allowed_instructions: instructions that a
    segmentation may add.
    """

    def __init__(
        self,
        live_bytes: Sequence[int],
        allowed_instructions: int,
        budget: SearchBudget = DEFAULT_BUDGET,
    ) -> None:
        self._live_bytes, self._count = list(live_bytes), len(live_bytes)
        self._allowed, self._steps = max(allowed_instructions, 1), budget.instruction_steps
        self._segments_ending_at: list[dict[SegmentKey, Segment]] = [
            {} for _ in range(self._count + 1)
        ]
        self._solved: dict[tuple[int, frozenset[SegmentKey]], list[Segmentation]] = {}
        self._cached_table: _Table | None = None

    def add(self, segment: Segment) -> None:
        """Add a segment; it replaces the one with the same key. A segment that alone is too slow is
        removed instead."""
        replaced = self._segments_ending_at[segment.interval.end].get(segment.key)
        if segment.instructions > self._allowed:
            self.remove(segment)
            return
        self._segments_ending_at[segment.interval.end][segment.key] = segment
        if replaced is None or (segment.head, segment.tail, segment.instructions) < (
            max(segment.head, replaced.head),
            max(segment.tail, replaced.tail),
            max(segment.instructions, replaced.instructions),
        ):  # one of its figures got better
            self._solved = {
                key: solved
                for key, solved in self._solved.items()
                if key[0] < segment.head or segment.key in key[1]
            }
        self._forget_segmentations_with(segment, replaced)

    def remove(self, segment: Segment) -> None:
        """Remove the segment of this key."""
        removed = self._segments_ending_at[segment.interval.end].pop(segment.key, None)
        self._forget_segmentations_with(segment, removed)

    def drop_estimates(self) -> None:
        """Remove every segment that was not evaluated."""
        self._segments_ending_at = [
            {key: s for key, s in ending.items() if s.is_evaluated}
            for ending in self._segments_ending_at
        ]
        self._solved.clear()
        self._cached_table = None

    def _forget_segmentations_with(self, segment: Segment, replaced: Segment | None) -> None:
        """Drop the cached solutions that contain the changed segment; others stay valid."""
        self._cached_table = None
        if replaced is None or not self._solved:
            return
        self._solved = {
            key: solved
            for key, solved in self._solved.items()
            if not any(
                s.key == segment.key for segmentation in solved for s in segmentation.segments
            )
        }

    def head_caps(self) -> list[int]:
        """Caps on the head that may give different segmentations, the lowest first."""
        segments = (s for ending in self._segments_ending_at for s in ending.values())
        heads = {s.head for s in segments} | set(self._live_bytes)
        return sorted(head for head in heads if head <= max(self._live_bytes, default=0))

    def best(self, cap: int) -> list[Segmentation]:
        """The segmentations with a head of at most `cap` bytes and the least tail for their
        instructions, the slowest first. Empty if none is within the cap."""
        return self.best_without(cap, frozenset())

    def best_without(self, cap: int, banned: frozenset[SegmentKey]) -> list[Segmentation]:
        """`best` without the segments that have one of the banned keys."""
        if (cap, banned) not in self._solved:
            self._solved[cap, banned] = self._solve(cap, banned)
        return self._solved[cap, banned]

    def _solve(self, cap: int, banned: frozenset[SegmentKey]) -> list[Segmentation]:
        # Imported here because compiled code takes long to import.
        from tflm_planner.tiling.segmentation_kernel import IMPOSSIBLE, best_segmentations

        table = self._table()
        usable = np.ones(len(table.segments), np.bool_)
        if banned:
            usable[[k for k, s in enumerate(table.segments) if s.key in banned]] = False
        least_tail, choice = best_segmentations(
            table.live_bytes, table.starts, table.figures, usable, cap, self._steps
        )
        solved: list[Segmentation] = []
        steps = self._steps
        while steps >= 0 and least_tail[steps] < IMPOSSIBLE:
            fewest = int(np.argmax(least_tail == least_tail[steps]))  # steps for this tail
            solved.append(self._trace_back(table, choice, fewest))
            steps = fewest - 1
        return solved

    def _trace_back(self, table: _Table, choice: Ints, steps: int) -> Segmentation:
        """The segmentation that uses `steps` instruction steps, from the table of choices."""
        end, segments, head = self._count, list[Segment](), 0
        while end > 0:
            chosen = int(choice[end, steps])
            if chosen < 0:
                head = max(head, self._live_bytes[end - 1])
                end -= 1
                continue
            segment = table.segments[chosen]
            segments.append(segment)
            head, end = max(head, segment.head), segment.interval.first
            steps -= int(table.figures[3, chosen])
        segments.reverse()
        return Segmentation(
            tuple(segments),
            head,
            sum(s.tail for s in segments),
            sum(s.instructions for s in segments),
        )

    def _table(self) -> _Table:
        """All segments as arrays; cached until a segment is added or removed."""
        if self._cached_table is None:
            segments = [s for ending in self._segments_ending_at for s in ending.values()]
            starts = np.cumsum([0, *map(len, self._segments_ending_at)])
            steps = [-(-max(s.instructions, 0) * self._steps // self._allowed) for s in segments]
            rows = [
                (s.interval.first, s.head, s.tail, u) for s, u in zip(segments, steps, strict=True)
            ]
            figures = np.array(rows, np.int64).reshape(-1, 4).T
            self._cached_table = _Table(
                segments,
                np.array(self._live_bytes, np.int64),
                starts.astype(np.int64),
                np.ascontiguousarray(figures),
            )
        return self._cached_table


@dataclass(frozen=True)
class _Table:
    """The input of the dynamic program; see `best_segmentations`."""

    segments: list[Segment]
    """Sorted by their ends, then in the order in which they were added."""
    live_bytes: Ints
    starts: Ints
    figures: Ints
