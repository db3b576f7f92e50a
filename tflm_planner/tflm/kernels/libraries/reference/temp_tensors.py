"""Which tensors the Prepare of a reference kernel fetches, in order.

Every tensor fetched stays in temporary memory until Prepare ends, even one that the kernel freed.
Read from the Prepare functions of tflite-micro 90b983c, tensorflow/lite/micro/kernels. This module
must not know addresses, nor sizes (`persistent_allocations`).
"""

from __future__ import annotations

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.kernels.prepare import Keeps

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
"""Tensors in the order in which Prepare fetches them: iN input, oN output, q0 the output of an
int8 operator."""
KEPT_AFTER_LAST_FETCH: dict[str, Keeps] = {
    **dict.fromkeys(
        (
            "ADD_N", "BATCH_MATMUL", "CUMSUM", "DEPTH_TO_SPACE", "GATHER", "GATHER_ND",
            "L2_POOL_2D", "LOG_SOFTMAX", "SOFTMAX", "SPACE_TO_DEPTH",
        ),
        "dims",
    ),
    **dict.fromkeys(("EMBEDDING_LOOKUP", "FULLY_CONNECTED"), "struct"),
}  # fmt: skip
"""Operators that allocate after their last fetch, and which part of the last fetched tensor they
use from then on. All others fetch once more after they allocated, or are assumed to, which never
predicts too little."""


def temp_tensors(op: Op) -> list[Tensor]:
    """The tensors that Prepare fetches, in order; one that is fetched twice is there twice."""
    inputs, kind = op.inputs, op.kind
    if kind == "ADD_N":
        return [t for t in (*inputs[:1], *op.outputs, *inputs[1:]) if t is not None]
    if kind == "CONCATENATION":
        return [t for t in (*inputs[:1], *op.outputs, *inputs) if t is not None]
    if kind == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        return [*op.operands(), *op.outputs]
    if kind == "TRANSPOSE_CONV":  # inputs: shape, filter, data, bias
        floats = element_type(op, 2) == "float32"
        return named_tensors(op, "o0 i2 i1" if floats else "o0 i2 i1 i2 i1 i3 o0")
    return named_tensors(op, _FETCHED.get(kind, ""))


def named_tensors(op: Op, sequence: str) -> list[Tensor]:
    """The tensors that a sequence such as "i0 i1 o0" names, without those that are omitted."""
    present: list[Tensor] = []
    for word in sequence.split():
        index = int(word[1:])
        if word[0] == "q" and element_type(op) != "int8":
            continue
        tensors = op.inputs if word[0] == "i" else op.outputs
        tensor = tensors[index] if index < len(tensors) else None
        if tensor is not None:
            present.append(tensor)
    return present
