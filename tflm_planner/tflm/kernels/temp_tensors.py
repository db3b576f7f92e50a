"""The steps of Prepare: which tensors an operator fetches, and when it allocates in between.

Every fetch stays in temporary memory until Prepare ends, even one that the kernel freed. Read
from the Prepare functions of tflite-micro 90b983c, tensorflow/lite/micro/kernels, and of its
CMSIS-NN kernels. This module must not know addresses, nor sizes (`pieces`).
"""

from __future__ import annotations

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels.op_sizes import uses_cmsis
from tflm_planner.tflm.kernels.persistent_allocations import persistent_allocations
from tflm_planner.tflm.kernels.prepare import Keeps, PersistentAllocation, Step
from tflm_planner.tflm.targets import Target

_INPUT_OUTPUT = "i0 o0"
_FETCHED: dict[str, str] = {
    **dict.fromkeys(
        (
            "RELU", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "CAST", "CEIL", "CIRCULAR_BUFFER",
            "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "DEQUANTIZE", "QUANTIZE", "ABS", "RSQRT", "COS",
            "SIN", "LOG", "SQRT", "SQUARE", "LOGICAL_NOT", "ELU", "EXP", "HARD_SWISH",
            "L2_NORMALIZATION", "LEAKY_RELU", "LOG_SOFTMAX", "LOGISTIC", "RESHAPE", "ROUND",
            "SOFTMAX", "SQUEEZE", "ZEROS_LIKE", "MAX_POOL_2D", "AVERAGE_POOL_2D",
        ),
        _INPUT_OUTPUT,
    ),
    **dict.fromkeys(
        (
            "ADD", "SUB", "MUL", "DIV", "BATCH_MATMUL", "BROADCAST_ARGS", "BROADCAST_TO",
            "CUMSUM", "EMBEDDING_LOOKUP", "EXPAND_DIMS", "FILL", "FLOOR_DIV", "FLOOR_MOD",
            "GATHER", "GATHER_ND", "MIRROR_PAD", "PRELU", "RESIZE_BILINEAR",
            "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SQUARED_DIFFERENCE", "TRANSPOSE",
        ),
        "i0 i1 o0",
    ),
    **dict.fromkeys(
        ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), "i0 i1"
    ),
    **dict.fromkeys(("DYNAMIC_UPDATE_SLICE", "SELECT_V2", "SLICE"), "i0 i1 i2 o0"),
    **dict.fromkeys(("RELU6", "IF", "READ_VARIABLE", "SPLIT"), "i0"),
    **dict.fromkeys(("PAD", "PADV2", "FULLY_CONNECTED"), "i0 i1 i2 o0"),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), "i0 i1 q0 i0 o0 i1"),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_ALL"), "i0 o0 i1 i0 i1 q0"),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), "o0 i0 i1 i0 i1 i2 o0"),
    "ASSIGN_VARIABLE": "i1",
    "L2_POOL_2D": "o0 i0",
    "SPLIT_V": "i2",
    "STRIDED_SLICE": "i0 i1 i2 i3 o0",
    "SVDF": "i0 i1 i2 i3 i4 o0",
    "TANH": "i0 i0 o0",
    "TFLite_Detection_PostProcess": "i0 i1 i2",
}  # fmt: skip
"""Fetches in order: iN input, oN output, q0 the output of an int8 operator."""
_LATE: dict[str, Keeps] = {
    **dict.fromkeys(
        (
            "ADD_N", "BATCH_MATMUL", "CUMSUM", "DEPTH_TO_SPACE", "GATHER", "GATHER_ND",
            "L2_POOL_2D", "LOG_SOFTMAX", "SOFTMAX", "SPACE_TO_DEPTH",
        ),
        "dims",
    ),
    **dict.fromkeys(("EMBEDDING_LOOKUP", "FULLY_CONNECTED"), "struct"),
}  # fmt: skip
"""Operators that allocate after their last fetch, and what they use from then on. All others
fetch once more after they allocated (or are taken to: that is never too little)."""


def prepare_steps(op: Op, target: Target) -> tuple[Step, ...]:
    """What Prepare does with memory, in order."""
    fetched, sizes = _fetched(op, target), persistent_allocations(op, target)
    keeps = _LATE.get(op.kind)
    if keeps is None:
        return (*(PersistentAllocation(size) for size in sizes), *fetched)
    used = 2 if op.kind == "ADD_N" else None  # it frees the further inputs at once
    return (*fetched, *(PersistentAllocation(size, keeps, used) for size in sizes))


def _fetched(op: Op, target: Target) -> list[Tensor]:
    inputs, kind = op.inputs, op.kind
    if kind == "ADD_N":
        return [t for t in (*inputs[:1], *op.outputs, *inputs[1:]) if t is not None]
    if kind == "CONCATENATION":
        return [t for t in (*inputs[:1], *op.outputs, *inputs) if t is not None]
    if kind == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        return [*op.operands(), *op.outputs]
    found: list[Tensor] = []
    for word in _sequence(op, target).split():
        at = int(word[1:])
        if word[0] == "q" and _type(op) != "int8":
            continue
        tensors = inputs if word[0] == "i" else op.outputs
        tensor = tensors[at] if at < len(tensors) else None
        if tensor is not None:
            found.append(tensor)
    return found


def _sequence(op: Op, target: Target) -> str:
    cmsis = uses_cmsis(op.kind, target)
    if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") and cmsis:
        return "i0 i1 o0 i0 i1 i2 o0"
    if op.kind == "AVERAGE_POOL_2D" and cmsis:
        return "i0 o0 i0 o0"
    if op.kind == "TRANSPOSE_CONV":  # inputs: shape, filter, data, bias
        return "o0 i2 i1" if _type(op, 2) == "float32" else "o0 i2 i1 i2 i1 i3 o0"
    return _FETCHED.get(op.kind, "")


def _type(op: Op, index: int = 0) -> str:
    tensor = op.inputs[index] if index < len(op.inputs) else None
    return "" if tensor is None else tensor.type_name
