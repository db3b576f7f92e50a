"""Computes FILL where TFLM's kernel lacks its type: of bool and of int16, mostly.

    a causal mask, as Keras' attention joins it with one that forbids nothing:
    [1 2 8 8] --FILL true--> mask --LOGICAL_AND below the diagonal--> SELECT_V2
    below the diagonal, for each head -----------------------------> SELECT_V2

    the state of an LSTM of int16 before the first step: [1 20] --FILL 0--> state

What it is joined with is computed, too. The file holds the numbers then, so that the large ones
stay. This module must not know memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflm_planner.model.constants import integers
from tflm_planner.model.edit import make_constants
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.support.deferred import defer
from tflm_planner.support.words import count
from tflm_planner.tflm.element_types import lacks_types

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[Any]
else:
    np = defer("numpy")

_DTYPES = {"bool": "?", "int16": "<i2"}
_MOST_BYTES = 1 << 16
"""A mask of four heads over 128 steps."""
_JOINED = {"LOGICAL_AND": "logical_and", "LOGICAL_OR": "logical_or"}


def fold_fills(model: Model) -> list[str]:
    """Replace them by constants; returns a note if there were any."""
    folded = [op for graph in model.graphs for op in _fold_in(model, graph)]
    if not folded:
        return []
    operators = count(len(folded), "operator", "operators")
    size = sum(op.outputs[0].nbytes for op in folded if op.outputs[0].consumers)
    return [f"computed ahead {operators} from FILL of a type that its kernel lacks: {size:,} B"]


def _fold_in(model: Model, graph: Graph) -> list[Op]:
    """Fold those of one graph; returns them. Of their results some are still read."""
    ends = {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)} | set(graph.outputs)
    known: dict[Tensor, Numbers] = {}
    folded: dict[Op, Numbers] = {}
    for op in graph.ops:
        numbers = _filled(op) if op.kind == "FILL" else _joined(op, known)
        if numbers is not None and op.outputs[0] not in ends:
            folded[op] = known[op.outputs[0]] = numbers
    if folded:
        make_constants(model, graph, folded)
    return list(folded)


def _filled(op: Op) -> Numbers | None:
    """The result of a FILL that TFLM's kernel does not take; None if it takes it, or if that is
    unknown."""
    if len(op.inputs) != 2 or not lacks_types(op):
        return None
    shape, number = op.inputs
    sizes = None if shape is None else integers(shape)
    if sizes is None or number is None or number.buffer.data is None or not number.is_constant:
        return None
    result, dtype = op.outputs[0], _DTYPES.get(number.type_name)
    if dtype is None or tuple(sizes) != (result.shape or ()) or not _is_small(result):
        return None
    one = number.buffer.data[: number.nbytes].view(dtype)
    if dtype == "?" and not _are_bools(number.buffer.data[: number.nbytes]):
        return None
    return np.full(sizes, one[0], dtype) if one.size == 1 else None


def _joined(op: Op, known: dict[Tensor, Numbers]) -> Numbers | None:
    """The result of LOGICAL_AND or LOGICAL_OR of what is known and a constant; None otherwise."""
    function = _JOINED.get(op.kind)
    if function is None or not any(t in known for t in op.operands()):
        return None
    operands = [known.get(t, _constant(t)) for t in op.operands()]
    both = [each for each in operands if each is not None]
    if len(both) != 2 or not _is_small(op.outputs[0]):
        return None
    try:
        joined = getattr(np, function)(*both)
    except ValueError:  # shapes of a damaged file
        return None
    return joined if joined.shape == (op.outputs[0].shape or ()) else None


def _constant(tensor: Tensor) -> Numbers | None:
    """The values of a constant of bool; None for any other tensor."""
    data = tensor.buffer.data
    if tensor.type_name != "bool" or data is None or not tensor.is_constant:
        return None
    values = data[: tensor.nbytes].view("?")
    is_whole = values.size == tensor.elements and _are_bools(data[: tensor.nbytes])
    return values.reshape(tensor.shape or ()) if is_whole else None


def _are_bools(data: Numbers) -> bool:
    """Whether all bytes are 0 or 1."""
    return bool((data <= 1).all())


def _is_small(tensor: Tensor) -> bool:
    return not tensor.is_variable and tensor.nbytes <= _MOST_BYTES
