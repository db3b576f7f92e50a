"""What operators allocate in Prepare and keep: multipliers, tables, copies of shapes.

Each piece is rounded up to 16 by the arena. Read from the Prepare functions of tflite-micro
90b983c, tensorflow/lite/micro/kernels, and of its CMSIS-NN kernels. This module must not know
addresses, nor what Prepare fetches in between (`fetches`).
"""

from __future__ import annotations

from collections.abc import Callable

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.schema import element_bits
from tflm_planner.tflm.kernels.op_sizes import uses_cmsis
from tflm_planner.tflm.kernels.prepare import scale_count_of
from tflm_planner.tflm.targets import CONSERVATIVE, Target


def _dimension(tensor: Tensor, axis: int) -> int:
    shape = tensor.shape or ()
    return shape[axis] if -len(shape) <= axis < len(shape) else 0


def _dims_copy(tensor: Tensor) -> int:
    """CreateWritableTensorDimsWithCopy: a TfLiteIntArray."""
    return 4 + 4 * len(tensor.shape or ())


def persistent_allocations(op: Op, target: Target) -> list[int]:
    """Persistent allocations of Prepare in bytes, in order."""
    rule = _PREPARE.get(op.kind)
    return rule(op, target) if rule is not None and op.inputs and op.outputs else []


def _type(op: Op, index: int = 0) -> str:
    tensor = op.inputs[index] if index < len(op.inputs) else None
    return "" if tensor is None else tensor.type_name


def _conv(axis: int, operand: int = 1, always: bool = False) -> Callable[[Op, Target], list[int]]:
    """Multiplier and shift of every channel. CMSIS-NN's convolutions skip them for floats."""

    def rule(op: Op, target: Target) -> list[int]:
        known = op.inputs[operand] if operand < len(op.inputs) else None
        if known is None:
            return []
        skips = target.kernels == "cmsis-nn" and not always and _type(op) == "float32"
        return [] if skips else 2 * [4 * _dimension(known, axis)]

    return rule


def _fully_connected(op: Op, target: Target) -> list[int]:
    weights = op.inputs[1]
    found: list[int] = []
    if target.version == "arduino-2023":
        spread = _type(op) == "int8" and as_convolution(op)
        return 2 * [4 * _dimension(op.outputs[0], -1)] if spread else found
    if weights is not None and _type(op) != "float32" and scale_count_of(weights) > 1:
        found = 2 * [4 * scale_count_of(weights)]
    if keeps_sums(op, target):
        found.append(4 * _dimension(op.outputs[0], -1))
    return found


def keeps_sums(op: Op, target: Target) -> bool:
    """Whether CMSIS-NN with MVE sums the weights' rows once, into persistent memory, instead of
    into scratch (fully_connected.cc)."""
    weights = op.inputs[1]
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    return (
        needs_sums(op, target)
        and target.optimized == "speed"
        and weights is not None
        and weights.is_constant
        and (bias is None or bias.is_constant)
    )


def needs_sums(op: Op, target: Target) -> bool:
    """Whether the int8 kernel needs row sums at all: with MVE, unless it runs as a 1x1
    convolution."""
    vector = target.extension == "mve" or target.kernels in CONSERVATIVE
    int8 = _type(op) == "int8" and _type(op, 1) != "int4"
    return vector and int8 and uses_cmsis(op.kind, target) and not as_convolution(op)


def as_convolution(op: Op) -> bool:
    """Whether CMSIS-NN runs an int8 FULLY_CONNECTED as a 1x1 convolution."""
    weights = op.inputs[1]
    depth = 0 if weights is None else _dimension(weights, -1)
    return len(op.outputs[0].shape or ()) > 2 and depth % 4 == 0


def _batch_matmul(op: Op, target: Target) -> list[int]:
    eval_tensor = 24 if target.pointer == 8 else 12
    left, right = op.operands()[:2]

    def transposed(tensor: Tensor) -> list[int]:
        data = tensor.elements * (element_bits(tensor.type) or 8) // 8
        return [eval_tensor, _dims_copy(tensor), data]

    quantized = [28] if left.type_name in ("int8", "int16") else []
    copies = transposed(left) if getattr(op.options, "adjX", False) else []
    if not getattr(op.options, "adjY", False):
        copies += transposed(right)
    output = [4 + 4 * len(op.outputs[0].shape or ())]
    if uses_cmsis(op.kind, target):
        return copies + output + quantized
    return quantized + copies + output


def _moved_shape(op: Op, target: Target) -> list[int]:
    """Kernels that overwrite their output's shape move it out of the model first."""
    return [_dims_copy(op.outputs[0])]


def _svdf(op: Op, target: Target) -> list[int]:
    weights = op.inputs[1]
    vector = target.extension == "mve" or target.kernels in CONSERVATIVE
    if weights is None or _type(op) != "int8" or not vector or target.kernels == "reference":
        return []
    return [4 * _dimension(weights, 0)] if target.optimized == "speed" else []


def _lstm(op: Op, target: Target) -> list[int]:
    """CMSIS-NN folds biases and weight sums of four gates, for input and hidden state."""
    state = op.inputs[18] if len(op.inputs) > 18 else None
    if state is None or not uses_cmsis(op.kind, target) or _type(op) not in ("int8", "int16"):
        return []
    return 8 * [(4 if _type(op) == "int8" else 8) * _dimension(state, -1)]


def _if_type(types: tuple[str, ...], small: int, large: int = 0, times: int = 1, *, at_output: bool = False) -> Callable[[Op, Target], list[int]]:  # noqa: E501  # fmt: skip
    """A fixed size, for some element types only."""

    def rule(op: Op, target: Target) -> list[int]:
        seen = op.outputs[0].type_name if at_output else _type(op)
        return times * [large if large and target.pointer == 8 else small] if seen in types else []

    return rule


def _embedding_lookup(op: Op, target: Target) -> list[int]:
    return [_dims_copy(op.outputs[0]), 16 if target.pointer == 8 else 8]


_PREPARE: dict[str, Callable[[Op, Target], list[int]]] = {
    "CONV_2D": _conv(0),
    "DEPTHWISE_CONV_2D": _conv(3),
    "TRANSPOSE_CONV": _conv(0, always=True),
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "SOFTMAX": _if_type(("int16",), 2 * 513, times=2),
    "ADD_N": _if_type(("int8",), 40, at_output=True),
    "CUMSUM": _if_type(("int8",), 36, at_output=True),
    "LOG_SOFTMAX": _if_type(("int8",), 28, 40),
    "EMBEDDING_LOOKUP": _embedding_lookup,
    **dict.fromkeys(
        ("GATHER", "GATHER_ND", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "L2_POOL_2D"), _moved_shape
    ),
}
