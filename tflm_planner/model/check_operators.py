"""Checks whether the shapes, options and small constants of operators fit each other.

    TRANSPOSE   order [0, 0, 2]   is no permutation   -> refused, here and nowhere else

TFLM uses what a file declares without checking it: a stride of 0, an axis that does not exist or a
result larger than its operands makes it read or write past the end of buffers. The checks here run
once, when a file is read, and the rest of the package relies on them. There is one entry per
operator kind; a kind without an entry is not checked. Forms that runtimes do run must pass: a
result may be declared smaller than computed (the TFLM dialect cuts results), and a free batch is
declared as 1.
"""

from __future__ import annotations

import math

from tflm_planner.model.flow_rules import branches, composite, loop, start
from tflm_planner.model.ir import Graph, Model, Op, Tensor, quote
from tflm_planner.model.operator_rules import (
    Fault,
    Misfit,
    Rule,
    at_least,
    axis_operand,
    batch_blocks,
    batch_matmul,
    blocks,
    broadcast,
    concatenation,
    convolution,
    cut,
    depthwise,
    fully_connected,
    gather,
    pack,
    padding,
    pool,
    ranks,
    reduction,
    resize,
    same_elements,
    sizes,
    split,
    split_v,
    strided_slice,
    svdf,
    transpose,
    unpack,
)
from tflm_planner.model.schema import own_options
from tflm_planner.support.errors import ModelError

_QUANTIZED = frozenset(("int8", "uint8", "int16"))
_RESCALING = frozenset((
    "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL", "ADD",
    "SUB", "MUL", "MEAN", "SUM", "QUANTIZE", "LEAKY_RELU", "PRELU", "RELU", "RELU6",
))  # fmt: skip
"""The kinds whose kernels divide by the scale of their result."""


_SINGLES = (
    "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU",
    "ELU", "GELU", "ABS", "NEG", "SQRT", "RSQRT", "SQUARE", "EXP", "LOG", "SIN", "COS", "CEIL",
    "FLOOR", "ROUND", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "ZEROS_LIKE", "LOGICAL_NOT",
    "QUANTIZE", "DEQUANTIZE", "CAST",
)  # fmt: skip
_PAIRS = (
    "ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV",
    "FLOOR_MOD", "LOGICAL_AND", "LOGICAL_OR", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL",
    "LESS", "LESS_EQUAL",
)  # fmt: skip
_REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL")
_STEPS = sizes("strideH", "strideW", "dilationHFactor", "dilationWFactor")
_POOLS = (ranks(4, 0), sizes("strideH", "strideW", "filterHeight", "filterWidth"), pool)

_OPERANDS = {
    "CONV_2D": ("Conv2DOptions", True, 2),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", True, 2),
    "TRANSPOSE_CONV": ("TransposeConvOptions", True, 3),
    "AVERAGE_POOL_2D": ("Pool2DOptions", True, 1),
    "MAX_POOL_2D": ("Pool2DOptions", True, 1),
    "FULLY_CONNECTED": ("FullyConnectedOptions", False, 2),
    "CONCATENATION": ("ConcatenationOptions", False, 1),
    "PACK": ("PackOptions", False, 1),
    "UNPACK": ("UnpackOptions", False, 1),
    "SVDF": ("SVDFOptions", False, 2),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("UnidirectionalSequenceLSTMOptions", False, 1),
    "BATCH_MATMUL": ("BatchMatMulOptions", False, 2),
    "STRIDED_SLICE": ("StridedSliceOptions", False, 4),
    "SOFTMAX": ("SoftmaxOptions", False, 1),
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL"), ("ReducerOptions", False, 2)
    ),
}
"""Kind -> (name of its options, whether they are required, how many of its first operands are
required)."""

_RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(_SINGLES, (at_least(1), same_elements)),
    **dict.fromkeys(_PAIRS, (at_least(2), broadcast)),
    **dict.fromkeys(_REDUCTIONS, (at_least(2), reduction)),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _POOLS),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), (at_least(2), padding)),
    **dict.fromkeys(
        ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), (at_least(2), ranks(4, 0), resize)
    ),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), (at_least(1), ranks(4, 0), blocks)),
    **dict.fromkeys(("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), (at_least(3), batch_blocks)),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "REVERSE_V2"), (at_least(2), axis_operand(1))),
    "CUMSUM": (at_least(2), axis_operand(1), same_elements),
    "EXPAND_DIMS": (at_least(2), axis_operand(1, more=1), same_elements),
    "CONV_2D": (ranks(4, 0, 1), _STEPS, convolution),
    "DEPTHWISE_CONV_2D": (ranks(4, 0, 1), _STEPS, depthwise),
    "TRANSPOSE_CONV": (ranks(4, 1, 2), sizes("strideH", "strideW")),
    "FULLY_CONNECTED": (fully_connected,),
    "BATCH_MATMUL": (batch_matmul,),
    "TRANSPOSE": (at_least(2), transpose),
    "CONCATENATION": (concatenation,),
    "PACK": (pack,),
    "UNPACK": (unpack,),
    "SPLIT": (at_least(2), split),
    "SPLIT_V": (at_least(3), split_v),
    "SLICE": (at_least(3), cut),
    "STRIDED_SLICE": (strided_slice,),
    "GATHER": (at_least(2), gather),
    **dict.fromkeys(("SELECT", "SELECT_V2"), (at_least(3),)),
    "SVDF": (svdf,),
    "WHILE": (loop,),
    "IF": (branches,),
    "CALL_ONCE": (start,),
    "STABLEHLO_COMPOSITE": (composite,),
}
"""The rules for each operator kind, in order: later rules rely on earlier ones."""


def check_operands(graph: Graph) -> None:
    """Check that operators carry the options of their kind, and enough operands where their meaning
    is used."""
    for i, op in enumerate(graph.ops):
        options_name, required, least = _OPERANDS.get(op.kind) or (
            own_options(op.kind),
            False,
            0,
        )
        if options_name is None:
            continue
        actual = op.options.name or "no options"
        if actual != options_name and (required or not op.options.is_absent):
            raise ModelError(
                f"damaged model: operator {i} ({op.label}) has {actual}, not {options_name}"
            )
        present = sum(t is not None for t in op.inputs[:least])
        if present < least or (least and not op.outputs):
            raise ModelError(
                f"damaged model: operator {i} ({op.label}) has {present} of the {least} operands "
                f"that it needs and {len(op.outputs)} results"
            )


def check_operators(model: Model) -> None:
    """Raise ModelError for the first operator whose parts do not fit each other."""
    is_free = any(_is_free(t) for t in model.tensors())
    for graph in model.graphs:
        for tensor in graph.tensors:
            _check_scales(tensor)
        for i, op in enumerate(graph.ops):
            fault = fault_of(op)
            if fault is not None and not (is_free and isinstance(fault, Misfit)):
                raise ModelError(
                    f"damaged model: operator {i} ({op.label}) {fault}; export the model again, "
                    "with fixed shapes"
                )


def fault_of(op: Op) -> Fault:
    """What does not fit together in an operator, or None."""
    return next((fault for rule in _RULES.get(op.kind, ()) if (fault := rule(op))), None)


def _is_free(tensor: Tensor) -> bool:
    """Whether the converter did not know a part of the tensor's shape. It then declares 1."""
    signature = tensor.raw.shapeSignature
    return signature is not None and len(signature) > 0 and min(signature) < 0


def _check_scales(tensor: Tensor) -> None:
    """Refuse a tensor whose scale is not a positive number. A scale of 0, which the converter
    writes for some constants, is permitted if no kernel divides by it."""
    if tensor.type_name not in _QUANTIZED:
        return
    divides = tensor.producer is not None and tensor.producer.kind in _RESCALING
    scales = tensor.quantization.scales
    wrong = [s for s in scales if not (math.isfinite(s) and (s > 0 if divides else s >= 0))]
    if wrong:
        raise ModelError(
            f"damaged model: tensor {quote(tensor.name)} of {tensor.type_name} has the scale "
            f"{wrong[0]:.8g}, which is no positive number; convert the model again"
        )
