"""Variants of a candidate: one region changed, left out, joined with the next, or split
differently.

    regions       the nearest to the peak first    each gives its first variant, then each its
    |             |                                second one, and so on, so that all regions have
    kinds of      in the order of `SMALLER` or     had a turn before a search runs out of work
    changes       of `FASTER`

It knows regions; it must not know what they are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product, zip_longest

from tflm_planner.tiling.budget import DEFAULT_BUDGET
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.moves.patches import along_columns
from tflm_planner.tiling.tilings import Region
from tflm_planner.transforms.row_loop import LOOP_BORDERS, LoopedRegion
from tflm_planner.transforms.tile.box_plan import Split

_HALOS = ("merge", "blocks", "recompute")
"""Those that compute nothing twice come first."""


def neighbours(
    candidate: Candidate,
    count: int,
    kinds: Sequence[Change],
    peak: int | None = None,
    steps: Sequence[int] = DEFAULT_BUDGET.neighbour_steps,
    growth_steps: Sequence[int] = DEFAULT_BUDGET.growth_steps,
) -> Iterator[Candidate]:
    """Candidates with one region changed, left out, or joined with the next.

    count: operators of the model. kinds: `SMALLER`, `FASTER` or `RESIZED`. peak: the operator at
    the peak of memory; None if it is not known. steps: differences to try for ends, part counts and
    rows, in ascending order. growth_steps: differences of the growth of parts, in per cent.
    """
    regions = candidate.regions
    nearest = sorted(range(len(regions)), key=lambda k: _distance(regions[k], peak))
    variants = [_variants(_Site(candidate, k, count, steps, growth_steps), kinds) for k in nearest]
    yield from filter(None, chain.from_iterable(zip_longest(*variants)))


def _distance(region: Region, peak: int | None) -> int:
    """Operators between a region and the one at the peak; 0 if the region has it."""
    if peak is None:
        return 0
    return max(region.ops[0] - peak, peak - region.ops[-1], 0)


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


@dataclass(frozen=True)
class _Site:
    """The region of a candidate that changes. The other fields are as for `neighbours`."""

    candidate: Candidate
    index: int
    count: int
    steps: Sequence[int]
    growth_steps: Sequence[int]

    @property
    def region(self) -> Region:
        return self.candidate.regions[self.index]

    @property
    def others(self) -> tuple[Region, ...]:
        regions = self.candidate.regions
        return (*regions[: self.index], *regions[self.index + 1 :])

    def changed(self, regions: Iterable[Region]) -> Iterator[Candidate]:
        """The candidate with each of these regions in place of this one, and without those that
        would share operators with it."""
        for region in regions:
            ops = {*region.ops}
            disjoint = [r for r in self.others if not ops & {*r.ops}]
            yield replace(self.candidate, regions=_sort_regions([*disjoint, region]))


Change = Callable[[_Site], Iterator[Candidate]]
"""Changes of one kind at one region."""


def _variants(site: _Site, kinds: Sequence[Change]) -> Iterator[Candidate]:
    for kind in kinds:
        yield from kind(site)


def _with_parts(site: _Site, steps: Sequence[int]) -> Iterator[Candidate]:
    """Other part counts; other rows at a time of a loop."""
    region = site.region
    if isinstance(region, LoopedRegion):
        rows = [r for step in steps if (r := region.rows + step) > 0]
        return site.changed(replace(region, rows=r) for r in rows)
    outer, *inner = region.splits
    parts = [n for step in steps if (n := outer.parts + step) > 1]
    return site.changed(replace(region, splits=(outer._replace(parts=n), *inner)) for n in parts)


def _uneven_parts(site: _Site) -> Iterator[Candidate]:
    """Parts that grow or shrink along their axis, one less or as many: what the first tiles read is
    free while the later ones run, so that these may be larger."""
    region = site.region
    if isinstance(region, LoopedRegion):
        return
    outer, *inner = region.splits
    for parts, step in product((outer.parts - 1, outer.parts), site.growth_steps):
        growth = outer.growth + step
        if parts > 1 and abs(growth) < 100:
            split = Split(outer.axis, parts, growth)
            yield from site.changed([replace(region, splits=(split, *inner))])


def _fewest_parts(site: _Site) -> Iterator[Candidate]:
    return _with_parts(site, site.steps[:1])


def _other_parts(site: _Site) -> Iterator[Candidate]:
    return _with_parts(site, site.steps[1:])


def _ends(site: _Site) -> Iterator[Candidate]:
    """Other first and last operators."""
    first, end = site.region.ops[0], site.region.ops[-1] + 1
    for step in site.steps:
        if 0 <= first + step < end:
            yield from site.changed([replace(site.region, ops=tuple(range(first + step, end)))])
        if first < end + step <= site.count:
            yield from site.changed([replace(site.region, ops=tuple(range(first, end + step)))])


def _halos(site: _Site) -> Iterator[Candidate]:
    """Other halos of tiles along one axis; other borders of a loop."""
    region = site.region
    if isinstance(region, LoopedRegion):
        borders = [border for border in LOOP_BORDERS if border != region.border]
        return site.changed(replace(region, border=border) for border in borders)
    halos = [halo for halo in _HALOS if halo != region.halo and len(region.splits) == 1]
    return site.changed(replace(region, halo=halo) for halo in halos)


def _directions(site: _Site) -> Iterator[Candidate]:
    """Tiles in the other order, along columns too, or with halos made at another time."""
    region = site.region
    if isinstance(region, LoopedRegion):
        return
    yield from site.changed([replace(region, backward=not region.backward)])
    if len(region.splits) > 1 or not site.candidate.bind_views:  # those tiles may be copies
        yield from site.changed(along_columns(region))
    if region.halo != "recompute":
        yield from site.changed([replace(region, eager=not region.eager)])


def _left_out(site: _Site) -> Iterator[Candidate]:
    if site.others:
        yield replace(site.candidate, regions=site.others)


def _joined(site: _Site) -> Iterator[Candidate]:
    """One region of this one and of the next, where both are cut alike."""
    before, *rest = site.candidate.regions[site.index :]
    if not rest or isinstance(before, LoopedRegion) or isinstance(rest[0], LoopedRegion):
        return
    after = rest[0]
    if before.ops[-1] + 1 == after.ops[0] and before.splits == after.splits:
        yield from site.changed([replace(before, ops=(*before.ops, *after.ops))])


SMALLER = (_other_parts, _ends, _halos, _directions, _left_out, _joined, _fewest_parts)
"""Changes of a model that is to become smaller."""
FASTER = (_halos, _fewest_parts, _left_out, _joined, _directions, _other_parts, _ends)
"""Changes of a model that is to become faster, those that gained most for each attempt first:
hypervolumes of fronts with own operators are 0.235 in place of 0.186 for mcunet_in3_176, 0.552 in
place of 0.538 for squeezenet_11 and 0.314 in place of 0.309 for mobilenet_v2_030_80."""
RESIZED = (_uneven_parts, _fewest_parts, _other_parts)
"""Changes of the number and the sizes of parts."""


def _sort_regions(regions: list[Region]) -> tuple[Region, ...]:
    return tuple(sorted(regions, key=lambda r: r.ops))
