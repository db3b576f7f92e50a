"""Patches: regions that are cut along rows and columns, for models in which bands of rows need too
many bytes.

    +----+----+----+      p x p patches over the first operators (MCUNetV2, section 3), or rows
    |    |    |    |      and columns of any region: a patch needs 1 / p of a band, but reads its
    +----+----+----+      halo on four sides, and it is not contiguous: it must be copied
    |    |    |    |

In TFLM bands of rows need no copies, so they are nearly always better. Only a few whole models with
patches are evaluated, if their sizes leave a chance. This module must not know evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from tflm_planner.ops.window import COLUMNS, ROWS
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.estimate.tiles import EstimateLimits, estimate_tiles
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import TiledRegion

_NO_LIMIT = 1 << 60


def patch_stages(
    schedule: LinearSchedule, most: int, border: Border, allowed_instructions: int
) -> list[TiledRegion]:
    """Patch stages that may need less than `most` bytes and add at most `allowed_instructions`, the
    most promising first. The bytes are those of the head; if the objective is the arena, the bytes
    added to the tail are included."""
    budget = schedule.options.search_budget
    splits_to_try = [_splits(*sides) for sides in budget.patch_sides]
    promising: list[tuple[int, int, tuple[Split, ...]]] = []
    for end in schedule.narrow_positions[1:]:
        outputs = schedule.ops[end - 1].outputs
        if len(outputs) == 1 and len(outputs[0].shape or ()) == 4:
            stages = _PatchStages(schedule, end, allowed_instructions)
            sizes = ((stages.estimate(splits, most), splits) for splits in splits_to_try)
            promising += [(size, end, splits) for size, splits in sizes if size is not None]
    return [
        TiledRegion(tuple(range(end)), splits, border=border)
        for _, end, splits in sorted(promising)[: budget.patch_stages]
    ]


def _splits(rows: int, columns: int) -> tuple[Split, ...]:
    return tuple(s for s in (Split(ROWS, rows), Split(COLUMNS, columns)) if s.parts > 1)


@dataclass
class _PatchStages:
    """Patch stages of the operators before position `end`."""

    schedule: LinearSchedule
    end: int
    allowed_instructions: int
    _known_factors: dict[Split, float] = field(default_factory=dict[Split, float])

    def estimate(self, splits: tuple[Split, ...], most: int) -> int | None:
        """Estimated bytes: the input, the result, and one patch of all tensors in between with its
        halo. None if that is not below `most`, or if the stage is impossible or too slow."""
        schedule, patches = self.schedule, math.prod(split.parts for split in splits)
        tail = 0
        if schedule.options.objective == "arena":
            tail = sum(schedule.tail[: self.end]) * (patches - 1)
        least = schedule.crossing_bytes[0] + schedule.crossing_bytes[self.end] + tail
        if least + self._inner_bytes // patches >= most:
            return None
        factor = 1.0
        for split in splits:
            factor *= self._instruction_factor(split)
        if (factor - 1) * self._untiled_instructions > self.allowed_instructions:
            return None
        size = least + int(self._inner_bytes * factor / patches)
        return size if size < most else None

    @cached_property
    def _untiled_instructions(self) -> int:
        return max(sum(self.schedule.instructions[: self.end]), 1)

    @cached_property
    def _inner_bytes(self) -> int:
        """Bytes that the untiled operators need in addition to the input."""
        live = self.schedule.live_bytes[1 : self.end]
        return max(max((n - self.schedule.crossing_bytes[0] for n in live), default=0), 0)

    def _instruction_factor(self, split: Split) -> float:
        """Instructions of the stage cut along one axis, relative to the untiled stage. Infinite if
        that is impossible or takes more than is permitted."""
        if split not in self._known_factors:
            limits = EstimateLimits(_NO_LIMIT, self.allowed_instructions)
            estimates = estimate_tiles(
                self.schedule, self.end, split.axis, [split.parts], [0], limits
            )
            added = next((e.instructions for e in estimates), math.inf)
            untiled = self._untiled_instructions
            self._known_factors[split] = (untiled + added) / untiled
        return self._known_factors[split]


def with_patches(candidate: Candidate, stages: list[TiledRegion]) -> Iterator[Candidate]:
    """For each stage, a candidate that begins with it and keeps the regions that come after it."""
    for stage in stages:
        later = [r for r in candidate.regions if min(r.ops) > stage.ops[-1]]
        regions = (stage, *later)
        yield replace(
            candidate, regions=regions, bind_views=False, tile_order="file", effort=Effort.CLIMB
        )


def along_columns(region: TiledRegion) -> Iterator[TiledRegion]:
    """Bands of rows, also cut along columns; patches with other numbers of columns, or none."""
    outer, *inner = region.splits
    if outer.axis != ROWS:
        return
    if not inner:
        fewer = max(outer.parts // 2, 2)
        for parts in {fewer, outer.parts}:
            yield replace(region, splits=(Split(ROWS, parts), Split(COLUMNS, 2)))
        return
    (columns,) = inner
    yield replace(region, splits=(outer,))
    for parts in (columns.parts - 1, columns.parts + 1):
        if parts > 1:
            yield replace(region, splits=(outer, Split(COLUMNS, parts)))
