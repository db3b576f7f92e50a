"""Which operators a planned model may use besides those of the given model.

A new operator must be registered in the firmware, so the user has to permit it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tflm_planner.tflm.kernels.operator_allocations import lacks
from tflm_planner.tflm.target import Target


@dataclass(frozen=True)
class AllowedOperators:
    """Kinds of operators that may be added: none, those in `names`, or all."""

    names: frozenset[str] = frozenset()
    every: bool = False
    """Whether any operator may be added, whatever `names` says."""

    NONE: ClassVar[AllowedOperators]
    ALL: ClassVar[AllowedOperators]

    @classmethod
    def of(cls, names: Iterable[str]) -> AllowedOperators:
        """Permits these kinds, as in "PAD"."""
        return cls(frozenset(names))

    @property
    def allows_new(self) -> bool:
        """Whether any operator may be added at all."""
        return self.every or bool(self.names)

    def allows(self, kind: str, used_kinds: frozenset[str], target: Target) -> bool:
        """Whether the result of a model that uses `used_kinds` may use operators of this kind. An
        operator that the target's TFLM lacks is never added."""
        is_named = self.every or kind in self.names
        return kind in used_kinds or (is_named and not lacks(kind, target))


AllowedOperators.NONE = AllowedOperators()
AllowedOperators.ALL = AllowedOperators(every=True)
