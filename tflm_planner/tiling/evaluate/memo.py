"""What one evaluation finds and a later one can use: most candidates of a search are much alike.

    the same tiles, then with operators spelled otherwise      its first plan is the one of before
    views bound or not, where no tile has any                  one problem
    blocks of a network cut out and tiled alike                one problem

Each process of a search has a memo of its own, so what is found must be what would be found without
one. A problem is known again by its sizes, life spans and overlaps; names play no part in a plan.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain

from tflm_planner.memory.allocators.packing import pack
from tflm_planner.memory.problem import Overlap, Plan, Problem
from tflm_planner.model.ir import Model
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.tiled_model import TiledFamily
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.spelling_offers import OfferMemo

_REMEMBERED_BUFFERS = 200_000
"""Buffers of all problems whose plans are remembered, so that memory is bounded. A search of
vww_96_int8 with all operators packs 26,000."""
_REMEMBERED_OPERATORS = 10_000
"""Operators of all tiled models that are remembered, so that memory is bounded. A search of
vww_96_int8 makes 318 models of some 40 operators, 209 of them different."""


class PlanMemo:
    """Packs problems, equal ones once. buffers: as many are remembered, in all problems together;
    what was packed first is forgotten first."""

    def __init__(self, buffers: int = _REMEMBERED_BUFFERS) -> None:
        self._plans: dict[bytes, Plan] = {}
        self._buffers_left = buffers

    def pack(self, problem: Problem, required: Sequence[Overlap], rounds: int) -> Plan:
        """What `packing.pack` gives; see there."""
        key = _key_of(problem, required, rounds)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = pack(problem, required, rounds)
            self._buffers_left -= len(plan.offsets)
            while self._buffers_left < 0:
                self._buffers_left += len(self._plans.pop(next(iter(self._plans))).offsets)
        return plan


def _key_of(problem: Problem, required: Sequence[Overlap], rounds: int) -> bytes:
    """Equal for problems of which nothing differs but names."""
    buffers = [(b.size, b.start, b.end) for b in problem.buffers]
    overlaps = [(o.first, o.second, o.low, o.high) for o in (*problem.overlaps, *required)]
    counts = rounds, len(buffers), len(problem.overlaps)
    return array("q", chain(counts, *buffers, *overlaps)).tobytes()


class TiledMemo:
    """Makes the tiled models of one model, which stays as it is, equal ones once. operators: as
    many are remembered, in all tiled models together; what was made first is forgotten first."""

    def __init__(
        self, model: Model, options: TilingOptions, operators: int = _REMEMBERED_OPERATORS
    ) -> None:
        self._model, self._options = model, options
        self._families: dict[Hashable, TiledFamily | None] = {}
        self._operators_left = operators

    def of(self, candidate: Candidate) -> TiledFamily | None:
        """The tiled model of a candidate; None where it is impossible."""
        key = candidate.regions, candidate.order
        if key not in self._families:
            family = self._families[key] = TiledFamily.of(self._model, candidate, self._options)
            self._operators_left -= 0 if family is None else family.operators
            while self._operators_left < 0:
                forgotten = self._families.pop(next(iter(self._families)))
                self._operators_left += 0 if forgotten is None else forgotten.operators
            return family
        return self._families[key]


@dataclass(frozen=True)
class EvaluationMemo:
    """What evaluations of candidates with the same options share."""

    plans: PlanMemo
    offers: OfferMemo

    @staticmethod
    def of(options: TilingOptions) -> EvaluationMemo:
        """One that knows nothing yet."""
        return EvaluationMemo(PlanMemo(), OfferMemo(options.kernels))
