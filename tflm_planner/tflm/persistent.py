"""What every operator that TFLM registers costs in the arena besides its tensors.

    parse    builtin parameters      packed at their own alignment
    Init     OpData                  rounded up to 16
    Prepare  further persistent      rounded up to 16
             TfLiteTensor structs    temporary, on top of the head

Sizes were taken with sizeof from tflite-micro 90b983c for three layouts: bare-metal Arm (short
enums), 32 bits with long enums (Xtensa), and x86-64; the order of allocations was read from the
Init and Prepare functions in tensorflow/lite/micro/kernels. This module must not know addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tflm_planner.ir import Op, Tensor
from tflm_planner.schema import element_bits
from tflm_planner.tflm.targets import CONSERVATIVE, Target

Sizes = tuple[int, int, int]
"""Bytes on bare-metal Arm, on 32 bits with long enums, on x86-64."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes of one operator's allocations, in order.

    builtin: size and alignment of the builtin parameters, None without. init: OpData from Init.
    prepare: persistent allocations of Prepare. fetched: tensors whose TfLiteTensor Prepare holds
    in temporary memory (one that is fetched twice is listed twice). known: False for an operator
    without an entry; its figures are then an upper bound of what usual operators need.
    """

    builtin: tuple[int, int] | None
    init: int
    prepare: tuple[int, ...]
    fetched: tuple[Tensor, ...]
    known: bool = True


def cost(op: Op, target: Target) -> Cost:
    """What `op` allocates on `target`."""
    column = _column(target)
    if op.kind not in KNOWN:
        return _unknown(op)
    return Cost(
        _builtin(op, target, column),
        _init(op, target, column),
        tuple(_prepare(op, target, column)),
        tuple(_fetched(op, target)),
    )


def _column(target: Target) -> int:
    return 2 if target.pointer == 8 else 0 if target.short_enums else 1


def _unknown(op: Op) -> Cost:
    """A generous guess: OpData of 512 bytes, a dozen words a channel, every tensor fetched
    twice."""
    tensors = [*op.operands(), *op.outputs]
    channels = max((t.shape[-1] for t in tensors if t.shape), default=0)
    return Cost((64, 8), 512, (12 * 4 * channels,), tuple(2 * tensors), known=False)


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

KNOWN = frozenset([*_NONE, *_BUILTIN])
"""Every operator with an entry."""


def _builtin(op: Op, target: Target, column: int) -> tuple[int, int] | None:
    sizes = _BUILTIN.get(op.kind)
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


def _init(op: Op, target: Target, column: int) -> int:
    sizes = _INIT.get(op.kind, (0, 0))
    if uses_cmsis(op.kind, target):
        sizes = _CMSIS_INIT.get(op.kind, sizes)
    elif target.compression:
        sizes = _COMPRESSION_INIT.get(op.kind, sizes)
    if target.version == "arduino-2023":
        sizes = _ARDUINO_INIT.get(op.kind, sizes)
    return sizes[1] if column == 2 else sizes[0]


# --- Prepare: persistent --------------------------------------------------------------------


def scales(tensor: Tensor) -> int:
    """Number of scales that TFLM sees: 0 unless scale and zero point are both there."""
    quantization = tensor.quantization
    scale: Any = None if quantization is None else quantization.scale
    zero: Any = None if quantization is None else quantization.zeroPoint
    return 0 if scale is None or zero is None or len(zero) == 0 else len(scale)


def _dimension(tensor: Tensor, axis: int) -> int:
    shape = tensor.shape or ()
    return shape[axis] if -len(shape) <= axis < len(shape) else 0


def _dims_copy(tensor: Tensor) -> int:
    """CreateWritableTensorDimsWithCopy: a TfLiteIntArray."""
    return 4 + 4 * len(tensor.shape or ())


def _prepare(op: Op, target: Target, column: int) -> list[int]:
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
    if weights is not None and _type(op) != "float32" and scales(weights) > 1:
        found = 2 * [4 * scales(weights)]
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

# --- Prepare: temporary ---------------------------------------------------------------------

_INPUT_OUTPUT = "i0 o0"
_FETCHED: dict[str, str] = {
    **dict.fromkeys(
        (
            "RELU", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "CAST", "CEIL", "CIRCULAR_BUFFER",
            "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "DEQUANTIZE", "QUANTIZE", "ABS", "RSQRT", "COS",
            "SIN", "LOG", "SQRT", "SQUARE", "LOGICAL_NOT", "ELU", "EXP", "HARD_SWISH",
            "L2_NORMALIZATION", "LEAKY_RELU", "LOG_SOFTMAX", "LOGISTIC", "RESHAPE", "ROUND",
            "SOFTMAX", "SQUEEZE", "ZEROS_LIKE", "MAX_POOL_2D", "AVERAGE_POOL_2D",
        ),
        _INPUT_OUTPUT,
    ),
    **dict.fromkeys(
        (
            "ADD", "SUB", "MUL", "DIV", "BATCH_MATMUL", "BROADCAST_ARGS", "BROADCAST_TO",
            "CUMSUM", "EMBEDDING_LOOKUP", "EXPAND_DIMS", "FILL", "FLOOR_DIV", "FLOOR_MOD",
            "GATHER", "GATHER_ND", "MIRROR_PAD", "PRELU", "RESIZE_BILINEAR",
            "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SQUARED_DIFFERENCE", "TRANSPOSE",
        ),
        "i0 i1 o0",
    ),
    **dict.fromkeys(
        ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), "i0 i1"
    ),
    **dict.fromkeys(("DYNAMIC_UPDATE_SLICE", "SELECT_V2", "SLICE"), "i0 i1 i2 o0"),
    **dict.fromkeys(("RELU6", "IF", "READ_VARIABLE", "SPLIT"), "i0"),
    **dict.fromkeys(("PAD", "PADV2", "FULLY_CONNECTED"), "i0 i1 i2 o0"),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), "i0 i1 q0 i0 o0 i1"),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_ALL"), "i0 o0 i1 i0 i1 q0"),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), "o0 i0 i1 i0 i1 i2 o0"),
    "ASSIGN_VARIABLE": "i1",
    "L2_POOL_2D": "o0 i0",
    "SPLIT_V": "i2",
    "STRIDED_SLICE": "i0 i1 i2 i3 o0",
    "SVDF": "i0 i1 i2 i3 i4 o0",
    "TANH": "i0 i0 o0",
    "TFLite_Detection_PostProcess": "i0 i1 i2",
}  # fmt: skip
"""Fetches in order: iN input, oN output, q0 the output of an int8 operator."""


def _fetched(op: Op, target: Target) -> list[Tensor]:
    inputs, kind = op.inputs, op.kind
    if kind == "ADD_N":
        return [t for t in (*inputs[:1], *op.outputs, *inputs[1:]) if t is not None]
    if kind == "CONCATENATION":
        return [t for t in (*inputs[:1], *op.outputs, *inputs) if t is not None]
    if kind == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        return [*op.operands(), *op.outputs]
    found: list[Tensor] = []
    for word in _sequence(op, target).split():
        at = int(word[1:])
        if word[0] == "q" and _type(op) != "int8":
            continue
        tensors = inputs if word[0] == "i" else op.outputs
        tensor = tensors[at] if at < len(tensors) else None
        if tensor is not None:
            found.append(tensor)
    return found


def _sequence(op: Op, target: Target) -> str:
    cmsis = uses_cmsis(op.kind, target)
    if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") and cmsis:
        return "i0 i1 o0 i0 i1 i2 o0"
    if op.kind == "AVERAGE_POOL_2D" and cmsis:
        return "i0 o0 i0 o0"
    if op.kind == "TRANSPOSE_CONV":  # inputs: shape, filter, data, bias
        return "o0 i2 i1" if _type(op, 2) == "float32" else "o0 i2 i1 i2 i1 i3 o0"
    return _FETCHED.get(op.kind, "")
