"""What DEQUANTIZE makes of known numbers, bit by bit as LiteRT does.

    float16                     the same number as float32
    int4, int8, uint8, int16    scale * (number - zero point); but for int16, for which LiteRT has
                                no such kernel, each channel may have its own

A float32 scale times a number of 17 bits is exact in double precision. So it is rounded once here,
as LiteRT rounds it, which multiplies in double precision for one scale and in float32 for several
(PerChannelDequantize, tensorflow/lite/kernels/internal/reference/dequantize.h).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflm_planner.model.ir import Tensor
from tflm_planner.support.deferred import defer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = defer("numpy")

_RANGES = {"int4": (-8, 7), "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
"""Types -> their least and largest number, between which zero points lie; others a runtime narrows
as it likes."""


def dequantized(numbers: npt.NDArray[Any], tensor: Tensor) -> npt.NDArray[Any] | None:
    """The floats that the `numbers` of a tensor stand for, in its shape; None if they are of
    another type, if their scales do not fit the shape, or if one is not a number: the bits of a
    NaN depend on the processor."""
    if tensor.type_name == "float16":
        floats = numbers.astype("<f4")
    else:
        factors = _factors(tensor)
        if factors is None:
            return None
        scales, zeros = factors
        with np.errstate(over="ignore"):  # infinity, as in LiteRT
            floats = (scales * (numbers.astype(np.int64) - zeros)).astype("<f4")
    return None if np.isnan(floats).any() else floats


def _factors(tensor: Tensor) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Scales and zero points of integers, so that they broadcast against them; None if they do not
    fit the shape."""
    shape, quantization = tensor.shape or (), tensor.quantization
    scales, zeros = quantization.scales, quantization.zero_points or (0,)
    low, high = _RANGES.get(tensor.type_name, (0, -1))
    if (
        not scales
        or len(zeros) not in (1, len(scales))
        or not low <= min(zeros) <= max(zeros) <= high
    ):
        return None
    if tensor.type_name == "int16" and len(scales) > 1:
        return None
    along = [1] * len(shape)
    if len(scales) > 1:
        axis = quantization.axis
        if not 0 <= axis < len(shape) or shape[axis] != len(scales):
            return None
        along[axis] = -1
    wide = np.array(scales, np.float32).astype(np.float64)
    zero = np.broadcast_to(np.array(zeros, np.int64), wide.shape)
    return wide.reshape(along), zero.reshape(along)
