"""Patches: regions cut along rows and columns, where bands of rows keep too much.

    +----+----+----+      p x p patches over the first operators (MCUNetV2, section 3), and any
    |    |    |    |      region's rows and columns: a patch holds 1 / p of a band, but reads its
    +----+----+----+      halo on four sides, and its pieces are no runs of bytes: they are copied
    |    |    |    |

Bands of rows are nearly always the better, as TFLM sees them without copies; so a few whole models
are tried, where sizes alone leave patches a chance. It must not know what a trial came to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.estimate.tiles import EstimateLimits, estimate_tiles
from tflm_planner.tiling.evaluate.candidate import CLIMB, Candidate
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import COLUMNS, ROWS, TiledRegion

SIDES = ((2, 2), (3, 3), (4, 4), (5, 5), (1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (2, 16))
"""Parts of rows, of columns."""
_FAR = 1 << 60
MOST = 8
"""Patch stages tried."""
LARGEST = 1_200
"""Operators of a patch stage in tiles that is tried."""


def patch_stages(
    line: LinearSchedule, most: int, border: Border, allowed: int
) -> list[TiledRegion]:
    """Patch stages that may need less than `most` bytes (of head; of head and of what is added to
    the tail, where the arena is to be small) and add no more than `allowed` instructions, the most
    promising first."""
    found: list[tuple[int, int, tuple[int, int]]] = []
    for end in line.narrows[1:]:
        made = line.ops[end - 1].outputs
        if len(made) == 1 and len(made[0].shape or ()) == 4:
            stages = _PatchStages(line, end, allowed)
            found += [(n, end, s) for s in SIDES if (n := stages.bytes(s, most)) is not None]
    return [
        TiledRegion(tuple(range(end)), _splits(sides), border=border)
        for _, end, sides in sorted(found)[:MOST]
    ]


def _splits(sides: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((axis, n) for axis, n in zip((ROWS, COLUMNS), sides, strict=True) if n > 1)


@dataclass
class _PatchStages:
    """Patch stages of the operators before `end`."""

    line: LinearSchedule
    end: int
    allowed: int
    _known: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])

    def bytes(self, sides: tuple[int, int], most: int) -> int | None:
        """What goes in, what comes out, and a patch of the rest with its halos, about. None where
        it cannot be, costs too much, or is not less than `most`."""
        line, count = self.line, math.prod(sides)
        tail = 0
        if line.options.objective == "arena":
            tail = sum(line.tail[: self.end]) * (count - 1)
        least = line.crossing[0] + line.crossing[self.end] + tail
        if self.end * count > LARGEST or least + self._inner // count >= most:
            return None
        grown = 1.0
        for split in _splits(sides):
            grown *= self._growth(*split)
        if (grown - 1) * self._base > self.allowed:
            return None
        found = least + int(self._inner * grown / count)
        return found if found < most else None

    @cached_property
    def _base(self) -> int:
        """Instructions of the operators as they are."""
        return max(sum(self.line.instructions[: self.end]), 1)

    @cached_property
    def _inner(self) -> int:
        """Bytes that they need beside what enters."""
        needs = self.line.needs[1 : self.end]
        return max(max((n - self.line.crossing[0] for n in needs), default=0), 0)

    def _growth(self, axis: int, parts: int) -> float:
        """How many times the instructions are that the stage takes in parts along one axis;
        infinite where there are none for what is allowed."""
        if (axis, parts) not in self._known:
            limits = EstimateLimits(_FAR, self.allowed)
            made = estimate_tiles(self.line, self.end, axis, [parts], [0], limits)
            added = next((s.instructions for s in made), math.inf)
            self._known[axis, parts] = (self._base + added) / self._base
        return self._known[axis, parts]


def with_patches(trial: Candidate, stages: list[TiledRegion]) -> Iterator[Candidate]:
    """A whole model with each of these stages, and what else it has behind them."""
    for stage in stages:
        rest = [s for s in trial.schemes if min(s.ops) > stage.ops[-1]]
        yield replace(trial, schemes=(stage, *rest), bound=False, schedule="file", effort=CLIMB)


def along_columns(scheme: TiledRegion) -> Iterator[TiledRegion]:
    """Bands of rows cut along columns too; patches with other columns, or with none."""
    ((axis, parts), *more) = scheme.splits
    if axis != ROWS:
        return
    if not more:
        fewer = max(parts // 2, 2)
        yield from (replace(scheme, splits=((ROWS, n), (COLUMNS, 2))) for n in {fewer, parts})
        return
    ((_, columns),) = more
    yield replace(scheme, splits=((ROWS, parts),))
    for n in (columns - 1, columns + 1):
        if n > 1:
            yield replace(scheme, splits=((ROWS, parts), (COLUMNS, n)))
