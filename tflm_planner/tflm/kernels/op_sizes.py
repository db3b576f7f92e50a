"""Sizes of what every operator allocates before Prepare: builtin parameters, and OpData in Init.

Taken with sizeof from tflite-micro 90b983c for three layouts: bare-metal Arm (short enums), 32
bits with long enums (Xtensa), and x86-64. Custom operators are in `custom_ops`, further memory
of Prepare in `persistent`. This module must not know addresses.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.tflm.targets import Target

Sizes = tuple[int, int, int]
"""Bytes on bare-metal Arm, on 32 bits with long enums, on x86-64."""


def _column(target: Target) -> int:
    return 2 if target.pointer == 8 else 0 if target.short_enums else 1


# --- builtin parameters ---------------------------------------------------------------------

_ENUM: Sizes = (1, 4, 4)
"""Parameters that are one enum."""
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
"""Parameters of nothing but booleans: alignment 1 everywhere."""
_SHORT_ALIGNMENT = {"FULLY_CONNECTED"}
"""Enums and booleans only: alignment 1 where enums are short."""
_ARDUINO_BUILTIN: dict[str, int] = {"CONV_2D": 24, "FULLY_CONNECTED": 4}
_WHEEL_BUILTIN: dict[str, int] = {"FULLY_CONNECTED": 32}
"""Measured: the wheel is two months younger than the sources. These hold a pointer."""

BUILTINS = frozenset([*_NONE, *_BUILTIN])
"""Every operator with an entry here."""


def builtin_parameters_size(op: Op, target: Target) -> tuple[int, int] | None:
    """Size and alignment of the builtin parameters, None without."""
    sizes, column = _BUILTIN.get(op.kind), _column(target)
    if sizes is None:
        return None
    size = sizes[column]
    if target.version == "arduino-2023":
        size = _ARDUINO_BUILTIN.get(op.kind, size)
    if target.recording:
        size = _WHEEL_BUILTIN.get(op.kind, size)
    enums = sizes in (_ENUM, _ENUM_BOOL) or op.kind in _SHORT_ALIGNMENT
    if op.kind in _BYTES_ONLY or (enums and column == 0):
        return size, 1
    pointers = op.kind == "VAR_HANDLE" or (target.recording and op.kind in _WHEEL_BUILTIN)
    return size, 8 if pointers and target.pointer == 8 else 4


# --- OpData ---------------------------------------------------------------------------------

_INIT: dict[str, tuple[int, int]] = {  # 32 bits, 64 bits
    "ABS": (28, 28), "RSQRT": (28, 28), "ADD": (60, 60), "BATCH_MATMUL": (16, 32),
    "CALL_ONCE": (8, 8), "CIRCULAR_BUFFER": (8, 8), "CONCATENATION": (24, 40),
    "CONV_2D": (56, 72), "DEPTHWISE_CONV_2D": (56, 72), "DEQUANTIZE": (32, 32),
    "TFLite_Detection_PostProcess": (112, 112), "DIV": (28, 28), "ELU": (256, 256),
    "FULLY_CONNECTED": (48, 64), "HARD_SWISH": (20, 20), "IF": (8, 8),
    "L2_NORMALIZATION": (4, 4), "LEAKY_RELU": (24, 24), "LOGISTIC": (16, 16),
    "MIRROR_PAD": (20, 20), "MUL": (36, 36), "PAD": (56, 56), "PADV2": (56, 56),
    "AVERAGE_POOL_2D": (32, 32), "MAX_POOL_2D": (32, 32), "PRELU": (28, 28),
    "QUANTIZE": (32, 32), "MEAN": (44, 44), "SUM": (44, 44), "REDUCE_MAX": (44, 44),
    "REDUCE_MIN": (44, 44), "REDUCE_ALL": (44, 44), "RELU": (28, 28), "RELU6": (8, 8),
    "SELECT_V2": (1, 1), "SOFTMAX": (56, 80), "SPACE_TO_BATCH_ND": (4, 4),
    "SQUARED_DIFFERENCE": (112, 112), "STRIDED_SLICE": (84, 84), "SUB": (52, 52),
    "SVDF": (36, 36), "TANH": (16, 16), "TRANSPOSE_CONV": (72, 80),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (688, 688), "VAR_HANDLE": (4, 4), "WHILE": (8, 8),
    **dict.fromkeys(
        ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), (32, 32)
    ),
}  # fmt: skip
_CMSIS_INIT: dict[str, tuple[int, int]] = {
    "BATCH_MATMUL": (36, 56), "CONV_2D": (60, 80), "DEPTHWISE_CONV_2D": (60, 80),
    "FULLY_CONNECTED": (72, 96), "AVERAGE_POOL_2D": (36, 36), "MAX_POOL_2D": (36, 36),
    "SOFTMAX": (64, 88), "SVDF": (40, 48), "TRANSPOSE_CONV": (76, 88),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (912, 1008),
}  # fmt: skip
_COMPRESSION_INIT: dict[str, tuple[int, int]] = {
    "ASSIGN_VARIABLE": (4, 4), "CONCATENATION": (64, 80), "CONV_2D": (64, 80),
    "DEPTHWISE_CONV_2D": (64, 80), "FULLY_CONNECTED": (56, 72), "TRANSPOSE_CONV": (80, 88),
}  # fmt: skip
"""Reference kernels that can decompress keep scratch indices too."""
_ARDUINO_INIT: dict[str, tuple[int, int]] = {"FULLY_CONNECTED": (60, 60)}
_ARDUINO_REFERENCE = {"BATCH_MATMUL", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
"""Operators that CMSIS-NN did not yet serve in the library of 2023."""


def uses_cmsis(kind: str, target: Target) -> bool:
    """Whether the target's kernel of this operator is CMSIS-NN's (or may be, if unknown)."""
    if target.version == "arduino-2023" and kind in _ARDUINO_REFERENCE:
        return False
    return target.kernels != "reference"


def op_data_bytes(op: Op, target: Target) -> int:
    """Bytes of OpData, 0 without."""
    sizes = _INIT.get(op.kind, (0, 0))
    if uses_cmsis(op.kind, target):
        sizes = _CMSIS_INIT.get(op.kind, sizes)
    elif target.compression:
        sizes = _COMPRESSION_INIT.get(op.kind, sizes)
    if target.version == "arduino-2023":
        sizes = _ARDUINO_INIT.get(op.kind, sizes)
    return sizes[1] if target.pointer == 8 else sizes[0]
