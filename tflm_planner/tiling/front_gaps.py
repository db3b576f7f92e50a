"""What may lie between neighbours of the Pareto front: changes of the model at the widest gap, and
several of them at once.

    bytes
      |          x untiled
      |        +-+
      |        | |         the gap between two neighbours is the rectangle that a better model
      |        x +----+    could take away; changed is the smaller and slower of both
      |               x
      +---------------------> slowdown

This module must not know how many changes are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.moves.combinations import Combination, combinations
from tflm_planner.tiling.tilings import Tiling
from tflm_planner.transforms.schedules import Effort


class FrontGaps:
    """The gaps of the front of `models`. changes_of: models with one region of a model changed, the
    most promising first."""

    def __init__(
        self, models: ModelEvaluations, changes_of: Callable[[Candidate], Iterator[Candidate]]
    ) -> None:
        self._models, self._changes_of = models, changes_of
        self._changes: dict[Candidate, list[Candidate]] = {}

    def untried(self) -> Iterator[Candidate]:
        """The changes of all models of the front that were not evaluated yet, those of the model at
        the widest gap first."""
        seen = set[Candidate]()
        for model in self._widest_gap_first():
            if model not in self._changes:
                self._changes[model] = [*self._changes_of(model)]
            for changed in self._changes[model]:
                if changed not in self._models and changed not in seen:
                    seen.add(changed)
                    yield changed

    def _widest_gap_first(self) -> list[Candidate]:
        """The models of the front. The fastest one's neighbour is the unchanged model."""
        front = self._models.front()
        figures = [*(tiling for _, tiling in front), self._models.tilings[0]]
        gaps = {
            model: _gap(tiling, faster)
            for (model, _), (tiling, faster) in zip(front, pairwise(figures), strict=True)
        }
        return sorted(gaps, key=lambda model: -gaps[model])

    def combined(self) -> list[Candidate]:
        """Several evaluated changes of a model at once, where they promise to join the front and
        were not evaluated yet; the smallest promise first."""
        promises = [
            promise
            for model in self._changes
            for promise in self._combinations(model)
            if promise.candidate not in self._models
            and not self._models.beat(promise.bytes, promise.slowdown)
        ]
        promises.sort(key=lambda promise: (promise.bytes, promise.slowdown))
        return [*dict.fromkeys(promise.candidate for promise in promises)]

    def _combinations(self, model: Candidate) -> Iterator[Combination]:
        changed = {c: t for c in self._changes[model] if (t := self._models.figures_of(c))}
        figures = self._models.figures_of(model)
        assert figures, "it was on the front"
        return combinations(replace(model, effort=Effort.CLIMB), figures, changed)


def _gap(tiling: Tiling, faster: Tiling) -> float:
    """The area between two neighbours of a front; 0 where they belong to two fronts."""
    saved, slower = faster.bytes - tiling.bytes, tiling.slowdown - faster.slowdown
    return max(saved, 0) * max(slower, 0.0)
