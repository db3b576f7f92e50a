"""Caches what later evaluations can reuse: most candidates of a search are similar.

    the same tiles, then with operators spelled otherwise      the first plan is the same
    views bound or not, if no tile has any                     the same problem
    blocks of a network cut out and tiled alike                the same problem

Each process of a search has a memo of its own, so results must be the same with and without it.
Problems are identified by sizes, life spans and overlaps; names do not affect a plan.
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
"""Limit of the buffers of all problems whose plans are cached, to bound memory. A search of
vww_96_int8 with all operators packs 26,000."""
_REMEMBERED_OPERATORS = 10_000
"""Limit of the operators of all cached tiled models, to bound memory. A search of vww_96_int8 makes
318 models of some 40 operators, 209 of them different."""


class PlanMemo:
    """Packs problems; equal problems once. buffers: limit of the buffers of all cached problems
    together; the oldest entry is dropped first."""

    def __init__(self, buffers: int = _REMEMBERED_BUFFERS) -> None:
        self._plans: dict[bytes, Plan] = {}
        self._buffers_left = buffers

    def pack(self, problem: Problem, required: Sequence[Overlap], rounds: int) -> Plan:
        """The result of `packing.pack`; see there."""
        key = _key_of(problem, required, rounds)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = pack(problem, required, rounds)
            self._buffers_left -= len(plan.offsets)
            while self._buffers_left < 0:
                self._buffers_left += len(self._plans.pop(next(iter(self._plans))).offsets)
        return plan


def _key_of(problem: Problem, required: Sequence[Overlap], rounds: int) -> bytes:
    """Equal for problems that differ only in names."""
    buffers = [(b.size, b.start, b.end) for b in problem.buffers]
    overlaps = [(o.first, o.second, o.low, o.high) for o in (*problem.overlaps, *required)]
    counts = rounds, len(buffers), len(problem.overlaps)
    return array("q", chain(counts, *buffers, *overlaps)).tobytes()


class TiledMemo:
    """Makes the tiled models of one model, which is not changed; equal ones once. used_kinds: those
    of the file. operators: limit of the operators of all cached models together; the oldest entry
    is dropped first."""

    def __init__(
        self,
        model: Model,
        options: TilingOptions,
        used_kinds: frozenset[str],
        operators: int = _REMEMBERED_OPERATORS,
    ) -> None:
        self._model, self._options, self._used_kinds = model, options, used_kinds
        self._families: dict[Hashable, TiledFamily | None] = {}
        self._operators_left = operators

    def of(self, candidate: Candidate) -> TiledFamily | None:
        """The tiled model of a candidate; None if it is impossible."""
        key = candidate.regions, candidate.order
        if key not in self._families:
            family = TiledFamily.of(self._model, candidate, self._options, self._used_kinds)
            self._families[key] = family
            self._operators_left -= 0 if family is None else family.operators
            while self._operators_left < 0:
                forgotten = self._families.pop(next(iter(self._families)))
                self._operators_left += 0 if forgotten is None else forgotten.operators
            return family
        return self._families[key]


@dataclass(frozen=True)
class EvaluationMemo:
    """The caches that evaluations of candidates with the same options share."""

    plans: PlanMemo
    offers: OfferMemo

    @staticmethod
    def of(options: TilingOptions) -> EvaluationMemo:
        """Empty caches."""
        return EvaluationMemo(PlanMemo(), OfferMemo(options.kernels))
