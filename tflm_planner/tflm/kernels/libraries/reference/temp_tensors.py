"""Which tensors the Prepare of a reference kernel fetches, where that depends on the operator.

Every tensor fetched stays in temporary memory until Prepare ends, even one that the kernel freed.
Read from the Prepare functions of tflite-micro 90b983c, tensorflow/lite/micro/kernels. This module
must not know addresses, nor sizes (`persistent_allocations`).
"""

from __future__ import annotations

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.kernels.operator_memory import named_tensors


def added(op: Op) -> list[Tensor]:
    """ADD_N: the first input, the output, the other inputs."""
    return [t for t in (*op.inputs[:1], *op.outputs, *op.inputs[1:]) if t is not None]


def concatenated(op: Op) -> list[Tensor]:
    """CONCATENATION: the first input, the output, then every input."""
    return [t for t in (*op.inputs[:1], *op.outputs, *op.inputs) if t is not None]


def all_tensors(op: Op) -> list[Tensor]:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: whatever there is."""
    return [*op.operands(), *op.outputs]


def transposed_convolution(op: Op) -> list[Tensor]:
    """TRANSPOSE_CONV, whose inputs are shape, filter, data and bias."""
    floats = element_type(op, 2) == "float32"
    return named_tensors(op, "o0 i2 i1" if floats else "o0 i2 i1 i2 i1 i3 o0")
