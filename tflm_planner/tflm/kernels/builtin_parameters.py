"""Sizes of the builtin parameters that TFLM parses for every operator, independent of its kernels.

Taken with sizeof from tflite-micro 90b983c for three layouts: bare-metal Arm (short enums), 32
bits with long enums (Xtensa), and x86-64. Custom operators have none (`custom_ops`). This module
must not know addresses.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.tflm.target import Target

Sizes = tuple[int, int, int]
"""Bytes on bare-metal Arm, on 32 bits with long enums, on x86-64."""


def _column(target: Target) -> int:
    return 2 if target.pointer == 8 else 0 if target.short_enums else 1


_ENUM: Sizes = (1, 4, 4)
"""Parameters that consist of one enum."""
_ENUM_BOOL: Sizes = (2, 8, 8)
_NONE = (
    "ABS", "ADD_N", "ASSIGN_VARIABLE", "BATCH_TO_SPACE_ND", "BROADCAST_ARGS", "BROADCAST_TO",
    "CEIL", "COS", "DEQUANTIZE", "DYNAMIC_UPDATE_SLICE", "ELU", "EMBEDDING_LOOKUP", "EQUAL",
    "EXP", "EXPAND_DIMS", "FILL", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "GATHER_ND", "GREATER",
    "GREATER_EQUAL", "HARD_SWISH", "LESS", "LESS_EQUAL", "LOG", "LOGICAL_AND", "LOGICAL_NOT",
    "LOGICAL_OR", "LOGISTIC", "LOG_SOFTMAX", "MAXIMUM", "MINIMUM", "NEG", "NOT_EQUAL", "PAD",
    "PADV2", "PRELU", "QUANTIZE", "READ_VARIABLE", "RELU", "RELU6", "REVERSE_V2", "ROUND",
    "RSQRT", "SELECT_V2", "SIN", "SLICE", "SPACE_TO_BATCH_ND", "SQRT", "SQUARE",
    "SQUARED_DIFFERENCE", "TANH", "TRANSPOSE", "ZEROS_LIKE", "CIRCULAR_BUFFER",
    "TFLite_Detection_PostProcess",
)  # fmt: skip
"""Operators without builtin parameters."""
_BUILTIN: dict[str, Sizes] = {
    "ADD": _ENUM_BOOL, "SUB": _ENUM_BOOL, "CAST": _ENUM_BOOL,
    "ARG_MAX": _ENUM, "ARG_MIN": _ENUM, "DIV": _ENUM, "L2_NORMALIZATION": _ENUM,
    "MIRROR_PAD": _ENUM, "MUL": _ENUM, "SHAPE": _ENUM,
    "AVERAGE_POOL_2D": (40, 40, 40), "MAX_POOL_2D": (40, 40, 40), "L2_POOL_2D": (40, 40, 40),
    "BATCH_MATMUL": (3, 3, 3), "CALL_ONCE": (4, 4, 4), "CONCATENATION": (8, 8, 8),
    "CONV_2D": (28, 28, 28), "DEPTHWISE_CONV_2D": (28, 28, 28), "CUMSUM": (2, 2, 2),
    "DEPTH_TO_SPACE": (4, 4, 4), "SPACE_TO_DEPTH": (4, 4, 4), "FULLY_CONNECTED": (5, 16, 16),
    "GATHER": (8, 8, 8), "IF": (8, 8, 8), "WHILE": (8, 8, 8), "LEAKY_RELU": (4, 4, 4),
    "MEAN": (1, 1, 1), "SUM": (1, 1, 1), "REDUCE_ALL": (1, 1, 1), "REDUCE_MAX": (1, 1, 1),
    "REDUCE_MIN": (1, 1, 1), "PACK": (8, 8, 8), "UNPACK": (8, 8, 8), "RESHAPE": (36, 36, 36),
    "RESIZE_BILINEAR": (2, 2, 2), "RESIZE_NEAREST_NEIGHBOR": (2, 2, 2), "SOFTMAX": (4, 4, 4),
    "SPLIT": (4, 4, 4), "SPLIT_V": (4, 4, 4), "SQUEEZE": (36, 36, 36),
    "STRIDED_SLICE": (24, 24, 24), "SVDF": (8, 12, 12), "TRANSPOSE_CONV": (16, 20, 20),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (16, 16, 16), "VAR_HANDLE": (8, 8, 16),
}  # fmt: skip
_BYTES_ONLY = {
    "BATCH_MATMUL", "CUMSUM", "MEAN", "SUM", "REDUCE_ALL", "REDUCE_MAX", "REDUCE_MIN",
    "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR",
}  # fmt: skip
"""Parameters that consist of booleans only: alignment 1 everywhere."""
_SHORT_ALIGNMENT = {"FULLY_CONNECTED"}
"""Parameters of enums and booleans only: alignment 1 where enums are short."""
_ARDUINO_BUILTIN: dict[str, int] = {"CONV_2D": 24, "FULLY_CONNECTED": 4}
_HOST_BUILTIN: dict[str, int] = {"FULLY_CONNECTED": 32}
"""Measured, because the Python package is two months younger than the sources. These parameters
hold a pointer."""

BUILTINS = frozenset([*_NONE, *_BUILTIN])
"""Every operator of the schema that TFLM registers, and the custom ones that follow its rules."""


def builtin_parameters_size(op: Op, target: Target) -> tuple[int, int] | None:
    """Size and alignment of the builtin parameters; None if there are none."""
    sizes, column = _BUILTIN.get(op.kind), _column(target)
    if sizes is None:
        return None
    size = sizes[column]
    if target.is_arduino_2023:
        size = _ARDUINO_BUILTIN.get(op.kind, size)
    if target.recording:
        size = _HOST_BUILTIN.get(op.kind, size)
    enums = sizes in (_ENUM, _ENUM_BOOL) or op.kind in _SHORT_ALIGNMENT
    if op.kind in _BYTES_ONLY or (enums and column == 0):
        return size, 1
    pointers = op.kind == "VAR_HANDLE" or (target.recording and op.kind in _HOST_BUILTIN)
    return size, 8 if pointers and target.pointer == 8 else 4
