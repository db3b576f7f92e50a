"""Scales of quantised tensors with which TFLM aborts while it prepares an operator, or refuses it.

    SOFTMAX of int8 whose operand has a scale of 7.8e-09    TFLITE_CHECK fails, and aborts
    CONV_2D up to 6, into a scale of 2e-09                  6 is no number of 32 bits

TFLM turns quotients of scales into a number and a shift, and asserts on which side of 1 they lie:
`QuantizeMultiplierGreaterThanOne` and `QuantizeMultiplierSmallerThanOneExp`
(kernels/internal/quantization_util.cc of tflite-micro 90b983c). These assertions stay in every
build. LiteRT's own kernels look up SOFTMAX in a table, and so run what TFLM does not. This module
must not know plans.
"""

from __future__ import annotations

from array import array

from tflm_planner.model.ir import Op, Tensor

_SUMS = {
    "ADD": {"int8": 20, "int16": 15},
    "SUB": {"int8": 20, "int16": 15},
    "ADD_N": {"int8": 20},
    "CUMSUM": {"int8": 20},
}
"""Operators that add operands shifted to the left -> type -> by how many bits (add_common.cc:48,
sub_common.cc:50, add_n.cc:33, cumsum.cc:32 of tensorflow/lite/micro/kernels)."""
_COMPARISONS = (
    "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL",
)  # fmt: skip
"""Operators that take the scales of operands themselves for multipliers (comparisons.cc:569)."""
_SOFTMAX_BITS = 26
"""Of a difference of logits, behind the point (softmax_common.cc:119, log_softmax.cc)."""
_LIMITS = {2: 1.0, 3: 6.0}
"""Fused activations -> the largest value that they give: RELU_N1_TO_1, RELU6."""
_LARGEST = 2.0**31
"""Of a limit as a number of the result's scale (`Quantize` in kernels/kernel_util.cc:343)."""
_UNSEEN = (
    "values so small come of weights that were not trained, or of representative data that shows "
    "the network nothing: train it, and convert it with real inputs"
)


def refusal_of_scales(op: Op) -> str | None:
    """The reason why TFLM aborts when it prepares an operator with these scales, and what
    to do; None if it does not, as far as is known."""
    if (wrong := _of_limit(op)) is not None:
        return wrong
    if op.kind in ("SOFTMAX", "LOG_SOFTMAX"):
        return _of_softmax(op)
    if op.kind in _SUMS:
        return _of_sum(op)
    return _of_comparison(op) if op.kind in _COMPARISONS else None


def _of_limit(op: Op) -> str | None:
    limit = _LIMITS.get(op.options.activation)
    if limit is None or not op.outputs or op.outputs[0].type_name not in ("int8", "int16"):
        return None
    scale = op.outputs[0].quantization.scale
    if not scale or array("f", [limit / scale])[0] <= _LARGEST:
        return None
    return (
        f"{op.kind} limited to {limit:g}, of values whose scale is {scale:.2g}: TFLM refuses a "
        f"limit above 2^31 of them; {_UNSEEN}"
    )


def _of_softmax(op: Op) -> str | None:
    scale = _scale_of(op.inputs[0], "int8")
    beta = op.options.beta if op.kind == "SOFTMAX" else 1.0
    if scale is None or beta * scale * 2**_SOFTMAX_BITS > 1:
        return None
    times = f" times a beta of {beta:g}" if beta != 1 else ""
    return (
        f"{op.kind} of values whose scale is {scale:.2g}{times}: TFLM aborts where that "
        f"is not above {2.0**-_SOFTMAX_BITS:.2g}; {_UNSEEN}"
    )


def _of_sum(op: Op) -> str | None:
    result = op.outputs[0]
    bits = _SUMS[op.kind].get(result.type_name)
    scale = _scale_of(result, result.type_name)
    scales = [s for t in op.operands() if (s := _scale_of(t, result.type_name)) is not None]
    if bits is None or scale is None or not scales:
        return None
    largest = max(scales)
    if _is_fraction(2 * largest / (2**bits * scale)):
        return None
    return (
        f"{op.kind} of values whose scale is {largest:.2g} into one of {scale:.2g}: TFLM aborts "
        f"where the first is {2 ** (bits - 1):,} times the second or more; {_UNSEEN}"
    )


def _of_comparison(op: Op) -> str | None:
    scales = [s for t in op.operands() if (s := _scale_of(t, "int8")) is not None]
    wrong = next((s for s in scales if not _is_fraction(s)), None)
    if wrong is None:
        return None
    return (
        f"{op.kind} of values whose scale is {wrong:.2g}: TFLM aborts where that is not "
        "between 0 and 1; compare floats, or scale what is compared down before it is quantised"
    )


def _is_fraction(quotient: float) -> bool:
    """Whether a kernel that rounds the quotient, to 24 bits at least, takes it to lie between 0 and
    1, neither of which it may be."""
    return 0 < array("f", [quotient])[0] < 1


def _scale_of(tensor: Tensor | None, type_name: str) -> float | None:
    """The scale of a tensor of this type, None if it has another type or no scale."""
    if tensor is None or tensor.type_name != type_name:
        return None
    return tensor.quantization.scale
