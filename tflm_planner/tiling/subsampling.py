"""Says whether a model is worth a second search in which its values are computed only at the pixels
that are read (`transforms.subsample`).

    the first search ended at a peak while a value lives that is made otherwise there    -> search
    the other form has less to compute, so that more may be tiled                        -> search
    neither                                                                              -> do not

A second search takes as long as the first.
"""

from __future__ import annotations

from collections.abc import Iterable

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Op
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
    model = workers.evaluator.model
    used_kinds = frozenset(op.kind for op in model.ops())
    allowed: list[PickKind] = [kind for kind in PICKS if options.allows(kind, used_kinds)]
    own: list[PickKind] = [kind for kind in allowed if kind in used_kinds]
    pick = own[0] if own else allowed[0] if allowed else None
    transform = Subsample(pick)
    if not transform.apply(clone(model)):
        return None
    new_kinds = frozenset({pick} if pick else ()) - used_kinds
    return Subsampling(transform, _instructions(workers), new_kinds)


def may_help(as_it_is: Workers, subsampled: Workers, found: Iterable[Tiling]) -> bool:
    """Whether a search of the subsampled model may lower what was found for the model as it is."""
    saved = 1 - _instructions(subsampled) / max(_instructions(as_it_is), 1)
    if saved >= _WORTH_SAVING:
        return True
    affected = _affected(as_it_is.evaluator, subsampled.evaluator)
    return any(tiling.bottleneck in affected for tiling in found)


def _instructions(workers: Workers) -> int:
    """Instructions of one inference of the model without tiles."""
    (whole,) = workers.evaluate([EvaluationRequest(Candidate((), False, effort=Effort.CLIMB))])
    assert whole is not None, "the model itself is always possible"
    return whole.instructions


def _affected(as_it_is: Evaluator, subsampled: Evaluator) -> set[int]:
    """Positions of the operators that run while a value lives that the other form makes or reads
    otherwise: from its first reader to its last one."""
    order, main = as_it_is.order, as_it_is.model.main
    forms = {_form(op) for op in subsampled.model.main.ops}
    runs = {main.ops[position]: time for time, position in enumerate(order)}
    affected: set[int] = set()
    for op in main.ops:
        for tensor in (*op.operands(), *op.outputs) if _form(op) not in forms else ():
            readers = [runs[reader] for reader in tensor.consumers]
            if not tensor.is_constant and readers:
                affected.update(order[min(readers) : max(readers) + 1])
    return affected


def _form(op: Op) -> tuple[object, ...]:
    """An operator by what it is called and the shapes that it reads and makes."""
    return op.label, *((t.shape or ()) for t in (*op.operands(), *op.outputs))
