"""Compares what the bytes of two tensors stand for."""

from __future__ import annotations

from tflm_planner.model.ir import Tensor

_BYTES = {"int8", "uint8"}


def is_shifted(first: Tensor, second: Tensor) -> bool:
    """Whether one tensor is int8 and the other uint8, with the same scale and zero points 128
    apart. Bytes that stand for equal values then differ only in the highest bit."""
    a, b = first.quantization.single, second.quantization.single
    if a is None or b is None or {first.type_name, second.type_name} != _BYTES:
        return False
    unsigned, signed = (a, b) if first.type_name == "uint8" else (b, a)
    return unsigned[0] == signed[0] and unsigned[1] - signed[1] == 128


def same_values(first: Tensor, second: Tensor) -> bool:
    """Whether equal bytes of both stand for equal values: same type and same quantisation."""
    return first.type == second.type and first.quantization.means_the_same(second.quantization)
