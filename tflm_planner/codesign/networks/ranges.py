"""The ranges of a model's values, and which values need the same one.

    CONCATENATION of int8 copies its operands: their ranges, and that of its result, must be equal.
    What a pool or a reshape makes has the range of its operand, so it passes this on.

Values are numbered in the order in which a model under construction requests them. It must not know
operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

LEAST_RANGE = 1e-6
"""The range of a value that is always zero."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The smallest and the largest number of a value. The range includes zero."""

    low: float
    high: float

    @property
    def scale(self) -> float:
        """The scale of int8 for this range, which has 255 steps."""
        return max(self.high - self.low, LEAST_RANGE) / 255

    @property
    def zero_point(self) -> int:
        """The int8 that stands for zero."""
        return int(np.clip(round(-128 - self.low / self.scale), -128, 127))


class ValueSets:
    """The numbers of values, in disjoint sets of those that need the same range (a union-find in
    which the smallest number names its set)."""

    def __init__(self) -> None:
        self._parents: list[int] = []

    def add(self) -> int:
        """Add a value, alone in its set, and return its number."""
        self._parents.append(len(self._parents))
        return len(self._parents) - 1

    def connect(self, values: Iterable[int]) -> None:
        """Unite the sets of these values."""
        names = [self.name(value) for value in values]
        for name in names:
            self._parents[name] = min(names)

    def name(self, value: int) -> int:
        """The smallest number of the value's set."""
        while self._parents[value] != value:
            value = self._parents[value]
        return value

    def names(self) -> tuple[int, ...]:
        """The names of the sets of all values, in their order."""
        return tuple(map(self.name, range(len(self._parents))))


def common_ranges(ranges: Sequence[ValueRange], sets: Sequence[int]) -> tuple[ValueRange, ...]:
    """Ranges in which all values of a set have the union of theirs. sets: the name of the set of
    each value. Raises ValueError if there are more or fewer ranges than values."""
    unions: dict[int, ValueRange] = {}
    for name, found in zip(sets, ranges, strict=True):
        other = unions.get(name, found)
        unions[name] = ValueRange(min(found.low, other.low), max(found.high, other.high))
    return tuple(unions[name] for name in sets)
