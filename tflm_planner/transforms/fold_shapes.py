"""Computes at planning time what is the same at every invoke: arithmetic on shapes.

    x --SHAPE--> [1 8] --STRIDED_SLICE--> 1 --PACK(., 1, 1, 8)--> [1 1 1 8] --+
    x --------------------------------------------------------------------- RESHAPE --> y

Converters write this if the batch size was left open. TFLM never changes a shape that the file
gives, so all of it is known: RESHAPE gets a constant, and the operators before it are removed. Only
small tensors of integers are computed here, so the file does not grow, and nothing is rounded. This
module must not know memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tflm_planner.model.constants import integers
from tflm_planner.model.edit import make_constants
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.support.deferred import defer
from tflm_planner.support.words import count

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.int64]
    Rule = Callable[[Op, Sequence[Values]], Values | None]
else:
    np = defer("numpy")


_MOST_ELEMENTS = 32
"""More elements than any shape has; larger tensors are data, which are not folded."""
_DTYPES = {"int32": "int32", "int64": "int64"}
_NO_ACTIVATION = 0


def fold_shapes(model: Model) -> list[str]:
    """Replace known results by constants; returns a note if there were any."""
    folded = sum(_fold_graph(model, graph) for graph in model.graphs)
    if not folded:
        return []
    operators = count(folded, "operator", "operators")
    return [f"computed ahead {operators} on shapes, which never change on TFLM"]


def _fold_graph(model: Model, graph: Graph) -> int:
    """Fold all known results of one graph; returns the number of operators folded."""
    known: dict[Tensor, Values] = {}
    folded: dict[Op, npt.NDArray[Any]] = {}
    ends = {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)} | set(graph.outputs)
    for op in graph.ops:
        values = _result(op, known)
        if values is not None and op.outputs[0] not in ends:
            known[op.outputs[0]] = values
            dtype = np.dtype(_DTYPES[op.outputs[0].type_name])
            folded[op] = values.astype(dtype.newbyteorder("<"))
    if folded:
        make_constants(model, graph, folded)
    return len(folded)


def _result(op: Op, known: Mapping[Tensor, Values]) -> Values | None:
    """The only result of an operator; None unless it is known and fits its tensor."""
    if op.kind not in _RULES or len(op.outputs) != 1:
        return None
    result = op.outputs[0]
    dtype = _DTYPES.get(result.type_name)
    if dtype is None or result.is_variable or result.elements > _MOST_ELEMENTS:
        return None
    if op.kind in _OF_SHAPES:
        operand = op.inputs[0] if op.inputs else None
        if operand is None or operand.shape is None:
            return None
        operands = [np.array(operand.shape, np.int64)]
    else:
        values = [_values(t, known) for t in op.operands()]
        operands = [v for v in values if v is not None]
        if len(operands) < len(op.inputs):
            return None
    values = _RULES[op.kind](op, operands)
    if values is None or values.shape != (result.shape or ()):
        return None
    limits = np.iinfo(dtype)
    fits = bool(np.all((values >= limits.min) & (values <= limits.max)))
    return values if fits else None


def _values(tensor: Tensor, known: Mapping[Tensor, Values]) -> Values | None:
    """The values of a small tensor of integers that is constant or was computed here, else None."""
    if tensor in known:
        return known[tensor]
    if tensor.elements > _MOST_ELEMENTS or tensor.type_name not in _DTYPES:
        return None
    values = integers(tensor)
    if values is None or len(values) != tensor.elements:
        return None
    return np.array(values, np.int64).reshape(tensor.shape or ())


def _shape(op: Op, operands: Sequence[Values]) -> Values:
    return operands[0]


def _rank(op: Op, operands: Sequence[Values]) -> Values:
    return np.array(operands[0].size, np.int64)


def _strided_slice(op: Op, operands: Sequence[Values]) -> Values | None:
    """STRIDED_SLICE of a vector, with one start, end and step."""
    options = op.options
    if options.is_absent:
        return None
    values, *limits = operands
    unusual = options.adds_axes or options.counts_from_begin
    if values.ndim != 1 or unusual or any(v.shape != (1,) for v in limits):
        return None
    begin, end, step = (int(v[0]) for v in limits)
    if options.shrink_axis_mask & 1:
        if options.begin_mask & 1:
            return values[0] if step > 0 and values.size else None
        return values[begin] if -values.size <= begin < values.size else None
    if step == 0:
        return None
    start = None if options.begin_mask & 1 else begin
    return values[slice(start, None if options.end_mask & 1 else end, step)]


def _slice(op: Op, operands: Sequence[Values]) -> Values | None:
    values, begin, size = operands
    if values.ndim != 1 or begin.shape != (1,) or size.shape != (1,):
        return None
    start, count = int(begin[0]), int(size[0])
    if not 0 <= start <= values.size or count < -1:
        return None
    return values[start:] if count == -1 else values[start : start + count]


def _pack(op: Op, operands: Sequence[Values]) -> Values | None:
    if len({v.shape for v in operands}) != 1 or not 0 <= op.options.axis <= operands[0].ndim:
        return None
    return np.stack(operands, op.options.axis)


def _concatenation(op: Op, operands: Sequence[Values]) -> Values | None:
    if any(v.ndim != 1 for v in operands) or not _is_plain(op):
        return None
    return np.concatenate(operands)


def _gather(op: Op, operands: Sequence[Values]) -> Values | None:
    values, places = operands
    if values.ndim != 1 or op.options.axis or op.options.batch_dims:
        return None
    if not bool(np.all((places >= 0) & (places < values.size))):
        return None
    return values[places]


def _product(op: Op, operands: Sequence[Values]) -> Values | None:
    """REDUCE_PROD of a vector."""
    values, axes = operands
    if values.ndim != 1 or axes.size != 1:
        return None
    return np.prod(values, keepdims=op.options.keeps_dims, dtype=np.int64)


def _same_elements(op: Op, operands: Sequence[Values]) -> Values | None:
    """CAST between integers, and operators that change only the shape."""
    shape = op.outputs[0].shape or ()
    return operands[0].reshape(shape) if operands[0].size == op.outputs[0].elements else None


def _is_plain(op: Op) -> bool:
    return op.options.activation == _NO_ACTIVATION


def _pairwise(function: str) -> Rule:
    """A rule that applies numpy's function of this name."""

    def rule(op: Op, operands: Sequence[Values]) -> Values | None:
        first, second = operands
        alike = first.shape == second.shape or 1 in (first.size, second.size)
        return getattr(np, function)(first, second) if alike and _is_plain(op) else None

    return rule


_OF_SHAPES = frozenset({"SHAPE", "RANK"})
"""Kinds that read the shape of their operand, not its elements."""
_RULES: dict[str, Rule] = {
    "SHAPE": _shape,
    "RANK": _rank,
    "STRIDED_SLICE": _strided_slice,
    "SLICE": _slice,
    "PACK": _pack,
    "CONCATENATION": _concatenation,
    "GATHER": _gather,
    "REDUCE_PROD": _product,
    "CAST": _same_elements,
    "RESHAPE": _same_elements,
    "SQUEEZE": _same_elements,
    "EXPAND_DIMS": _same_elements,
    "ADD": _pairwise("add"),
    "SUB": _pairwise("subtract"),
    "MUL": _pairwise("multiply"),
    "MAXIMUM": _pairwise("maximum"),
    "MINIMUM": _pairwise("minimum"),
}
