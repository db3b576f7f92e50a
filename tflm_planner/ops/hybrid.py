"""Operators of float data and integer weights, as dynamic range quantisation leaves them.

Their kernels quantise the data while they run, by a scale that they take from all of it: a part of
the data has another scale, so that nothing computed from a part is exact.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.ops.roles import PRODUCTS

_INTEGERS = frozenset(("int4", "int8", "uint8", "int16"))
_WEIGHTS = {
    **{kind: roles.weights for kind, roles in PRODUCTS.items()},
    **dict.fromkeys(("BATCH_MATMUL", "SVDF"), 1),
}
"""Which operand the weights are."""


def is_hybrid(op: Op) -> bool:
    """Whether `op` scales float data by all of them."""
    at = _WEIGHTS.get(op.kind)
    weights = op.inputs[at] if at is not None and len(op.inputs) > at else None
    if weights is None or weights.type_name not in _INTEGERS:
        return False
    return any(t.type_name in ("float32", "float16") for t in op.outputs)
