"""Makes models of a single operator, to be measured alone.

    ... CONV ADD CONV ...   --single-->   input -> ADD -> output

Constants are kept; operands that other operators compute become inputs. Small integers that are
positions (begins of a SLICE in a loop, indices of a GATHER) become constant zeros, because any
other value might point outside. It must not know boards.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.new_model import NewModel

_POSITIONS = 64
"""Integer operands of at most this many elements count as positions and sizes."""
_NEVER = frozenset(
    ("WHILE", "IF", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CUSTOM")
)
_DTYPES = {"int32": "<i4", "int64": "<i8"}


def can_stand_alone(op: Op) -> bool:
    """Whether an operator can be measured alone: it has no control flow, no resources and no
    variables, its data are in the file, and its results are not empty."""
    return (
        op.kind not in _NEVER
        and op.code.custom is None
        and not op.called_graphs()
        and bool(op.outputs)
        and all(t.nbytes > 0 for t in op.outputs)
        and not any(t.is_variable or t.external_data for t in op.operands())
        and not op.intermediates
    )


def single(op: Op) -> bytes:
    """The file of a model that consists of `op` alone; `op` is not changed."""
    model = NewModel()
    copies: dict[Tensor, Tensor] = {}
    for t in op.operands():
        if t not in copies:
            is_fixed = _is_fixed(t)
            copies[t] = model.add_constant(t, _fixed_data(t)) if is_fixed else model.add_tensor(t)
    outputs = [model.add_tensor(t) for t in op.outputs]
    model.add_copy(op, [None if t is None else copies[t] for t in op.inputs], outputs)
    inputs = [copied for t, copied in copies.items() if not _is_fixed(t)]
    return model.write(inputs, outputs)


def chain(count: int) -> bytes:
    """A model of `count` operators that do next to nothing: RELU of one float."""
    model = NewModel()
    tensors = model.add_floats(count + 1)
    for before, after in pairwise(tensors):
        model.add_op("RELU", [before], [after])
    return model.write([tensors[0]], [tensors[-1]])


def _fixed_data(tensor: Tensor) -> Any:
    """The bytes of a constant; zeros for positions that another operator computes."""
    if tensor.is_constant:
        return tensor.buffer.data
    dtype = _DTYPES[tensor.type_name]
    return np.zeros(max(1, tensor.elements), dtype).view(np.uint8)


def _is_fixed(tensor: Tensor) -> bool:
    positions = tensor.type_name in _DTYPES and tensor.elements <= _POSITIONS
    return tensor.is_constant or positions
