"""Regions that take fewer instructions than the operators that they replace, put into a model.

    model             [ a ]       [ b ]   [ c ]
    saving regions         [ d ]   [ e ]          [  f  ]     f overlaps nothing: it is added
                                                             e overlaps b alone: it replaces b
    changed           [ a ][ d ]   [ e ]  [ c ]  [  f  ]

Regions run one after the other, so that what one of them saves is saved in each model. This module
must not know which regions save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.tilings import Region


def with_saving_regions(candidate: Candidate, saving: Sequence[Region]) -> Candidate:
    """The candidate with all of these regions that fit, those that save most first: one that shares
    operators with one region at most, which it replaces, and with none that was put in before."""
    regions, put_in = [*candidate.regions], list[Region]()
    for region in saving:
        replaced = [r for r in regions if _share_operators(r, region)]
        is_taken = any(_share_operators(r, region) for r in put_in)
        if len(replaced) <= 1 and not is_taken:
            regions = [r for r in regions if r not in replaced]
            put_in.append(region)
    return replace(candidate, regions=tuple(sorted([*regions, *put_in], key=lambda r: r.ops)))


def _share_operators(a: Region, b: Region) -> bool:
    return not {*a.ops}.isdisjoint(b.ops)
