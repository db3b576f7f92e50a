"""What the reference kernels allocate in Prepare and keep: multipliers, tables, copies of shapes.

Each allocation is rounded up to 16 by the arena. Read from the Prepare functions of tflite-micro
90b983c, tensorflow/lite/micro/kernels. This module must not know addresses, nor which tensors
Prepare fetches in between (`temp_tensors`).
"""

from __future__ import annotations

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.schema import element_bits
from tflm_planner.tflm.kernels.operands import dimension, dims_bytes, element_type
from tflm_planner.tflm.kernels.operator_memory import PersistentRule
from tflm_planner.tflm.kernels.prepare import scale_count_of
from tflm_planner.tflm.target import Target


def each_channel(axis: int) -> PersistentRule:
    """Multiplier and shift of every channel; channels lie along an axis of the filter."""

    def rule(op: Op, target: Target) -> list[int]:
        weights = op.inputs[1] if len(op.inputs) > 1 else None
        return [] if weights is None else 2 * [4 * dimension(weights, axis)]

    return rule


def fully_connected(op: Op, target: Target) -> list[int]:
    """Multiplier and shift of every channel, if the filter has a scale for each. The Arduino
    library of 2023 has only CMSIS-NN's kernel, which repeats a single scale for a 1x1
    convolution."""
    weights = op.inputs[1]
    if target.is_arduino_2023:
        repeated = element_type(op) == "int8" and runs_as_convolution(op)
        return 2 * [4 * dimension(op.outputs[0], -1)] if repeated else []
    scales = 0 if weights is None else scale_count_of(weights)
    return 2 * [4 * scales] if scales > 1 and element_type(op) != "float32" else []


def runs_as_convolution(op: Op) -> bool:
    """Whether CMSIS-NN runs an int8 FULLY_CONNECTED as a 1x1 convolution."""
    weights = op.inputs[1]
    depth = 0 if weights is None else dimension(weights, -1)
    return len(op.outputs[0].shape or ()) > 2 and depth % 4 == 0


def batch_matmul(op: Op, target: Target) -> list[int]:
    """Parameters first."""
    quantized, copies, output = batch_matmul_parts(op, target)
    return quantized + copies + output


def batch_matmul_parts(op: Op, target: Target) -> tuple[list[int], list[int], list[int]]:
    """Parameters of quantised operands, operands to transpose, and the result's shape."""
    eval_tensor = 24 if target.pointer == 8 else 12
    left, right = op.operands()[:2]

    def transposition(tensor: Tensor) -> list[int]:
        data = tensor.elements * (element_bits(tensor.type) or 8) // 8
        return [eval_tensor, dims_bytes(tensor), data]

    quantized = [28] if left.type_name in ("int8", "int16") else []
    is_left_transposed, is_right_transposed = op.options.transposes
    copies = transposition(left) if is_left_transposed else []
    if not is_right_transposed:
        copies += transposition(right)
    return quantized, copies, [dims_bytes(op.outputs[0])]


def moved_shape(op: Op, target: Target) -> list[int]:
    """Kernels that overwrite their output's shape first copy it out of the model."""
    return [dims_bytes(op.outputs[0])]


def if_type(
    types: tuple[str, ...], small: int, large: int = 0, times: int = 1, *, at_output: bool = False
) -> PersistentRule:
    """Allocations of a fixed size, for some element types only."""

    def rule(op: Op, target: Target) -> list[int]:
        kind = op.outputs[0].type_name if at_output else element_type(op)
        return times * [large if large and target.pointer == 8 else small] if kind in types else []

    return rule


def embedding_lookup(op: Op, target: Target) -> list[int]:
    """The result's shape, and a structure."""
    return [dims_bytes(op.outputs[0]), 16 if target.pointer == 8 else 8]
