"""What lies near a tiling: one scheme changed, left out, or split in other ways.

It knows schemes; it must not know what they are worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from tflm_planner.choice.moves.patching import along_columns
from tflm_planner.choice.trials.trial import Trial
from tflm_planner.passes.stream import EDGES, Loop
from tflm_planner.passes.tile import Scheme

_PARTS = (-2, -1, 1, 2)
_ENDS = (-2, -1, 1, 2)


def neighbours(trial: Trial, count: int) -> Iterator[Trial]:
    """Trials with one scheme changed. `count`: operators there are."""
    schemes = trial.schemes
    for k, scheme in enumerate(schemes):
        others = (*schemes[:k], *schemes[k + 1 :])
        for changed in _near(scheme, count, not trial.bound):
            ops = {*changed.ops}
            rest = [s for s in others if not ops & {*s.ops}]
            yield replace(trial, schemes=_sorted([*rest, changed]))
        if others:
            yield replace(trial, schemes=_sorted([*others]))
    for one, two in pairwise(schemes):
        if isinstance(one, Loop) or isinstance(two, Loop):
            continue
        if one.ops[-1] + 1 == two.ops[0] and one.splits == two.splits:
            joined = replace(one, ops=(*one.ops, *two.ops))
            rest = [s for s in schemes if s is not one and s is not two]
            yield replace(trial, schemes=_sorted([*rest, joined]))


def _near(scheme: Scheme | Loop, count: int, copies: bool) -> Iterator[Scheme | Loop]:
    """The region with other ends; with other parts and halos; with other rows and borders; where
    pieces may be copies, in patches."""
    first, end = scheme.ops[0], scheme.ops[-1] + 1
    for by in _ENDS:
        if 0 <= first + by < end:
            yield replace(scheme, ops=tuple(range(first + by, end)))
        if first < end + by <= count:
            yield replace(scheme, ops=tuple(range(first, end + by)))
    if isinstance(scheme, Loop):
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


def _sorted(schemes: list[Scheme | Loop]) -> tuple[Scheme | Loop, ...]:
    return tuple(sorted(schemes, key=lambda s: s.ops))
