"""Sizes of OpData, the structure that a reference kernel allocates in Init.

Taken with sizeof from tflite-micro 90b983c for 32 and 64 bits. Custom operators are in
`custom_ops`, memory that Prepare allocates in `persistent_allocations`. This module must not know
addresses.
"""

from __future__ import annotations

from tflm_planner.tflm.target import Target

Sizes = tuple[int, int]
"""Bytes on 32 bits, on 64 bits."""

_CURRENT: dict[str, Sizes] = {
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
_COMPRESSION: dict[str, Sizes] = {
    "ASSIGN_VARIABLE": (4, 4), "CONCATENATION": (64, 80), "CONV_2D": (64, 80),
    "DEPTHWISE_CONV_2D": (64, 80), "FULLY_CONNECTED": (56, 72), "TRANSPOSE_CONV": (80, 88),
}  # fmt: skip
"""Reference kernels that can decompress keep scratch indices too."""
_ARDUINO: dict[str, Sizes] = {"FULLY_CONNECTED": (60, 60)}


def op_data_bytes(kind: str, target: Target) -> int:
    """Bytes of OpData, 0 without."""
    sizes = _CURRENT.get(kind, (0, 0))
    if target.compression:
        sizes = _COMPRESSION.get(kind, sizes)
    if target.is_arduino_2023:
        sizes = _ARDUINO.get(kind, sizes)
    return sizes[target.pointer == 8]
