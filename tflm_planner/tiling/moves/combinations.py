"""Several changes of a model at once, each of which was evaluated alone.

    model                                       100 KB   +9 %
    with its first region changed               120 KB   +7 %     so with both
    with its third region changed               110 KB   +6 %     120 KB   +4 %   is promised

Regions run one after the other, so that the peak is that of one region, while what they compute
twice adds up. A promise is not exact: regions share operands, and a plan has luck. This module must
not know how promises are tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.tilings import Region, Tiling


@dataclass(frozen=True)
class Combination:
    """A model with several changes, and what it promises."""

    candidate: Candidate
    bytes: int
    """The bytes that the search lowers."""
    slowdown: float
    """Instructions relative to the original."""


@dataclass(frozen=True)
class _RegionChange:
    """Some regions of a model replaced by others. bytes: those of the changed model. saved: by how
    much its slowdown is smaller."""

    old: frozenset[Region]
    new: tuple[Region, ...]
    bytes: int
    saved: float

    @property
    def operators(self) -> frozenset[int]:
        return frozenset(op for region in (*self.old, *self.new) for op in region.ops)


def combinations(
    model: Candidate, figures: Tiling, changed: Mapping[Candidate, Tiling]
) -> Iterator[Combination]:
    """For each limit of bytes the model with all changes that save most within it; only those with
    two changes or more, each once, the smallest promise first.

    figures: those of `model`. changed: models with one change of it, and their figures.
    """
    changes = [
        _region_change(model, figures, other, tiling)
        for other, tiling in changed.items()
        if tiling.slowdown < figures.slowdown
    ]
    changes.sort(key=lambda change: -change.saved)
    seen = set[tuple[Region, ...]]()
    for most in sorted({change.bytes for change in changes}):
        chosen = _apart([change for change in changes if change.bytes <= most])
        regions = _changed_regions(model, chosen)
        if len(chosen) > 1 and regions not in seen:
            seen.add(regions)
            largest = max(figures.bytes, *(change.bytes for change in chosen))
            slowdown = figures.slowdown - sum(change.saved for change in chosen)
            yield Combination(replace(model, regions=regions), largest, slowdown)


def _region_change(
    model: Candidate, figures: Tiling, other: Candidate, tiling: Tiling
) -> _RegionChange:
    new = tuple(region for region in other.regions if region not in model.regions)
    old = frozenset(model.regions) - frozenset(other.regions)
    return _RegionChange(old, new, tiling.bytes, figures.slowdown - tiling.slowdown)


def _apart(changes: Sequence[_RegionChange]) -> list[_RegionChange]:
    """The first change, and each later one that shares no operator with those before."""
    chosen, operators = list[_RegionChange](), set[int]()
    for change in changes:
        if not operators & change.operators:
            chosen.append(change)
            operators |= change.operators
    return chosen


def _changed_regions(model: Candidate, changes: Sequence[_RegionChange]) -> tuple[Region, ...]:
    old = frozenset[Region]().union(*(change.old for change in changes))
    kept = (region for region in model.regions if region not in old)
    new = (region for change in changes for region in change.new)
    return tuple(sorted((*kept, *new), key=lambda region: region.ops))
