"""Which change of which model of a front is tried next.

    front A B                 a1 b1 a2 b2 a3
    C joins, A leaves it      c1 c2 b3 c3 b4 c4 ...

The first changes of a model gain most, so that a new one catches up with the others at once. This
module must not know what a model is, nor how it is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

M = TypeVar("M", bound=Hashable)


@dataclass(eq=False)
class _Changes(Generic[M]):
    """The changes of one model that are left. tried: how many were."""

    left: Iterator[M]
    tried: int = 0


class FrontChanges(Generic[M]):
    """The changes that are left of the models of a front, as it grows. changes_of: the changed
    models that a model gives, the most promising first."""

    def __init__(self, changes_of: Callable[[M], Iterator[M]]) -> None:
        self._changes_of = changes_of
        self._changes: dict[M, _Changes[M]] = {}
        self._known: set[M] = set()

    def untried(self, front: Sequence[M]) -> Iterator[M]:
        """Changed models: each of that model of the present front of which the fewest changes were
        tried. None comes twice, and none is of a front that was given."""
        self._known.update(front)
        for model in front:
            if model not in self._changes:
                self._changes[model] = _Changes(self._changes_of(model))
        waiting = [self._changes[model] for model in front]
        while waiting:
            changes = min(waiting, key=lambda changes: changes.tried)
            changed = next(changes.left, None)
            changes.tried += 1
            if changed is None:
                waiting.remove(changes)
            elif changed not in self._known:
                self._known.add(changed)
                yield changed
