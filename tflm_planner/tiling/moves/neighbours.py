"""Variants of a candidate: one region changed, left out, joined with the next, or split
differently.

It knows regions; it must not know what they are worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product

from tflm_planner.tiling.budget import DEFAULT_BUDGET
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.moves.patches import along_columns
from tflm_planner.tiling.tilings import Region
from tflm_planner.transforms.row_loop import LOOP_BORDERS, LoopedRegion
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion


def neighbours(
    candidate: Candidate, count: int, steps: Sequence[int] = DEFAULT_BUDGET.neighbour_steps
) -> Iterator[Candidate]:
    """Candidates with one region changed, left out, or joined with the next. count: operators of
    the model. steps: differences to try for ends, part counts and rows."""
    regions = candidate.regions
    for k, region in enumerate(regions):
        others = (*regions[:k], *regions[k + 1 :])
        for changed in _changed_regions(region, count, not candidate.bind_views, steps):
            ops = {*changed.ops}
            disjoint = [r for r in others if not ops & {*r.ops}]
            yield replace(candidate, regions=_sort_regions([*disjoint, changed]))
        if others:
            yield replace(candidate, regions=_sort_regions([*others]))
    for before, after in pairwise(regions):
        if isinstance(before, LoopedRegion) or isinstance(after, LoopedRegion):
            continue
        if before.ops[-1] + 1 == after.ops[0] and before.splits == after.splits:
            joined = replace(before, ops=(*before.ops, *after.ops))
            rest = [r for r in regions if r is not before and r is not after]
            yield replace(candidate, regions=_sort_regions([*rest, joined]))


def loops_otherwise(
    candidate: Candidate, steps: Sequence[int] = DEFAULT_BUDGET.neighbour_steps
) -> Iterator[Candidate]:
    """Candidates of which one loop has other rows and another border at once: borders differ in
    bytes and instructions, and more rows at a time pay for a dearer one."""
    regions = candidate.regions
    for k, region in enumerate(regions):
        if not isinstance(region, LoopedRegion):
            continue
        for border, step in product(LOOP_BORDERS, steps):
            if border != region.border and region.rows + step > 0:
                changed = replace(region, rows=region.rows + step, border=border)
                yield replace(candidate, regions=(*regions[:k], changed, *regions[k + 1 :]))


def _changed_regions(
    region: Region, count: int, copies: bool, steps: Sequence[int]
) -> Iterator[Region]:
    """The region with other ends; a tiled one also with other part counts and halos, a loop also
    with other rows and borders. copies: whether parts may be copies, like those of patches."""
    first, end = region.ops[0], region.ops[-1] + 1
    for step in steps:
        if 0 <= first + step < end:
            yield replace(region, ops=tuple(range(first + step, end)))
        if first < end + step <= count:
            yield replace(region, ops=tuple(range(first, end + step)))
    if isinstance(region, LoopedRegion):
        yield from (replace(region, border=edge) for edge in LOOP_BORDERS if edge != region.border)
        yield from (replace(region, rows=r) for step in steps if (r := region.rows + step) > 0)
        return
    yield from _split_otherwise(region, copies, steps)


def _split_otherwise(
    region: TiledRegion, copies: bool, steps: Sequence[int]
) -> Iterator[TiledRegion]:
    """The same operators with other part counts, halos and orders of tiles."""
    outer, *inner = region.splits
    for step in steps:
        if outer.parts + step > 1:
            yield replace(region, splits=(Split(outer.axis, outer.parts + step), *inner))
    yield replace(region, backward=not region.backward)
    yield from along_columns(region) if inner or copies else ()
    if region.halo != "recompute":
        yield replace(region, eager=not region.eager)
    if not inner:
        for halo in ("recompute", "blocks", "merge"):
            if halo != region.halo:
                yield replace(region, halo=halo)


def _sort_regions(regions: list[Region]) -> tuple[Region, ...]:
    return tuple(sorted(regions, key=lambda r: r.ops))
