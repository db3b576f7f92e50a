"""What a tensor's numbers stand for: value = scale * (number - zero point)."""

from __future__ import annotations

from tflm_planner.model.ir import Tensor

_BYTES = {"int8", "uint8"}


def single_scale(tensor: Tensor) -> tuple[float, int] | None:
    """Scale and zero point of a tensor that has one of each; None for floats, and where channels
    have scales of their own."""
    q = tensor.quantization
    if q is None or q.scale is None or len(q.scale) != 1:
        return None
    zero = 0 if q.zeroPoint is None or len(q.zeroPoint) == 0 else int(q.zeroPoint[0])
    return float(q.scale[0]), zero


def is_shifted(first: Tensor, second: Tensor) -> bool:
    """Whether one is int8 and the other uint8, with one scale and zero points 128 apart: their
    bytes then differ in the highest bit only."""
    a, b = single_scale(first), single_scale(second)
    if a is None or b is None or {first.type_name, second.type_name} != _BYTES:
        return False
    unsigned, signed = (a, b) if first.type_name == "uint8" else (b, a)
    return unsigned[0] == signed[0] and unsigned[1] - signed[1] == 128


def parameters(tensor: Tensor) -> tuple[list[float], list[int]]:
    """Scales and zero points, both empty where a tensor has none: for comparing."""
    q = tensor.quantization
    scales = [] if q is None or q.scale is None else [float(s) for s in q.scale]
    return scales, [] if q is None or q.zeroPoint is None else [int(z) for z in q.zeroPoint]
