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
from dataclasses import replace

from tflm_planner.choice.sketches.line import Line
from tflm_planner.choice.sketches.sketch import Limits, sketches
from tflm_planner.choice.trials.trial import CLIMB, Trial
from tflm_planner.passes.recipes import Border
from tflm_planner.passes.tile import COLUMNS, ROWS, Scheme

SIDES = ((2, 2), (3, 3), (4, 4), (5, 5), (1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (2, 16))
"""Parts of rows, of columns."""
_FAR = 1 << 60
MOST = 8
"""Patch stages tried."""
LARGEST = 1_200
"""Operators of a patch stage in tiles that is tried."""


def patch_stages(line: Line, best: int, border: Border, allowed: int) -> list[Scheme]:
    """Patch stages that may need less than `best` bytes of head and add no more than `allowed`
    instructions, the most promising first."""
    found: list[tuple[int, int, tuple[int, int]]] = []
    for end in line.narrows[1:]:
        known: dict[tuple[int, int], float | None] = {}
        for sides in SIDES:
            bytes_ = None
            if end * math.prod(sides) <= LARGEST:
                bytes_ = _estimate(line, end, sides, allowed, known)
            if bytes_ is not None and bytes_ < best:
                found.append((bytes_, end, sides))
    return [
        Scheme(tuple(range(end)), _splits(sides), border=border)
        for _, end, sides in sorted(found)[:MOST]
    ]


def _splits(sides: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((axis, n) for axis, n in zip((ROWS, COLUMNS), sides, strict=True) if n > 1)


def _estimate(
    line: Line,
    end: int,
    sides: tuple[int, int],
    allowed: int,
    known: dict[tuple[int, int], float | None],
) -> int | None:
    """Bytes of a stage, about: what goes in, what comes out, and a patch of the rest with its
    halos. None where it cannot be, or costs too much."""
    shape = line.ops[end - 1].outputs[0].shape or ()
    if len(shape) != 4 or len(line.ops[end - 1].outputs) != 1:
        return None
    grown = 1.0
    for split in _splits(sides):
        if split not in known:
            known[split] = _growth(line, end, *split)
        one = known[split]
        if one is None:
            return None
        grown *= one
    base = sum(line.instructions[:end])
    if (grown - 1) * base > allowed:
        return None
    ends = line.crossing[0] + line.crossing[end]
    inner = max((n - line.crossing[0] for n in line.needs[1:end]), default=0)
    return ends + int(max(inner, 0) * grown / math.prod(sides))


def _growth(line: Line, end: int, axis: int, parts: int) -> float | None:
    """How many times the instructions are that a stage takes in parts along one axis."""
    base = max(sum(line.instructions[:end]), 1)
    for sketch in sketches(line, end, axis, parts, [0], Limits(_FAR, _FAR)):
        return (base + sketch.instructions) / base
    return None


def with_patches(trial: Trial, stages: list[Scheme]) -> Iterator[Trial]:
    """A whole model with each of these stages, and what else it has behind them."""
    for stage in stages:
        rest = [s for s in trial.schemes if min(s.ops) > stage.ops[-1]]
        yield replace(trial, schemes=(stage, *rest), bound=False, schedule="file", effort=CLIMB)


def along_columns(scheme: Scheme) -> Iterator[Scheme]:
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
