"""What CMSIS-NN's kernels allocate in Prepare and keep, where that differs from the reference.

Read from the Prepare functions of tflite-micro 90b983c, tensorflow/lite/micro/kernels/cmsis_nn,
and of the Arduino library of 2023. This module must not know addresses.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels.libraries.reference import persistent_allocations as reference
from tflm_planner.tflm.kernels.libraries.reference.persistent_allocations import runs_as_convolution
from tflm_planner.tflm.kernels.operands import dimension, element_type
from tflm_planner.tflm.kernels.operator_memory import PersistentRule
from tflm_planner.tflm.target import Target


def convolution(axis: int) -> PersistentRule:
    """Unlike the reference kernels, these allocate no multipliers for floats."""
    of_integers = reference.each_channel(axis)
    return lambda op, target: [] if element_type(op) == "float32" else of_integers(op, target)


def fully_connected(op: Op, target: Target) -> list[int]:
    """Row sums of the filter, after what the reference keeps."""
    sums = [4 * dimension(op.outputs[0], -1)] if keeps_row_sums(op, target) else []
    return reference.fully_connected(op, target) + sums


def keeps_row_sums(op: Op, target: Target) -> bool:
    """Whether CMSIS-NN with MVE sums the weights' rows once, into persistent memory, instead of
    into scratch (fully_connected.cc)."""
    weights = op.inputs[1]
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    return (
        needs_row_sums(op, target)
        and not target.is_arduino_2023
        and target.optimized == "speed"
        and weights is not None
        and weights.is_constant
        and (bias is None or bias.is_constant)
    )


def needs_row_sums(op: Op, target: Target) -> bool:
    """Whether the int8 kernel needs row sums at all: with MVE, unless it runs as a 1x1
    convolution."""
    int8 = element_type(op) == "int8" and element_type(op, 1) != "int4"
    return target.extension == "mve" and int8 and not runs_as_convolution(op)


def batch_matmul(op: Op, target: Target) -> list[int]:
    """Parameters last."""
    quantized, copies, output = reference.batch_matmul_parts(op, target)
    return copies + output + quantized


def svdf(op: Op, target: Target) -> list[int]:
    """Row sums of the features, with MVE."""
    features = op.inputs[1]
    sums = element_type(op) == "int8" and target.extension == "mve" and target.optimized == "speed"
    return [4 * dimension(features, 0)] if sums and features is not None else []


def lstm(op: Op, target: Target) -> list[int]:
    """Biases and weight sums of four gates combined, for input and hidden state."""
    state = op.inputs[18] if len(op.inputs) > 18 else None
    if state is None or element_type(op) not in ("int8", "int16"):
        return []
    return 8 * [(4 if element_type(op) == "int8" else 8) * dimension(state, -1)]
