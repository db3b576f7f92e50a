"""Terms of operators that compute each element from the elements at the same position.

If all operands are known integers, the numbers are computed: counters and comparisons of loops,
arithmetic of shapes. All else is mixed by a key of kind, options, and quantization of operands and
result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.ops.axes import ELEMENT_WISE
from tflm_planner.ops.dequantized import dequantized
from tflm_planner.ops.terms.alike import mixed_alike
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.choices import of_choice
from tflm_planner.ops.terms.field import LANES
from tflm_planner.ops.terms.parameters import quantisation
from tflm_planner.ops.terms.values import DTYPES, Values

Array = npt.NDArray[Any]

KINDS = ELEMENT_WISE | {
    "CAST", "CEIL", "COS", "SIN", "FLOOR", "ROUND", "GELU", "RELU_0_TO_1", "POW", "FLOOR_DIV",
    "FLOOR_MOD", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL",
    "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "SELECT", "SELECT_V2", "ZEROS_LIKE", "SIGN",
}  # fmt: skip
_INTEGERS = ("int32", "int64", "bool")
_WIDER = ("int32", (), (), 0), ("int64", (), (), 0)
_COMPUTED: dict[str, Callable[..., Array]] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum, "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal, "EQUAL": np.equal, "NOT_EQUAL": np.not_equal,
    "LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or, "LOGICAL_NOT": np.logical_not,
    "NEG": np.negative, "ABS": np.abs, "SQUARE": np.square, "SELECT_V2": np.where,
}  # fmt: skip


def pointwise(call: OpCall) -> list[Values] | None:
    """The rule of every operator in KINDS."""
    values = _compute(call)
    if values is None and call.op.kind == "DEQUANTIZE":
        values = _widen(call)
    if values is None and call.op.kind in ("DEQUANTIZE", "CAST"):
        values = _byte_as_float(call)
    if values is None and call.op.kind in ("QUANTIZE", "CAST"):
        values = _pass_through(call)
    if values is None and call.op.kind == "MUL":
        values = _mask(call)
    if values is None:
        values = of_choice(call, pointwise)
    if values is None and not _is_alike_everywhere(call):
        return None
    return [mixed_alike(call) if values is None else values]


def _is_alike_everywhere(call: OpCall) -> bool:
    """Whether every element is computed in the same way, from the elements that broadcasting pairs
    with it. That does not hold if channels have scales of their own, or if SELECT chooses whole
    rows."""
    tensors = (*call.op.operands(), *call.op.outputs)
    by_channel = any(t.quantization.is_per_channel for t in tensors)
    by_row = call.op.kind == "SELECT" and len({v.shape for v in call.operands if v}) > 1
    return not by_channel and not by_row


def _compute(call: OpCall) -> Values | None:
    """The result computed from known integers; None if not all operands are known integers."""
    operands = [v for v in call.operands if v is not None]
    integers = all(t.type_name in _INTEGERS for t in (*call.op.operands(), *call.op.outputs))
    if not integers or not all(v.known for v in operands) or call.op.options.activation:
        return None
    dtype = DTYPES[call.result.type_name]
    if call.op.kind == "CAST":
        return Values(operands[0].data.astype(dtype), True)
    function = _COMPUTED.get(call.op.kind)
    if function is None:
        return None
    numbers = function(*(v.data for v in operands))
    return Values(np.asarray(numbers, dtype), True).reshape(call.shape)


def _widen(call: OpCall) -> Values | None:
    """DEQUANTIZE of known numbers: the floats that LiteRT makes of them. None for others, and where
    it would make a NaN, whose bits depend on the processor."""
    known = call.values(0)
    if not known.known or call.result.type_name != "float32":
        return None
    floats = dequantized(known.data, call.tensor(0))
    return None if floats is None else Values(floats, True).reshape(call.shape)


def _byte_as_float(call: OpCall) -> Values | None:
    """CAST of uint8 to float32, and DEQUANTIZE of scale 1 and zero point 0, which is the same; None
    for any other."""
    data, result = call.tensor(0), call.result
    if (data.type_name, result.type_name) != ("uint8", "float32"):
        return None
    if call.op.kind == "DEQUANTIZE" and data.quantization.single != (1.0, 0):
        return None
    return call.mix(call.elements(0), "a byte as a float").reshape(call.shape)


def _pass_through(call: OpCall) -> Values | None:
    """QUANTIZE or CAST to the same type and quantization changes nothing, nor does CAST of int32 to
    int64; None for any other."""
    before, after = quantisation(call.tensor(0)), quantisation(call.result)
    same = before == after or (call.op.kind == "CAST" and (before, after) == _WIDER)
    return call.values(0).reshape(call.shape) if same else None


def _mask(call: OpCall) -> Values | None:
    """Quantized integers multiplied by a known mask of zeros and ones with scale 1: each element
    stays as it is, or becomes the zero point. None for any other MUL."""
    for data, mask in ((0, 1), (1, 0)):
        scales = call.tensor(data).quantization.single, call.tensor(mask).quantization.single
        ones = call.values(mask)
        if not ones.known or scales[1] != (1.0, 0) or call.op.options.activation:
            continue
        if quantisation(call.tensor(data)) != quantisation(call.result) or scales[0] is None:
            continue
        if call.result.type_name == "float32" or not np.isin(ones.data, (0, 1)).all():
            continue
        is_kept = np.broadcast_to(ones.data != 0, call.shape)
        whole = np.broadcast_to(call.elements(data), (LANES, *call.shape))
        zero = call.zero(call.result).reshape(LANES, *(1 for _ in call.shape))
        return Values(np.where(is_kept, whole, zero).astype(np.uint32), False)
    return None


RULES = dict.fromkeys(KINDS, pointwise)
