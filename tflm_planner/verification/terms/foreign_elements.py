"""Finds the operator at fault once two models are known to differ: the first that makes an element
which the original never makes, and on which what differs depends.

Tiles make elements that the original never makes, too, such as the border of a window that reaches
beyond its tile, which are cut off later. So elements are replaced by others, and the result runs
again: what changes nothing is not at fault. It must not know how models run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Op
from tflm_planner.ops.terms.field import LANES
from tflm_planner.ops.terms.values import Symbols, Values

Names = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ForeignElements:
    """Elements of an operator's results which the original never makes. places: their positions,
    where the results follow each other."""

    op: Op
    places: npt.NDArray[np.intp]


class KnownElements:
    """The elements that the original makes. They are added first, and looked up then."""

    def __init__(self) -> None:
        self._seen: list[Names] = []
        self._sorted: Names | None = None

    def add(self, values: Iterable[Values]) -> None:
        """Add elements."""
        self._seen.append(_names(values))

    def foreign(self, op: Op, results: Sequence[Values]) -> ForeignElements:
        """The elements of these results that were never added. Known values are never foreign."""
        if self._sorted is None:
            self._sorted = np.unique(np.concatenate(self._seen))
        names = _names(v for v in results if not v.known)
        missing = self._sorted[np.searchsorted(self._sorted[:-1], names)] != names
        return ForeignElements(op, np.flatnonzero(missing))


def _names(values: Iterable[Values]) -> Names:
    """Elements as 64-bit numbers that identify them with high probability. Known values are left
    out."""
    lanes = [v.data.reshape(LANES, -1)[:2].astype(np.uint64) for v in values if not v.known]
    names = [a[0] << np.uint64(32) | a[1] for a in lanes]
    return np.concatenate(names) if names else np.zeros(0, np.uint64)


def replaced(results: Sequence[Values], foreign: ForeignElements, symbols: Symbols) -> list[Values]:
    """The results of an operator with other elements in the foreign places."""
    others, first = list[Values](), 0
    for values in results:
        if values.known:
            others.append(values)
            continue
        inside = foreign.places[(foreign.places >= first) & (foreign.places < first + values.size)]
        lanes = values.data.reshape(LANES, -1).copy()
        lanes[:, inside - first] = symbols.of_name((inside.size,), "another", first).data
        others.append(Values(lanes.reshape(values.data.shape), False))
        first += values.size
    return others


Matters = Callable[[Sequence[ForeignElements]], bool]
"""Whether what differs depends on any of these elements."""


def first_that_matters(
    found: Sequence[ForeignElements], matters: Matters
) -> ForeignElements | None:
    """The first operator, and its first element, that matter; None if none does. `found`: in the
    order in which they are made."""
    count = _fewest(len(found), lambda n: matters(found[:n]))
    if count is None:
        return None
    before, last = found[: count - 1], found[count - 1]

    def of(places: npt.NDArray[np.intp]) -> ForeignElements:
        return replace(last, places=places)

    end = _fewest(last.places.size, lambda n: matters([*before, of(last.places[:n])]))
    return of(last.places[(end or 1) - 1 :][:1])


def _fewest(most: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest number from 1 to `most` for which something holds that then holds for all larger
    ones; None if there is none. Small ones are tried first."""
    end = 1
    while end < most and not holds(end):
        end *= 2
    if most == 0 or (end >= most and not holds(most)):
        return None
    tried = range(end // 2 + 1, min(end, most))
    return tried.start + bisect_left(tried, True, key=holds)
