"""What lies near a tiling: one scheme changed, left out, or split in other ways.

It knows schemes; it must not know what they are worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.moves.patches import along_columns
from tflm_planner.transforms.row_loop import EDGES, LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion

_PARTS = (-2, -1, 1, 2)
_ENDS = (-2, -1, 1, 2)


def neighbours(trial: Candidate, count: int) -> Iterator[Candidate]:
    """Trials with one scheme changed. `count`: operators there are."""
    schemes = trial.schemes
    for k, scheme in enumerate(schemes):
        others = (*schemes[:k], *schemes[k + 1 :])
        for changed in _changed_regions(scheme, count, not trial.bound):
            ops = {*changed.ops}
            rest = [s for s in others if not ops & {*s.ops}]
            yield replace(trial, schemes=_sorted([*rest, changed]))
        if others:
            yield replace(trial, schemes=_sorted([*others]))
    for one, two in pairwise(schemes):
        if isinstance(one, LoopedRegion) or isinstance(two, LoopedRegion):
            continue
        if one.ops[-1] + 1 == two.ops[0] and one.splits == two.splits:
            joined = replace(one, ops=(*one.ops, *two.ops))
            rest = [s for s in schemes if s is not one and s is not two]
            yield replace(trial, schemes=_sorted([*rest, joined]))


def _changed_regions(
    scheme: TiledRegion | LoopedRegion, count: int, copies: bool
) -> Iterator[TiledRegion | LoopedRegion]:
    """The region with other ends; with other parts and halos; with other rows and borders; where
    pieces may be copies, in patches."""
    first, end = scheme.ops[0], scheme.ops[-1] + 1
    for by in _ENDS:
        if 0 <= first + by < end:
            yield replace(scheme, ops=tuple(range(first + by, end)))
        if first < end + by <= count:
            yield replace(scheme, ops=tuple(range(first, end + by)))
    if isinstance(scheme, LoopedRegion):
        yield from (replace(scheme, border=edge) for edge in EDGES if edge != scheme.border)
        yield from (replace(scheme, rows=r) for by in _PARTS if (r := scheme.rows + by) > 0)
        return
    ((axis, parts), *more) = scheme.splits
    for by in _PARTS:
        if parts + by > 1:
            yield replace(scheme, splits=((axis, parts + by), *more))
    yield replace(scheme, backward=not scheme.backward)
    yield from along_columns(scheme) if more or copies else ()
    if scheme.halo != "recompute":
        yield replace(scheme, eager=not scheme.eager)
    if not more:
        for halo in ("recompute", "blocks", "merge"):
            if halo != scheme.halo:
                yield replace(scheme, halo=halo)


def _sorted(schemes: list[TiledRegion | LoopedRegion]) -> tuple[TiledRegion | LoopedRegion, ...]:
    return tuple(sorted(schemes, key=lambda s: s.ops))
