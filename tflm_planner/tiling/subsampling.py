"""Says whether a model is worth a second search in which its values are computed only at the pixels
that are read (`transforms.subsample`).

    the first search ended at a peak while a value lives that is made otherwise there    -> search
    the other form has less to compute, so that more may be tiled                        -> search
    neither                                                                              -> do not

A second search takes as long as the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tflm_planner.model.clone import clone
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import Subsampling, TilingOptions
from tflm_planner.tiling.tilings import Tiling
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.subsample import PICKS, PickKind, Subsample

_WORTH_SAVING = 0.005
"""Share of the instructions that are worth another search. ResNet50 saves 5 %, networks that only
hold skips back none."""


def subsampling_of(workers: Workers, options: TilingOptions) -> Subsampling | None:
    """How the workers' model may be subsampled; None if that changes nothing. A kind of operator
    that the firmware has comes before one that it has not."""
    model, used_kinds = workers.evaluator.model, workers.evaluator.used_kinds
    allowed: list[PickKind] = [kind for kind in PICKS if options.allows(kind, used_kinds)]
    own: list[PickKind] = [kind for kind in allowed if kind in used_kinds]
    pick = own[0] if own else allowed[0] if allowed else None
    transform, copied = Subsample(pick), clone(model)
    before = list(copied.main.ops)
    if not transform.apply(copied):
        return None
    kept = {*copied.main.ops}
    replaced = frozenset(i for i, op in enumerate(before) if op not in kept)
    new_kinds = frozenset({pick} if pick else ()) - used_kinds
    return Subsampling(transform, _instructions(workers), replaced, new_kinds)


def may_help(as_it_is: Workers, subsampled: Workers, found: Iterable[Tiling]) -> bool:
    """Whether a search of the subsampled model may lower what was found for the model as it is."""
    subsampling = subsampled.evaluator.options.subsampling
    assert subsampling is not None
    saved = 1 - _instructions(subsampled) / max(subsampling.original_instructions, 1)
    if saved >= _WORTH_SAVING:
        return True
    affected = _affected(as_it_is.evaluator, subsampling.replaced)
    return any(tiling.bottleneck in affected for tiling in found)


def _instructions(workers: Workers) -> int:
    """Instructions of one inference of the model without tiles."""
    (whole,) = workers.evaluate([EvaluationRequest(Candidate((), False, effort=Effort.CLIMB))])
    assert whole is not None, "the model itself is always possible"
    return whole.instructions


def _affected(evaluator: Evaluator, replaced: Collection[int]) -> set[int]:
    """Positions of the operators that run while a value lives that a replaced operator makes or
    reads: from its first reader to its last one."""
    order, ops = evaluator.order, evaluator.model.main.ops
    runs = {ops[position]: time for time, position in enumerate(order)}
    affected: set[int] = set()
    for op in (ops[position] for position in replaced):
        for tensor in (*op.operands(), *op.outputs):
            readers = [runs[reader] for reader in tensor.consumers]
            if not tensor.is_constant and readers:
                affected.update(order[min(readers) : max(readers) + 1])
    return affected
