"""Which operators CMSIS-NN serves with kernels that use memory in their own way, and the sizes of
their OpData.

Taken with sizeof from tflite-micro 90b983c for 32 and 64 bits. This module must not know
addresses.
"""

from __future__ import annotations

from tflm_planner.tflm.kernels.libraries.reference.op_data import Sizes
from tflm_planner.tflm.target import Target

_SIZES: dict[str, Sizes] = {
    "BATCH_MATMUL": (36, 56), "CONV_2D": (60, 80), "DEPTHWISE_CONV_2D": (60, 80),
    "FULLY_CONNECTED": (72, 96), "AVERAGE_POOL_2D": (36, 36), "MAX_POOL_2D": (36, 36),
    "SOFTMAX": (64, 88), "SVDF": (40, 48), "TRANSPOSE_CONV": (76, 88),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (912, 1008),
}  # fmt: skip
_NOT_IN_2023 = frozenset(("BATCH_MATMUL", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM"))
"""Operators that CMSIS-NN did not yet serve in the Arduino library of 2023."""
_AS_REFERENCE_IN_2023 = frozenset(("FULLY_CONNECTED",))
"""Operators whose OpData in the Arduino library of 2023 is in the table of the reference."""


def serves(kind: str, target: Target) -> bool:
    """Whether CMSIS-NN's kernel of this operator runs, and uses memory other than TFLM's own."""
    return kind in _SIZES and not (target.is_arduino_2023 and kind in _NOT_IN_2023)


def op_data_bytes(kind: str, target: Target) -> int | None:
    """Bytes of OpData where CMSIS-NN's own kernel runs, None where it is as of the reference."""
    if not serves(kind, target) or (target.is_arduino_2023 and kind in _AS_REFERENCE_IN_2023):
        return None
    return _SIZES[kind][target.pointer == 8]
