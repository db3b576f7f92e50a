"""Which operators CMSIS-NN serves with kernels that use memory in their own way, and how.

Taken with sizeof, and read from the Prepare functions, of tflite-micro 90b983c for 32 and 64 bits
(tensorflow/lite/micro/kernels/cmsis_nn), and of the Arduino library of 2023. What a row does not
say is as of the reference. This module must not know addresses.
"""

from __future__ import annotations

from dataclasses import replace

from tflm_planner.tflm.kernels.libraries.cmsis_nn import persistent_allocations as persistent
from tflm_planner.tflm.kernels.libraries.cmsis_nn import scratch
from tflm_planner.tflm.kernels.libraries.reference.operators import OPERATORS
from tflm_planner.tflm.kernels.operator_memory import (
    OperatorMemory,
    PersistentRule,
    ScratchRule,
    Sizes,
)
from tflm_planner.tflm.target import Target


def _own(
    kind: str,
    op_data: Sizes,
    *,
    fetches: str | None = None,
    persistent: PersistentRule | None = None,
    scratch: ScratchRule | None = None,
) -> tuple[str, OperatorMemory]:
    """The row of an operator, with what differs; the kernels cannot decompress."""
    reference = OPERATORS[kind]
    return kind, replace(
        reference,
        op_data=op_data,
        decompressing=None,
        fetches=fetches or reference.fetches,
        persistent=persistent or reference.persistent,
        scratch=scratch or reference.scratch,
    )


_CONVOLUTION = "i0 i1 o0 i0 i1 i2 o0"
_SERVED: dict[str, OperatorMemory] = dict((
    _own("AVERAGE_POOL_2D", (36, 36), fetches="i0 o0 i0 o0", scratch=scratch.average_pool),
    _own("BATCH_MATMUL", (36, 56),
         persistent=persistent.batch_matmul, scratch=scratch.batch_matmul),
    _own("CONV_2D", (60, 80), fetches=_CONVOLUTION,
         persistent=persistent.convolution(0), scratch=scratch.convolution),
    _own("DEPTHWISE_CONV_2D", (60, 80), fetches=_CONVOLUTION,
         persistent=persistent.convolution(3), scratch=scratch.depthwise),
    _own("FULLY_CONNECTED", (72, 96),
         persistent=persistent.fully_connected, scratch=scratch.fully_connected),
    _own("MAX_POOL_2D", (36, 36)),
    _own("SOFTMAX", (64, 88)),
    _own("SVDF", (40, 48), persistent=persistent.svdf, scratch=scratch.svdf),
    _own("TRANSPOSE_CONV", (76, 88), scratch=scratch.transpose_conv),
    _own("UNIDIRECTIONAL_SEQUENCE_LSTM", (912, 1008),
         persistent=persistent.lstm, scratch=scratch.lstm),
))  # fmt: skip
"""By kind."""
_NOT_IN_2023 = frozenset(("BATCH_MATMUL", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM"))
"""Operators that CMSIS-NN did not yet serve in the Arduino library of 2023."""


def served(kind: str, target: Target) -> OperatorMemory | None:
    """What an operator takes where CMSIS-NN's own kernel runs; None where the reference's does."""
    return None if target.is_arduino_2023 and kind in _NOT_IN_2023 else _SERVED.get(kind)
