"""Overlaps as if every operator were written in its freest spelling (`spelling_offers`).

    as it is          result apart from its operand      tiles seem to pay around it
    freest spelling   result 256 B below its operand     what can be reached

Spellings are chosen for whole models, of which a search evaluates few with them. A search that
plans with these overlaps finds the models for which they pay; their figures are promises, until
they are planned with true spellings. It must not know what is searched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from tflm_planner.memory.problem import UNBOUNDED
from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels.contracts import InputOverlap
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tiling.spelling_offers import OfferMemo


@dataclass(frozen=True)
class FreestOverlaps:
    """The rule of input overlaps for the kernels of a target. rows: whether spellings in rows,
    which need RESHAPEs, are permitted."""

    kernels: TargetKernels
    rows: bool

    def __call__(self, op: Op) -> Iterable[InputOverlap]:
        """The overlaps that some spelling of the operator permits."""
        freed = self._freed(op)
        if freed is None:
            return self.kernels.input_overlaps_of(op)
        data = op.inputs[0]
        assert data is not None, "an operator with another spelling has an operand"
        return (InputOverlap(data, op.outputs[0], freed, UNBOUNDED),)

    def frees(self, ops: Iterable[Op]) -> bool:
        """Whether some operator has a spelling that permits more than the operator as it is."""
        return any(self._freed(op) is not None for op in ops)

    def _freed(self, op: Op) -> int | None:
        offers = _offers(self.kernels).of(op, rows=self.rows)
        return None if offers is None else offers.freed


@lru_cache(maxsize=8)
def _offers(kernels: TargetKernels) -> OfferMemo:
    """One cache of offers for each target; only a few are kept."""
    return OfferMemo(kernels)
