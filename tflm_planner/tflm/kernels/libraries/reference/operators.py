"""What every operator that TFLM registers takes in the arena with the reference kernels.

A row has the builtin parameters, OpData, the tensors that Prepare fetches, and rules for what else
it allocates; read, or taken with sizeof, from tflite-micro 90b983c, tensorflow/lite/micro/kernels,
for bare-metal Arm, 32 bits with long enums (Xtensa), and x86-64. The other custom operators are in
`custom_ops`. This module must not know addresses.
"""

from __future__ import annotations

from tflm_planner.tflm.kernels.libraries.reference import persistent_allocations as persistent
from tflm_planner.tflm.kernels.libraries.reference import scratch
from tflm_planner.tflm.kernels.libraries.reference import temp_tensors as temp
from tflm_planner.tflm.kernels.operator_memory import BuiltinParameters, OperatorMemory

_ENUM = BuiltinParameters(1, 4, 4, "enums")
"""Parameters that are one enum."""
_ENUM_BOOL = BuiltinParameters(2, 8, 8, "enums")
_FULLY_CONNECTED = BuiltinParameters(5, 16, 16, "enums", in_2023=4, recording=32)
"""Measured of the Python package, because that is two months younger than the sources."""
_POINTERS = BuiltinParameters(8, 8, 16, "pointers")


def _words(arm: int, elsewhere: int | None = None, in_2023: int | None = None) -> BuiltinParameters:
    others = arm if elsewhere is None else elsewhere
    return BuiltinParameters(arm, others, others, in_2023=in_2023)


def _flags(size: int) -> BuiltinParameters:
    return BuiltinParameters(size, size, size, "flags")


OPERATORS: dict[str, OperatorMemory] = {
    "ABS": OperatorMemory(op_data=(28, 28), fetches="i0 o0"),
    "ADD": OperatorMemory(_ENUM_BOOL, (60, 60), "i0 i1 o0"),
    "ADD_N": OperatorMemory(
        fetches=temp.added,
        keeps="dims",
        persistent=persistent.if_type(("int8",), 40, at_output=True),
        scratch=scratch.add_n,
    ),
    "ARG_MAX": OperatorMemory(_ENUM),
    "ARG_MIN": OperatorMemory(_ENUM),
    "ASSIGN_VARIABLE": OperatorMemory(fetches="i1", decompressing=(4, 4)),
    "AVERAGE_POOL_2D": OperatorMemory(_words(40), (32, 32), "i0 o0"),
    "BATCH_MATMUL": OperatorMemory(
        _flags(3), (16, 32), "i0 i1 o0", keeps="dims", persistent=persistent.batch_matmul
    ),
    "BATCH_TO_SPACE_ND": OperatorMemory(fetches="i0 o0"),
    "BROADCAST_ARGS": OperatorMemory(fetches="i0 i1 o0"),
    "BROADCAST_TO": OperatorMemory(fetches="i0 i1 o0"),
    "CALL_ONCE": OperatorMemory(_words(4), (8, 8)),
    "CAST": OperatorMemory(_ENUM_BOOL, fetches="i0 o0"),
    "CEIL": OperatorMemory(fetches="i0 o0"),
    "CIRCULAR_BUFFER": OperatorMemory(op_data=(8, 8), fetches="i0 o0"),
    "CONCATENATION": OperatorMemory(_words(8), (24, 40), temp.concatenated, decompressing=(64, 80)),
    "CONV_2D": OperatorMemory(
        _words(28, in_2023=24),
        (56, 72),
        "o0 i0 i1 i0 i1 i2 o0",
        persistent=persistent.each_channel(0),
        scratch=scratch.unpacked_filter,
        decompressing=(64, 80),
    ),
    "COS": OperatorMemory(fetches="i0 o0"),
    "CUMSUM": OperatorMemory(
        _flags(2),
        fetches="i0 i1 o0",
        keeps="dims",
        persistent=persistent.if_type(("int8",), 36, at_output=True),
    ),
    "DEPTHWISE_CONV_2D": OperatorMemory(
        _words(28),
        (56, 72),
        "o0 i0 i1 i0 i1 i2 o0",
        persistent=persistent.each_channel(3),
        scratch=scratch.unpacked_filter,
        decompressing=(64, 80),
    ),
    "DEPTH_TO_SPACE": OperatorMemory(
        _words(4), fetches="i0 o0", keeps="dims", persistent=persistent.moved_shape
    ),
    "DEQUANTIZE": OperatorMemory(op_data=(32, 32), fetches="i0 o0"),
    "DIV": OperatorMemory(_ENUM, (28, 28), "i0 i1 o0"),
    "DYNAMIC_UPDATE_SLICE": OperatorMemory(fetches="i0 i1 i2 o0"),
    "ELU": OperatorMemory(op_data=(256, 256), fetches="i0 o0"),
    "EMBEDDING_LOOKUP": OperatorMemory(
        fetches="i0 i1 o0", keeps="struct", persistent=persistent.embedding_lookup
    ),
    "EQUAL": OperatorMemory(op_data=(32, 32), fetches="i0 i1"),
    "EXP": OperatorMemory(fetches="i0 o0"),
    "EXPAND_DIMS": OperatorMemory(fetches="i0 i1 o0"),
    "FILL": OperatorMemory(fetches="i0 i1 o0"),
    "FLOOR": OperatorMemory(),
    "FLOOR_DIV": OperatorMemory(fetches="i0 i1 o0"),
    "FLOOR_MOD": OperatorMemory(fetches="i0 i1 o0"),
    "FULLY_CONNECTED": OperatorMemory(
        _FULLY_CONNECTED,
        (48, 64),
        "i0 i1 i2 o0",
        keeps="struct",
        persistent=persistent.fully_connected,
        scratch=scratch.unpacked_filter,
        decompressing=(56, 72),
        op_data_2023=(60, 60),
    ),
    "GATHER": OperatorMemory(
        _words(8), fetches="i0 i1 o0", keeps="dims", persistent=persistent.moved_shape
    ),
    "GATHER_ND": OperatorMemory(
        fetches="i0 i1 o0", keeps="dims", persistent=persistent.moved_shape
    ),
    "GREATER": OperatorMemory(op_data=(32, 32), fetches="i0 i1"),
    "GREATER_EQUAL": OperatorMemory(op_data=(32, 32), fetches="i0 i1"),
    "HARD_SWISH": OperatorMemory(op_data=(20, 20), fetches="i0 o0"),
    "IF": OperatorMemory(_words(8), (8, 8), "i0"),
    "L2_NORMALIZATION": OperatorMemory(_ENUM, (4, 4), "i0 o0"),
    "L2_POOL_2D": OperatorMemory(
        _words(40), fetches="o0 i0", keeps="dims", persistent=persistent.moved_shape
    ),
    "LEAKY_RELU": OperatorMemory(_words(4), (24, 24), "i0 o0"),
    "LESS": OperatorMemory(op_data=(32, 32), fetches="i0 i1"),
    "LESS_EQUAL": OperatorMemory(op_data=(32, 32), fetches="i0 i1"),
    "LOG": OperatorMemory(fetches="i0 o0"),
    "LOGICAL_AND": OperatorMemory(),
    "LOGICAL_NOT": OperatorMemory(fetches="i0 o0"),
    "LOGICAL_OR": OperatorMemory(),
    "LOGISTIC": OperatorMemory(op_data=(16, 16), fetches="i0 o0"),
    "LOG_SOFTMAX": OperatorMemory(
        fetches="i0 o0", keeps="dims", persistent=persistent.if_type(("int8",), 28, 40)
    ),
    "MAXIMUM": OperatorMemory(),
    "MAX_POOL_2D": OperatorMemory(_words(40), (32, 32), "i0 o0"),
    "MEAN": OperatorMemory(_flags(1), (44, 44), "i0 o0 i1 i0 i1 q0", scratch=scratch.mean_or_sum),
    "MINIMUM": OperatorMemory(),
    "MIRROR_PAD": OperatorMemory(_ENUM, (20, 20), "i0 i1 o0", scratch=scratch.mirror_pad),
    "MUL": OperatorMemory(_ENUM, (36, 36), "i0 i1 o0"),
    "NEG": OperatorMemory(),
    "NOT_EQUAL": OperatorMemory(op_data=(32, 32), fetches="i0 i1"),
    "PACK": OperatorMemory(_words(8)),
    "PAD": OperatorMemory(op_data=(56, 56), fetches="i0 i1 i2 o0"),
    "PADV2": OperatorMemory(op_data=(56, 56), fetches="i0 i1 i2 o0"),
    "PRELU": OperatorMemory(op_data=(28, 28), fetches="i0 i1 o0"),
    "QUANTIZE": OperatorMemory(op_data=(32, 32), fetches="i0 o0"),
    "READ_VARIABLE": OperatorMemory(fetches="i0"),
    "REDUCE_ALL": OperatorMemory(
        _flags(1), (44, 44), "i0 o0 i1 i0 i1 q0", scratch=scratch.other_reduction
    ),
    "REDUCE_MAX": OperatorMemory(
        _flags(1), (44, 44), "i0 i1 q0 i0 o0 i1", scratch=scratch.other_reduction
    ),
    "REDUCE_MIN": OperatorMemory(
        _flags(1), (44, 44), "i0 i1 q0 i0 o0 i1", scratch=scratch.other_reduction
    ),
    "RELU": OperatorMemory(op_data=(28, 28), fetches="i0 o0"),
    "RELU6": OperatorMemory(op_data=(8, 8), fetches="i0"),
    "RESHAPE": OperatorMemory(_words(36), fetches="i0 o0"),
    "RESIZE_BILINEAR": OperatorMemory(_flags(2), fetches="i0 i1 o0"),
    "RESIZE_NEAREST_NEIGHBOR": OperatorMemory(_flags(2), fetches="i0 i1 o0"),
    "REVERSE_V2": OperatorMemory(fetches="i0 i1 o0"),
    "ROUND": OperatorMemory(fetches="i0 o0"),
    "RSQRT": OperatorMemory(op_data=(28, 28), fetches="i0 o0"),
    "SELECT_V2": OperatorMemory(op_data=(1, 1), fetches="i0 i1 i2 o0"),
    "SHAPE": OperatorMemory(_ENUM),
    "SIN": OperatorMemory(fetches="i0 o0"),
    "SLICE": OperatorMemory(fetches="i0 i1 i2 o0"),
    "SOFTMAX": OperatorMemory(
        _words(4),
        (56, 80),
        "i0 o0",
        keeps="dims",
        persistent=persistent.if_type(("int16",), 2 * 513, times=2),
    ),
    "SPACE_TO_BATCH_ND": OperatorMemory(op_data=(4, 4), fetches="i0 o0"),
    "SPACE_TO_DEPTH": OperatorMemory(
        _words(4), fetches="i0 o0", keeps="dims", persistent=persistent.moved_shape
    ),
    "SPLIT": OperatorMemory(_words(4), fetches="i0"),
    "SPLIT_V": OperatorMemory(_words(4), fetches="i2"),
    "SQRT": OperatorMemory(fetches="i0 o0"),
    "SQUARE": OperatorMemory(fetches="i0 o0"),
    "SQUARED_DIFFERENCE": OperatorMemory(op_data=(112, 112), fetches="i0 i1 o0"),
    "SQUEEZE": OperatorMemory(_words(36), fetches="i0 o0"),
    "STRIDED_SLICE": OperatorMemory(_words(24), (84, 84), "i0 i1 i2 i3 o0"),
    "SUB": OperatorMemory(_ENUM_BOOL, (52, 52), "i0 i1 o0"),
    "SUM": OperatorMemory(_flags(1), (44, 44), "i0 o0 i1 i0 i1 q0", scratch=scratch.mean_or_sum),
    "SVDF": OperatorMemory(_words(8, 12), (36, 36), "i0 i1 i2 i3 i4 o0", scratch=scratch.svdf),
    "TANH": OperatorMemory(op_data=(16, 16), fetches="i0 i0 o0"),
    "TFLite_Detection_PostProcess": OperatorMemory(op_data=(112, 112), fetches="i0 i1 i2"),
    "TRANSPOSE": OperatorMemory(fetches="i0 i1 o0"),
    "TRANSPOSE_CONV": OperatorMemory(
        _words(16, 20),
        (72, 80),
        temp.transposed_convolution,
        persistent=persistent.each_channel(0),
        scratch=scratch.transpose_conv,
        decompressing=(80, 88),
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": OperatorMemory(
        _words(16), (688, 688), temp.all_tensors, scratch=scratch.lstm
    ),
    "UNPACK": OperatorMemory(_words(8)),
    "VAR_HANDLE": OperatorMemory(_POINTERS, (4, 4)),
    "WHILE": OperatorMemory(_words(8), (8, 8)),
    "ZEROS_LIKE": OperatorMemory(fetches="i0 o0"),
}
"""By kind: every operator of the schema that TFLM registers, and the custom ones that follow its
rules."""
