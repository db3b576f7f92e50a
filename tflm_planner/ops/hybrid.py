"""Operators with float data and integer weights, which dynamic range quantisation produces.

Their kernels quantise the data at run time, with a scale computed from all of the data. A part of
the data gets another scale, so a result computed from a part is not bit-exact.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.ops.roles import PRODUCTS

_INTEGERS = frozenset(("int4", "int8", "uint8", "int16"))
_WEIGHTS = {
    **{kind: roles.weights for kind, roles in PRODUCTS.items()},
    **dict.fromkeys(("BATCH_MATMUL", "SVDF"), 1),
}
"""Index of the weights among the operands."""


def is_hybrid(op: Op) -> bool:
    """Whether `op` quantises float data at run time, with a scale computed from all of it."""
    at = _WEIGHTS.get(op.kind)
    weights = op.inputs[at] if at is not None and len(op.inputs) > at else None
    if weights is None or weights.type_name not in _INTEGERS:
        return False
    return any(t.type_name in ("float32", "float16") for t in op.outputs)
