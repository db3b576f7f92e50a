"""The form of an operator: everything that its kernels' use of memory depends on.

    CONV_2D, stride 2, (1, 48, 48, 8) int8 * (16, 1, 1, 8) int8 -> (1, 24, 24, 16) int8

Networks repeat operators of one form, tiles repeat them more often, and searches ask about each of
them many times. Caches must use the form as key, never the operator's identity, because operators
may be changed in between.
"""

from __future__ import annotations

from collections.abc import Hashable

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.window import WINDOWS

_SMALL = 256
"""Constants of at most this many bytes (paddings, permutations, axes), and all constants that are
positions, belong to an operator's form; weights do not."""
_POSITIONS = ("int32", "int64")
"""Types of constants that are positions of elements, whatever their size."""


def operator_form(op: Op) -> Hashable:
    """Kind, options, types, shapes, which operands are constant or identical, and the values of
    constants that are no weights (for windows, only whether operands are constant)."""
    tensors = (*op.inputs, None, *op.outputs)
    numbers: dict[Tensor, int] = {}
    if op.kind in WINDOWS:
        forms = [
            None if t is None else (numbers.setdefault(t, len(numbers)), t.type, t.shape,
                                    t.is_constant, t.is_variable)
            for t in tensors
        ]  # fmt: skip
    else:
        forms = [
            None if t is None else (numbers.setdefault(t, len(numbers)), t.type, t.shape,
                                    _constant(t))
            for t in tensors
        ]  # fmt: skip
    return op.kind, op.options.key(), tuple(forms)


def _constant(tensor: Tensor) -> Hashable:
    if not tensor.is_constant:
        return tensor.is_variable
    data = tensor.buffer.data
    if data is None or (data.size > _SMALL and tensor.type_name not in _POSITIONS):
        return "large"
    return data.tobytes()
