"""Makes what a search tried with each operator for reports: by name, and with the reason where an
operator can only run as a whole. It must not know how anything is searched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.model.ir import Op
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.axes import axis_map
from tflm_planner.report.document import OperatorTrial
from tflm_planner.tiling.tilings import Trial

_HAS_SIDE_EFFECTS = "it has side effects or unknown meaning, so that it stays whole"
_HAS_NO_AXIS = "no axis is known along which parts of its result can be computed"


def operator_trials(ops: Sequence[Op], trials: Sequence[Trial]) -> Iterator[OperatorTrial]:
    """Yield the trials of operators with results, in their order. ops: the main graph of the model
    that was searched. trials: those of the search; may be empty."""
    for op, trial in zip(ops, trials, strict=bool(trials)):
        if op.outputs:
            yield OperatorTrial(
                op.outputs[0].name,
                trial.bytes,
                trial.slowdown,
                trial.fast_enough,
                trial.promising,
                _why_whole(op),
            )


def _why_whole(op: Op) -> str:
    if has_side_effects(op):
        return _HAS_SIDE_EFFECTS
    return "" if axis_map(op).links else _HAS_NO_AXIS
